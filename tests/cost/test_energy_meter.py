"""The meter around a tracker that fails in every way it can."""

from __future__ import annotations

import threading
import time
import types

import pytest
import torch
from fake_sensors import FakeTracker

from fmtlbench.cost import energy as energy_module
from fmtlbench.cost import meter as meter_module
from fmtlbench.cost.energy import EnergyChoice, EnergyMeter
from fmtlbench.cost.meter import RunMeter

CPU = torch.device("cpu")


@pytest.fixture
def notes():
    return []


@pytest.fixture
def run_meter(monkeypatch, notes):
    """A meter on a tracker of the test's choosing."""

    def make(tracker=FakeTracker, **choice):
        monkeypatch.setattr(meter_module, "Tracker", tracker)
        return RunMeter(EnergyChoice(**choice), CPU, notes.append)

    return make


def timing(number, **seconds):
    return {"round": number, "seconds": seconds or {"step": 1.0}, "clients": {}}


def test_rounds_add_up_to_the_run(run_meter, notes):
    with run_meter() as meter:
        meter.begin([])
        rows = [meter.row(timing(number)) for number in (1, 2, 3)]
        tail = meter.tail()
    # one reading at the beginning, then one per row: 0.001 kWh of cpu and a quarter of it of ram each
    assert [row["energy"]["kwh"] for row in rows] == pytest.approx([0.00125, 0.0025, 0.00375])
    assert tail["energy"]["kwh"] == pytest.approx(0.005)
    assert rows[-1]["energy"]["co2e_g"] == pytest.approx(0.00375 * 400)
    assert rows[-1]["energy"]["parts"] == pytest.approx({"cpu": 0.003, "ram": 0.00075})
    assert all(row["energy"]["round"]["kwh"] == pytest.approx(0.00125) for row in rows)
    assert rows[0]["setup"] >= 0 and "setup" not in rows[1]
    assert rows[0]["energy"]["how"] == {"cpu": "measured: RAPL (whole processor)", "ram": "estimated: a model"}
    assert not notes and all(row["memory"]["process"] > 10**7 for row in rows)


def test_time_that_comes_after_a_row_goes_to_the_next(run_meter):
    with run_meter() as meter:
        meter.begin([])
        meter.row(timing(1))
        meter.carry("checkpoint", 0.5)
        assert meter.row(timing(2))["seconds"] == {"step": 1.0, "checkpoint": 0.5}
        assert meter.row(timing(3))["seconds"] == {"step": 1.0}
        meter.carry("checkpoint", 0.25)
        assert meter.tail()["seconds"] == {"checkpoint": 0.25}


def test_a_resumed_session_counts_on(run_meter):
    before = {"kwh": 1.0, "co2e_g": 50.0, "seconds": 10.0, "parts": {"cpu": 1.0}}
    with run_meter() as meter:
        meter.begin([{"round": 1, "energy": before}, {"round": 2, "energy": None}])
        row = meter.row(timing(3))
    assert row["energy"]["kwh"] == pytest.approx(1.00125) and row["energy"]["co2e_g"] == pytest.approx(50.5)
    assert row["energy"]["parts"] == pytest.approx({"cpu": 1.001, "ram": 0.00025})
    assert row["energy"]["round"]["kwh"] == pytest.approx(0.00125)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), SystemExit(1), RuntimeError("lock held"), ImportError("no")]
)
def test_a_tracker_that_does_not_start(run_meter, notes, error):
    def refuses(*_):
        raise error

    with run_meter(refuses) as meter:
        meter.begin([])
        rows = [meter.row(timing(number)) for number in (1, 2)]
    assert [row["energy"] for row in rows] == [None, None]
    assert all(type(error).__name__ in row["energy_reason"] for row in rows)
    assert len(notes) == 1 and notes[0].startswith("energy cannot be measured: ")


