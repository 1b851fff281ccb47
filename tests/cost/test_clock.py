"""Laps on the CPU, on fake device events, and on a real GPU where there is one."""

from __future__ import annotations

import types

import pytest
import torch

from fmtlbench.cost import clock
from fmtlbench.cost.clock import EventStopwatch, Stopwatch, stopwatch


class FakeStream:
    """A device that runs behind: an event's time is known only after the stream has been waited for."""

    def __init__(self):
        self.now, self.events, self.waits = 0.0, [], 0

    def module(self):
        stream = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing
                self.at, self.known = None, False

            def record(self, on=None):
                assert on in (None, stream)
                self.at = stream.now
                stream.events.append(self)

            def synchronize(self):
                stream.waits += 1
                for event in stream.events:
                    event.known = True

            def elapsed_time(self, other):
                assert self.known and other.known, "read before the device had come that far"
                return other.at - self.at

        cuda = types.SimpleNamespace(Event=Event, current_stream=lambda device: stream)
        return types.SimpleNamespace(cuda=cuda, mps=types.SimpleNamespace(event=types.SimpleNamespace(Event=Event)))


def test_laps_add_up_by_name(monkeypatch):
    times = iter([0.0, 1.0, 1.5, 4.0, 4.25])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(times))
    watch = Stopwatch()
    watch.start()
    for name in ("load", "step", "load", "step"):
        watch.lap(name)
    assert watch.read() == {"load": 3.5, "step": 0.75}
    assert watch.read() == {}


def test_a_phase_is_apart_from_what_lies_around_it(monkeypatch):
    times = iter([0.0, 2.0, 5.0, 6.0])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(times))
    watch = Stopwatch()
    watch.start()
    with watch.phase("upload"):
        pass
    watch.lap("other")
    assert watch.read() == {"other": 3.0, "upload": 3.0}


def test_a_lap_without_a_start_only_starts():
    watch = Stopwatch()
    watch.lap("step")
    assert watch.read() == {}


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_events_are_read_once_and_never_inside_the_loop(kind):
    stream = FakeStream()
    watch = stopwatch(torch.device(kind, 0), stream.module())
    assert isinstance(watch, EventStopwatch)
    watch.start()
    for _ in range(5):
        stream.now += 2.0  # ms
        watch.lap("load")
        stream.now += 30.0
        watch.lap("step")
        assert stream.waits == 0
    assert watch.read() == pytest.approx({"load": 0.010, "step": 0.150})
    assert stream.waits == 1


def test_devices_without_events_use_the_processors_clock():
    assert type(stopwatch(torch.device("cpu"))) is Stopwatch
    assert type(stopwatch(torch.device("mps"), types.SimpleNamespace(mps=types.SimpleNamespace()))) is Stopwatch


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_gpu_is_timed():
    device = torch.device("cuda", 0)
    watch = stopwatch(device)
    a = torch.rand(2048, 2048, device=device)
    watch.start()
    for _ in range(20):
        a = a @ a / 1e3
    watch.lap("step")
    assert 1e-5 < watch.read()["step"] < 60
