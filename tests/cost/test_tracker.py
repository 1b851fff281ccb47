"""codecarbon itself on sensors of the test's choosing: what it measures, and that it is offline, silent and tidy."""

from __future__ import annotations

import inspect
import logging
import math
import socket
import time
import types

import pytest
import torch
from fake_sensors import FakeTime, Nvml, Powercap

from fmtlbench.cost import tracker as tracker_module
from fmtlbench.cost.energy import EnergyMeter
from fmtlbench.cost.place import Place
from fmtlbench.cost.tracker import Source, Tracker, TrackerError, gpus_of, options

JOULES_PER_KWH = 3.6e6


@pytest.fixture
def powercap(tmp_path, monkeypatch):
    from codecarbon.core import hardware_cache

    tree = Powercap(tmp_path)
    tree.install(monkeypatch)
    yield tree
    hardware_cache.clear_cache()


@pytest.fixture
def started():
    """Trackers, stopped afterwards."""
    made = []

    def start(place=None, gpus=()):
        made.append(Tracker(place or Place("FRA"), list(gpus)))
        return made[-1]

    yield start
    for tracker in made:
        tracker.stop()


def ramp(seconds: float) -> float:
    """Watts: a rise from 100 to 300 within a minute, with a ripple."""
    return 100 + 200 * seconds / 60 + 20 * math.sin(seconds)


def test_a_known_power_trace_through_the_counters(powercap, monkeypatch, started):
    """RAPL's counter wraps around after five joules of it, and NVML counts millijoules."""
    nvml = Nvml()
    nvml.install(monkeypatch)
    clock = FakeTime()
    clock.install(monkeypatch)
    tracker = started(gpus=["0"])
    assert tracker.sources["cpu"] == Source(True, "RAPL (whole processor)")
    assert tracker.sources["gpu"].measured and not tracker.sources["ram"].measured
    first = tracker.read()
    drawn = 0.0
    for step in range(600):  # a minute in tenths of a second
        joules = ramp(step / 10) * 0.1
        drawn += joules
        powercap.add(joules)
        nvml.joules += 2 * joules
        clock.sleep(0.1)
        if step % 25 == 24:
            tracker.read()
    last = tracker.read()
    assert (last["cpu"] - first["cpu"]) * JOULES_PER_KWH == pytest.approx(drawn, rel=0.01)
    assert (last["gpu"] - first["gpu"]) * JOULES_PER_KWH == pytest.approx(2 * drawn, rel=0.01)


def test_a_known_power_trace_of_a_card_that_tells_power_only(powercap, monkeypatch, started):
    nvml = Nvml(counter=False)
    nvml.install(monkeypatch)
    clock = FakeTime()
    clock.install(monkeypatch)
    monkeypatch.setattr("codecarbon.external.scheduler.Timer", lambda *_: types.SimpleNamespace(start=int, cancel=int))
    nvml.watts = ramp(0)
    tracker = started(gpus=["0"])
    first, drawn = tracker.read(), 0.0
    for step in range(1, 241):
        nvml.watts = ramp(step / 4)
        drawn += nvml.watts / 4
        clock.sleep(0.25)
        last = tracker.read()
    assert (last["gpu"] - first["gpu"]) * JOULES_PER_KWH == pytest.approx(drawn, rel=0.01)


def test_what_gpus_use_is_not_the_bill_of_a_run_on_the_processor(powercap, monkeypatch, started):
    Nvml().install(monkeypatch)
    tracker = started()
    assert set(tracker.read()) == {"cpu", "ram"} == set(tracker.sources)


def test_a_counter_that_vanishes_is_noticed(powercap, monkeypatch):
    """codecarbon itself would go on and count nothing."""
    monkeypatch.setattr("fmtlbench.cost.energy.STALLED", 0.2)
    meter = EnergyMeter(lambda: Tracker(Place("FRA"), []))
    meter.start()
    meter.read()
    powercap.add(100)
    time.sleep(0.06)  # it does not measure twice within 50 ms
    before = meter.read()
    assert before.parts["cpu"] * JOULES_PER_KWH == pytest.approx(100, rel=0.01)
    powercap.vanish()
    time.sleep(0.1)
    assert meter.read() is not None
    time.sleep(0.2)
    assert meter.read() is None and "cpu counter (RAPL (whole processor)) stopped counting" in meter.reason
    meter.stop()


def test_counters_that_may_not_be_read_become_an_estimate_that_says_so(powercap, monkeypatch, started):
    import builtins

    real_open, real_access = builtins.open, tracker_module.os.access

    def forbidden(path, *args, **kwargs):
        if str(path).endswith("energy_uj"):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", forbidden)
    monkeypatch.setattr(
        tracker_module.os, "access", lambda path, mode: "energy_uj" not in str(path) and real_access(path, mode)
    )
    monkeypatch.setattr(tracker_module, "RAPL", powercap.folder)
    tdp = types.SimpleNamespace(model="Fake CPU", tdp=65)
    monkeypatch.setattr("codecarbon.core.resource_tracker.get_cached_tdp", lambda _: tdp)
    source = started().sources["cpu"]
    assert not source.measured
    assert "CPU time of this process × 65 W" in source.how and "this user may not read it" in source.how


