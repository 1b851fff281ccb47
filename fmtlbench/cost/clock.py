"""Where the time of a round goes. On a GPU the marks are events on its stream, read once after the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

OTHER = "other"


class Stopwatch:
    """Laps between marks: each lap says what the time since the mark before it was spent on."""

    def __init__(self) -> None:
        self._marks: list[tuple[str, Any]] = []

    def start(self) -> None:
        self._marks = [("", self._mark())]

    def lap(self, name: str) -> None:
        """Book the time since the last mark under `name`; a first lap only starts."""
        self._marks.append((name, self._mark()))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.lap(OTHER)
        yield
        self.lap(name)

    def read(self) -> dict[str, float]:
        """Return seconds by name since `start`; nothing is left running."""
        marks, self._marks = self._marks, []
        if marks:
            self._wait(marks[-1][1])
        spent: dict[str, float] = {}
        for (_, before), (name, after) in pairwise(marks):
            spent[name] = spent.get(name, 0.0) + self._between(before, after)
        return spent

    def _mark(self) -> Any:
        return time.perf_counter()

    def _wait(self, mark: Any) -> None:
        """Wait until the device has passed `mark`."""

    def _between(self, before: Any, after: Any) -> float:
        return after - before


class EventStopwatch(Stopwatch):
    """Marks are events on a device's stream: recording one does not wait for the device.

    Two neighbouring events enclose all that happened on the stream in between, its waiting for data included, so laps
    add up to the time that passed.
    """

    def __init__(self, record: Callable[[], Any]) -> None:
        """Keep `record`, which puts a new event with timing on the stream and returns it."""
        super().__init__()
        self._record = record

    def _mark(self) -> Any:
        return self._record()

    def _wait(self, mark: Any) -> None:
        mark.synchronize()

    def _between(self, before: Any, after: Any) -> float:
        return before.elapsed_time(after) / 1000  # milliseconds


def stopwatch(device: Any, torch: Any = None) -> Stopwatch:
    """Return the stopwatch for a torch device; `torch` is the module, unless a test brings its own."""
    if device.type not in ("cuda", "mps"):
        return Stopwatch()
    if torch is None:
        import torch

    def on_cuda() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(device))
        return event

    def on_mps() -> Any:
        event = torch.mps.event.Event(enable_timing=True)
        event.record()
        return event

    if device.type == "mps" and not hasattr(torch.mps, "event"):
        return Stopwatch()
    return EventStopwatch(on_cuda if device.type == "cuda" else on_mps)