@pytest.mark.parametrize("error", [OSError("the sensor is gone"), SystemExit(3)])
def test_a_tracker_that_fails_half_way(run_meter, notes, error):
    dying = type("Dying", (FakeTracker,), {"dies_at": 3, "error": error})
    with run_meter(dying) as meter:
        meter.begin([])
        rows = [meter.row(timing(number)) for number in (1, 2, 3)]
    assert [row["energy"] is None for row in rows] == [False, True, True]
    assert type(error).__name__ in rows[1]["energy_reason"] and rows[1]["energy_reason"] == rows[2]["energy_reason"]
    assert len(notes) == 1 and notes[0].startswith("energy is not measured any more: ")


def test_a_counter_that_stands_still_is_a_lost_sensor(monkeypatch, run_meter, notes):
    now = [100.0]
    clock = types.SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(energy_module, "time", clock)

    class Stuck(FakeTracker):
        def read(self):
            return {"cpu": min(super().read()["cpu"], 0.002), "ram": self.readings * 0.1}

    with run_meter(Stuck) as meter:
        meter.begin([])
        assert meter.row(timing(1))["energy"]["kwh"] > 0
        now[0] += 1.0
        assert meter.row(timing(2))["energy"] is not None  # a moment proves nothing
        now[0] += 3.0
        row = meter.row(timing(3))
    assert row["energy"] is None and "cpu counter (RAPL (whole processor)) stopped counting" in row["energy_reason"]
    assert len(notes) == 1


def test_sensors_that_hang_do_not_hang_the_run(monkeypatch, run_meter, notes):
    monkeypatch.setattr(energy_module, "READ_PATIENCE", 0.05)
    released = threading.Event()

    class Hangs(FakeTracker):
        def read(self):
            if self.readings == 1:
                released.wait(10)
            return super().read()

    with run_meter(Hangs) as meter:
        meter.begin([])
        row = meter.row(timing(1))
    released.set()
    assert row["energy"] is None and "have not answered within 0.05 s" in row["energy_reason"]
    assert len(notes) == 1


def test_a_slow_start_does_not_hold_up_the_run(monkeypatch, run_meter, notes):
    monkeypatch.setattr(energy_module, "START_PATIENCE", 0.05)
    released = threading.Event()

    def slow(*_):
        released.wait(10)
        return FakeTracker()

    with run_meter(slow) as meter:
        assert not notes  # starting waits for nothing
        meter.begin([])
        row = meter.row(timing(1))
        released.set()
    assert row["energy"] is None and "has not started within" in row["energy_reason"]


def test_a_tracker_that_cannot_stop_is_forgiven(run_meter, notes):
    class Sticky(FakeTracker):
        def stop(self):
            raise RuntimeError("no")

    with run_meter(Sticky) as meter:
        meter.begin([])
        assert meter.row(timing(1))["energy"] is not None
    assert not notes


def test_nobody_asks_a_tracker_that_is_turned_off(run_meter, notes):
    def never(*_):
        raise AssertionError("started")

    with run_meter(never, off="turned off (--no-energy)") as meter:
        meter.begin([])
        row = meter.row(timing(1))
    assert row["energy"] is None and row["energy_reason"] == "turned off (--no-energy)" and not notes


def test_the_thread_ends_with_the_meter():
    tracker = FakeTracker()
    meter = EnergyMeter(lambda: tracker)
    meter.start()
    assert meter.read().kwh == pytest.approx(0.00125)
    meter.stop()
    assert tracker.stopped and not meter._thread.is_alive()
    assert meter.reason is None


def test_readings_between_rounds_keep_wrapping_counters_right(monkeypatch):
    monkeypatch.setattr(energy_module, "PERIOD", 0.01)
    tracker = FakeTracker()
    meter = EnergyMeter(lambda: tracker)
    meter.start()
    deadline = time.monotonic() + 5
    while tracker.readings < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    meter.stop()
    assert tracker.readings >= 3  # though nobody asked