def test_a_failure_inside_codecarbon_comes_out_as_its_own_words(powercap, monkeypatch, started):
    """codecarbon logs exceptions and goes on; here they are reasons."""
    tracker = started()
    monkeypatch.setattr(tracker._tracker, "_do_measurements", lambda: 1 / 0)
    time.sleep(0.06)
    with pytest.raises(TrackerError, match="ZeroDivisionError: division by zero"):
        tracker.read()


def test_a_failure_while_starting_too(powercap, monkeypatch):
    monkeypatch.setattr(
        "codecarbon.core.resource_tracker.ResourceTracker.set_CPU_GPU_ram_tracking",
        lambda self: (_ for _ in ()).throw(PermissionError(13, "Permission denied")),
    )
    with pytest.raises(TrackerError, match=r"PermissionError.*Permission denied"):
        Tracker(Place(), [])
    assert not any(isinstance(f, tracker_module._Silence) for f in logging.getLogger("codecarbon").filters)


def test_two_trackers_at_once(powercap, started):
    one, two = started(), started(Place("POL"))
    powercap.add(50)
    time.sleep(0.06)
    assert one.read()["cpu"] == pytest.approx(two.read()["cpu"]) == pytest.approx(50 / JOULES_PER_KWH, rel=0.01)
    assert one.g_per_kwh != two.g_per_kwh


def test_a_lock_of_somebody_elses_tracker_is_no_obstacle(powercap, started, monkeypatch, tmp_path):
    import codecarbon.lock

    (tmp_path / ".codecarbon.lock").write_text("")
    monkeypatch.setattr(codecarbon.lock, "LOCKFILE", str(tmp_path / ".codecarbon.lock"))
    assert started().read()


def test_no_configuration_file_or_variable_moves_a_figure(powercap, monkeypatch, tmp_path, started):
    home, here = tmp_path / "home", tmp_path / "here"
    config = "[codecarbon]\npue = 100\nforce_ram_power = 100000\ncountry_iso_code = POL\nco2_signal_api_token = x\n"
    config += "save_to_file = true\nlog_level = debug\nallow_multiple_runs = false\ntracking_mode = machine\n"
    for folder in (home, here):
        folder.mkdir()
        (folder / ".codecarbon.config").write_text(config + "emissions_endpoint = http://localhost:1\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODECARBON_FORCE_CPU_POWER", "100000")
    monkeypatch.setenv("CODECARBON_PUE", "50")
    monkeypatch.chdir(here)
    tracker = started()
    powercap.add(10)
    time.sleep(0.06)
    reading = tracker.read()
    assert reading["cpu"] * JOULES_PER_KWH == pytest.approx(10, rel=0.01)
    assert reading["ram"] * JOULES_PER_KWH < 50 and tracker.g_per_kwh < 100
    assert sorted(p.name for p in here.iterdir()) == [".codecarbon.config"]


def test_every_option_is_set():
    """An option of a newer codecarbon must not fall back to a file in somebody's home."""
    from codecarbon import OfflineEmissionsTracker
    from codecarbon.emissions_tracker import BaseEmissionsTracker

    known = {
        name
        for owner in (BaseEmissionsTracker, OfflineEmissionsTracker)
        for name, p in inspect.signature(owner.__init__).parameters.items()
        if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.KEYWORD_ONLY
    }
    known |= set(inspect.signature(inspect.unwrap(OfflineEmissionsTracker.__init__)).parameters)
    # without effect beside the newer ones
    outdated = {name for name in known if name.startswith("save_to_")} | {"co2_signal_api_token"}
    assert known - outdated - {"self", "args", "kwargs"} == set(options(Place(), [], None, 1.0))


def test_offline_silent_and_tidy(powercap, monkeypatch, tmp_path, capfd, started):
    def refuse(*_, **__):
        raise AssertionError("a network call")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    tracker = started(Place("USA", "vermont"))
    time.sleep(0.06)
    tracker.read()
    tracker._tracker.stop()
    out, err = capfd.readouterr()
    assert not list(folder.iterdir()) and out == err == ""


def test_the_card_is_named_as_the_driver_names_it():
    cuda = torch.device("cuda", 1)
    assert gpus_of(torch.device("cpu"), {}) == [] == gpus_of(torch.device("mps"), {})
    assert gpus_of(cuda, {}) == ["1"]
    assert gpus_of(cuda, {"CUDA_VISIBLE_DEVICES": "4, GPU-8f2"}) == ["GPU-8f2"]
