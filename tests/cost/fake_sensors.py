"""Sensors of the test's choosing: a fake tracker for the meter, and a powercap tree and NVML for codecarbon itself."""

from __future__ import annotations

import types
from pathlib import Path

from fmtlbench.cost.tracker import Source

MEASURED = Source(True, "RAPL (whole processor)")
ESTIMATED = Source(False, "a model")


class FakeTracker:
    """Stands in for codecarbon: every reading adds `step` kWh to each part, until `dies_at` readings."""

    dies_at: int | None = None
    error: BaseException = OSError("the sensor is gone")

    def __init__(self, place=None, gpus=(), step=0.001):
        self.g_per_kwh, self.sources, self.step = 400.0, {"cpu": MEASURED, "ram": ESTIMATED}, step
        self.readings, self.stopped = 0, False

    def read(self):
        self.readings += 1
        if self.dies_at is not None and self.readings >= self.dies_at:
            raise self.error
        return {"cpu": self.readings * self.step, "ram": self.readings * self.step / 4}

    def stop(self):
        self.stopped = True


class Powercap:
    """A processor's RAPL folder as Linux shows it."""

    RANGE = 262_143_328_850  # µJ, after which the counter begins again

    def __init__(self, root: Path) -> None:
        self.folder = root / "powercap"
        self.package = self.folder / "intel-rapl:0"
        self.package.mkdir(parents=True)
        (self.package / "name").write_text("package-0\n")
        (self.package / "max_energy_range_uj").write_text(f"{self.RANGE}\n")
        self.total = self.RANGE - 5_000_000  # five joules before it wraps around
        self.add(0)

    def add(self, joules: float) -> None:
        self.total += joules * 1e6
        (self.package / "energy_uj").write_text(f"{int(self.total % self.RANGE)}\n")

    def vanish(self) -> None:
        (self.package / "energy_uj").unlink()

    def install(self, monkeypatch) -> None:
        """Codecarbon looks here instead of in /sys."""
        from codecarbon.core import cpu, hardware_cache
        from codecarbon.external import hardware

        hardware_cache.clear_cache()
        look, read = cpu.is_rapl_available, cpu.IntelRAPL
        monkeypatch.setattr(cpu, "is_rapl_available", lambda: look(str(self.folder)))
        monkeypatch.setattr(hardware, "IntelRAPL", lambda **given: read(**{**given, "rapl_dir": str(self.folder)}))
        monkeypatch.setattr(hardware, "detect_cpu_model", lambda: "Fake CPU")  # asking the real one takes two seconds


class Nvml:
    """As much of NVML as codecarbon asks for: one card whose counter or power the test sets."""

    class NVMLError(Exception):
        pass

    NVMLError_NotSupported = NVMLError
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, counter: bool = True) -> None:
        self.counter, self.joules, self.watts, self.gone = counter, 1000.0, 0.0, False

    def __getattr__(self, name):
        if name.startswith("nvmlDeviceGet"):
            return lambda *_: 1
        raise AttributeError(name)

    def nvmlInit(self):
        pass

    def nvmlDeviceGetName(self, handle):
        return "Fake GPU"

    def nvmlDeviceGetUUID(self, handle):
        return "GPU-0"

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(total=1, free=1, used=0)

    def nvmlDeviceGetUtilizationRates(self, handle):
        return types.SimpleNamespace(gpu=50)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if not self.counter or self.gone:
            raise self.NVMLError("not supported")
        return int(self.joules * 1000)

    def nvmlDeviceGetPowerUsage(self, handle):
        if self.gone:
            raise self.NVMLError("lost")
        return self.watts * 1000

    def install(self, monkeypatch) -> None:
        from codecarbon.core import gpu, gpu_nvidia

        monkeypatch.setattr(gpu_nvidia, "pynvml", self)
        for name, value in (("PYNVML_AVAILABLE", True), ("is_nvidia_system", lambda: True)):
            monkeypatch.setattr(gpu, name, value)


class FakeTime:
    """`time` with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self):
        self.now += 1e-6  # no two moments are the same
        return self.now

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def install(self, monkeypatch) -> None:
        monkeypatch.setattr("codecarbon.emissions_tracker.time", self)
        monkeypatch.setattr("codecarbon.external.hardware.time", self)
