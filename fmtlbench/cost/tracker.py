"""codecarbon, tamed: offline, silent, no file left behind, deaf to configuration files. Nobody else imports it."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .place import Place

RAPL = Path("/sys/class/powercap")
NEVER = 1e6  # seconds: codecarbon's own sampling is left to the caller, who cannot be interrupted by it
PARTS = ("cpu", "gpu", "ram")


class TrackerError(Exception):
    """The tracker cannot start or go on; the message says why."""


@dataclass(frozen=True)
class Source:
    """Where the energy of a part comes from."""

    measured: bool
    how: str

    def __str__(self) -> str:
        return f"{'measured' if self.measured else 'estimated'}: {self.how}"


class _Silence(logging.Filter):
    """Swallows what codecarbon logs and remembers the last exception and the last warning."""

    def __init__(self) -> None:
        super().__init__()
        self.error = self.warning = ""
        self.users = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            self.caught(record.exc_info[1])
        elif record.levelno >= logging.WARNING:
            self.warning = record.getMessage()
        return False

    def caught(self, error: BaseException) -> None:
        self.error = f"{type(error).__name__}: {error}"

    def last_words(self) -> str:
        return self.error or self.warning or "codecarbon gave no reading"

    def enter(self) -> None:
        self.users += 1
        logging.getLogger("codecarbon").addFilter(self)  # adding it twice changes nothing

    def leave(self) -> None:
        self.users -= 1
        if self.users == 0:
            logging.getLogger("codecarbon").removeFilter(self)


_silence = _Silence()


class Tracker:
    """A running codecarbon tracker: kWh by part since it started."""

    def __init__(self, place: Place, gpus: list[str]) -> None:
        """Prepare the sensors; `gpus`: those the run uses, by number or identifier; none: GPUs are not the run's.

        Raises:
            TrackerError: It does not start.
        """
        _silence.enter()
        try:
            self._open(place, gpus)
        except BaseException:
            _silence.leave()
            raise

    def _open(self, place: Place, gpus: list[str]) -> None:
        from codecarbon import OfflineEmissionsTracker
        from codecarbon.output_methods.base_output import BaseOutput

        class Keep(BaseOutput):
            latest: Any = None

            def out(self, total: Any, delta: Any) -> None:
                self.latest = total

        class Guarded(OfflineEmissionsTracker):
            def _monitor_power(self) -> None:
                """Sample power every second, in a thread of its own, where an error would only fill the terminal."""
                try:
                    super()._monitor_power()
                except Exception as error:
                    _silence.caught(error)

        self.g_per_kwh = intensity(place)
        self._keep = Keep()
        self._used = PARTS if gpus else ("cpu", "ram")
        self._tracker = Guarded(**options(place, gpus, self._keep, self.g_per_kwh))
        self._tracker.start()
        self.read()  # codecarbon swallows its exceptions: a tracker that does not deliver has not started
        self.sources = self._sources()

    def read(self) -> dict[str, float]:
        """Return the energy by part in kWh.

        Raises:
            TrackerError: No reading came.
        """
        self._keep.latest = None
        self._tracker.flush()
        total = self._keep.latest
        if total is None:
            raise TrackerError(_silence.last_words())
        return {part: float(getattr(total, f"{part}_energy")) for part in self._used}

    def stop(self) -> None:
        try:
            self._tracker.stop()
        finally:
            _silence.leave()

    def _sources(self) -> dict[str, Source]:
        found: dict[str, Source] = {}
        for hardware in getattr(self._tracker, "_hardware", ()):
            part, source = describe(hardware)
            if part in self._used:
                found[part] = source
        return found


def options(place: Place, gpus: list[str], keep: Any, g_per_kwh: float) -> dict[str, Any]:
    """Return every option that a configuration file or CODECARBON_… variable could change, so that none does."""
    return {
        "project_name": "fmtlbench",
        "experiment_id": "fmtlbench",
        "experiment_name": "fmtlbench",
        "measure_power_secs": NEVER,
        "tracking_mode": "process",
        "gpu_ids": gpus,
        "allow_multiple_runs": True,
        # nothing is written or sent
        "output_methods": [],
        "output_handlers": [keep],
        "output_dir": tempfile.gettempdir(),
        "output_file": "none",
        "on_csv_write": "append",
        "logging_logger": None,
        "metadata": None,
        "api_call_interval": -1,
        "api_endpoint": "",
        "api_key": "",
        "emissions_endpoint": "",
        "prometheus_url": "",
        "electricitymaps_api_token": "",
        "log_level": "warning",
        "logger_preamble": "",
        # nothing is scaled or replaced
        "force_cpu_power": None,
        "force_ram_power": None,
        "force_mode_cpu_load": False,
        "pue": 1.0,
        "wue": 0.0,
        "rapl_include_dram": False,
        "rapl_prefer_psys": False,
        "force_carbon_intensity_g_co2e_kwh": g_per_kwh,
        "country_iso_code": place.country,
        "region": place.region,
        "cloud_provider": None,
        "cloud_region": None,
        "country_2letter_iso_code": None,
    }


def intensity(place: Place) -> float:
    """Return grams of CO₂e per kWh, from codecarbon's tables."""
    from codecarbon.core.emissions import Emissions
    from codecarbon.core.units import Energy
    from codecarbon.external.geography import GeoMetadata
    from codecarbon.input import DataSource

    source = DataSource()
    if place.country is None:
        return float(source.get_carbon_intensity_per_source_data()["world_average"])
    if place.country not in source.get_global_energy_mix_data():
        raise TrackerError(f"no carbon intensity of {place.country}")
    geo = GeoMetadata(place.country, region=place.region)
    return 1000 * Emissions(source).get_private_infra_emissions(Energy.from_energy(kWh=1), geo)


def describe(hardware: Any) -> tuple[str, Source]:
    """Return (part, source) of one of codecarbon's sensors."""
    kind, mode = type(hardware).__name__, getattr(hardware, "_mode", "")
    if kind == "RAM":
        return "ram", Source(False, "codecarbon's model of memory modules")
    if kind == "GPU":
        return "gpu", Source(True, "the GPU's own counter (whole card)")
    if kind in ("AppleSiliconChip", "Raspberry"):
        return str(hardware.chip_part).lower(), Source(True, f"{kind} sensor (whole chip)")
    measured = {"intel_rapl": "RAPL", "windows_emi": "Windows EMI", "intel_power_gadget": "Intel Power Gadget"}
    if mode in measured:
        return "cpu", Source(True, f"{measured[mode]} (whole processor)")
    tdp = getattr(hardware, "_tdp", None)
    watts = "an unknown number of" if tdp is None else f"{tdp:g}"
    if mode == "constant":
        return "cpu", Source(False, f"half of {watts} W, constant{_unreadable()}")
    return "cpu", Source(False, f"CPU time of this process × {watts} W of the whole processor{_unreadable()}")


def _unreadable() -> str:
    """Say why a processor that could be measured is not."""
    counters = [*RAPL.glob("intel-rapl:*/energy_uj")]
    if counters and not any(os.access(counter, os.R_OK) for counter in counters):
        return "; RAPL is there, but this user may not read it"
    return ""


def gpus_of(device: Any, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return what a torch device is called outside this process: CUDA_VISIBLE_DEVICES renumbers them."""
    if device.type != "cuda":
        return []
    return [gpu_name(device.index or 0, environment)]


def gpu_name(index: int, environment: Mapping[str, str] = os.environ) -> str:
    """Return what the GPU that torch numbers `index` is called outside this process: a number or a UUID."""
    visible = [name.strip() for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[index] if index < len(visible) else str(index)
