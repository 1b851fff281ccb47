"""The energy of a run, from sensors that may be absent, forbidden, slow or gone half-way: then there is a reason."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import UsageError
from .place import Place, resolve_place

VARIABLE = "FMTLBENCH_ENERGY"
PERIOD = 15.0  # seconds between readings nobody asked for: counters wrap around, and estimates follow the load
START_PATIENCE, READ_PATIENCE = 20.0, 10.0  # seconds
STALLED = 3.0  # seconds without growth after which a measured counter counts as gone


@dataclass(frozen=True)
class EnergyChoice:
    """Whether to measure, and whose electricity it is."""

    place: Place = field(default_factory=Place)
    off: str | None = None  # why not


def choose_energy(energy: bool | None, country: str | None, region: str | None) -> EnergyChoice:
    """Return the caller's choice; None leaves it to $FMTLBENCH_ENERGY (on, off), which is on if unset."""
    place = resolve_place(country, region)
    if energy is None:
        word = os.environ.get(VARIABLE, "").strip().lower()
        if word not in ("", "on", "off"):
            raise UsageError(f"{VARIABLE}={os.environ[VARIABLE]}: expected on or off")
        return EnergyChoice(place, f"turned off ({VARIABLE}=off)" if word == "off" else None)
    return EnergyChoice(place, None if energy else "turned off (--no-energy)")


@dataclass(frozen=True)
class Reading:
    """What was used since the tracker started."""

    parts: dict[str, float]  # kWh
    seconds: float

    @property
    def kwh(self) -> float:
        return sum(self.parts.values())


class EnergyMeter:
    """Owns a tracker and the only thread that touches it, so that no sensor can hold up the run."""

    def __init__(self, make: Callable[[], Any]) -> None:
        """Keep `make`, which starts the tracker; it may take seconds, and may fail."""
        self._make, self._tracker = make, None
        self._ready, self._wanted, self._answered = threading.Event(), threading.Event(), threading.Event()
        self._latest: Reading | None = None
        self._grown: dict[str, tuple[float, float]] = {}  # measured part → (kWh, when it last grew)
        self._closing = False
        self.reason: str | None = None  # why there are no readings (any more)
        self.g_per_kwh: float | None = None
        self.sources: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._work, name="energy", daemon=True)

    def start(self) -> None:
        """Start the tracker beside whatever comes next, and return at once."""
        self._thread.start()

    def read(self) -> Reading | None:
        """Read the meter now; None where there is none, and `reason` says why."""
        if not self._ready.wait(START_PATIENCE):
            self._fail(f"the tracker has not started within {START_PATIENCE:g} s")
        if self.reason is None:
            self._answered.clear()
            self._wanted.set()
            if not self._answered.wait(READ_PATIENCE):
                self._fail(f"the sensors have not answered within {READ_PATIENCE:g} s")
        return self._latest if self.reason is None else None

    def stop(self) -> None:
        self._closing = True
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(READ_PATIENCE)

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            tracker = self._make()
        except BaseException as error:  # whatever a sensor library throws, SystemExit included, stays here
            self._fail(_words(error))
            self._ready.set()
            return
        self.g_per_kwh, self.sources = tracker.g_per_kwh, dict(tracker.sources)
        began = time.perf_counter()
        self._ready.set()
        while not self._closing and self.reason is None:
            self._wanted.wait(PERIOD)
            self._wanted.clear()
            if not self._closing:
                self._sample(tracker, began)
            self._answered.set()
        try:
            tracker.stop()
        except BaseException as error:
            self._fail(_words(error))

    def _sample(self, tracker: Any, began: float) -> None:
        try:
            parts, now = tracker.read(), time.perf_counter()
        except BaseException as error:
            self._fail(_words(error))
            return
        for part, source in self.sources.items():
            kwh, when = self._grown.get(part, (-1.0, now))
            if not source.measured or parts[part] > kwh:
                self._grown[part] = (parts[part], now)
            elif now - when > STALLED:  # nothing real draws no power at all
                self._fail(f"the {part} counter ({source.how}) stopped counting")
        self._latest = Reading(parts, now - began)

    def _fail(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = type(error).__name__
    return text[:200] if text and name == "TrackerError" else f"{name}: {text[:200]}" if text else name
