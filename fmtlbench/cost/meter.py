"""The meter of one session of a run: it completes every round's timing row, and knows what came before and after."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .energy import EnergyChoice, EnergyMeter, Reading
from .memory import peak_memory, reset_peak
from .processes import ProcessUse, add_energy, add_memory
from .tracker import Tracker, gpus_of

ROUNDED = 9  # digits after the point: a nanosecond, a µWh


class RunMeter:
    """From the first moment of a session to its last. `note` is told once if energy cannot be had."""

    def __init__(self, choice: EnergyChoice, device: Any, note: Callable[[str], None]) -> None:
        self.device, self.note, self.place = device, note, choice.place
        self.session = secrets.token_hex(4)  # tells the rows of a session from those made again
        self.reason = choice.off
        self.energy: EnergyMeter | None = None
        if choice.off is None:
            self.energy = EnergyMeter(lambda: Tracker(choice.place, gpus_of(device)))
        self._began = self._marked = time.perf_counter()
        self._last: Reading | None = None
        self._sum = {"kwh": 0.0, "co2e_g": 0.0, "seconds": 0.0}
        self._parts: dict[str, float] = {}
        self._setup: float | None = None
        self._carried: dict[str, float] = {}
        self._others: Callable[[], Sequence[ProcessUse]] = tuple
        self._uses: Sequence[ProcessUse] = ()  # what they told last

    def __enter__(self) -> RunMeter:
        if self.energy is not None:
            self.energy.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.energy is not None:
            self.energy.stop()

    def include(self, others: Callable[[], Sequence[ProcessUse]]) -> None:
        """Count what other processes of the run tell of themselves too."""
        self._others = others

    def begin(self, kept: Sequence[Mapping[str, Any]]) -> None:
        """Begin with the rounds, as setting up is over; `kept` are the timing rows of rounds that were done before."""
        known = [row["energy"] for row in kept if (row.get("energy") or {}).get("kwh") is not None]
        if known:
            self._sum = {key: known[-1].get(key) or 0.0 for key in self._sum}
            self._parts = dict(known[-1].get("parts") or {})
        reset_peak(self.device)
        self._uses = self._others()
        self._last = self._read()
        self._marked = time.perf_counter()
        self._setup = self._marked - self._began

    def carry(self, phase: str, seconds: float) -> None:
        """Keep time for the next row that was spent when the round's own was already on disk."""
        self._carried[phase] = self._carried.get(phase, 0.0) + seconds

    def row(self, timing: Mapping[str, Any]) -> dict[str, Any]:
        """Return a round's line for timing.jsonl, from its number, `seconds` and `clients`."""
        seconds = {**timing["seconds"]}
        for phase, spent in self._carried.items():
            seconds[phase] = seconds.get(phase, 0.0) + spent
        self._carried = {}
        return {**timing, "seconds": seconds, **self._rest()}

    def unfinished(self, number: int) -> dict[str, Any]:
        """Return what was spent on a round that did not come to its end."""
        return {
            "round": number,
            "unfinished": True,
            "seconds": {"other": time.perf_counter() - self._marked},
            **self._rest(),
        }

    def tail(self) -> dict[str, Any]:
        """Return what was spent after the last row."""
        return {"seconds": dict(self._carried), **self._rest()}

    def _rest(self) -> dict[str, Any]:
        self._marked = time.perf_counter()
        self._uses = self._others()
        made: dict[str, Any] = {"energy": self._used()}
        if made["energy"] is None:
            made["energy_reason"] = self.reason
        made |= {"memory": add_memory([peak_memory(self.device), *(use.memory for use in self._uses)])}
        if self._uses:
            made["processes"] = [{"node": u.node, "threads": u.threads, **u.memory} for u in self._uses]
        made["session"] = self.session
        if self._setup is not None:
            made["setup"], self._setup = self._setup, None
        return made

    def _used(self) -> dict[str, Any] | None:
        """Return the energy of all rounds so far, and of the time since the last reading."""
        before, now = self._last, self._read()
        self._last = now
        if before is None or now is None:
            return None
        kwh = now.kwh - before.kwh
        step = {"kwh": kwh, "co2e_g": kwh * self.energy.g_per_kwh, "seconds": now.seconds - before.seconds}
        self._sum = {key: self._sum[key] + step[key] for key in self._sum}
        for part, value in now.parts.items():
            self._parts[part] = self._parts.get(part, 0.0) + value - before.parts.get(part, 0.0)
        return {
            **{key: round(value, ROUNDED) for key, value in self._sum.items()},
            "parts": {part: round(value, ROUNDED) for part, value in self._parts.items()},
            "round": {key: round(value, ROUNDED) for key, value in step.items()},
            "how": {part: str(source) for part, source in self.energy.sources.items()},
            "country": self.place.country,
            "region": self.place.region,
            "g_per_kwh": self.energy.g_per_kwh,
        }

    def _read(self) -> Reading | None:
        if self.energy is None or self.reason is not None:
            return None
        reading = self._everybodys(self.energy.read())
        if reading is None:
            what = "cannot be measured" if self._last is None else "is not measured any more"
            self.note(f"energy {what}: {self.reason}; the run goes on without it")
        return reading

    def _everybodys(self, own: Reading | None) -> Reading | None:
        """Add what the run's other processes used; None where any of them cannot say, with the reason."""
        if own is None:
            self.reason = self.energy.reason
            return None
        for use in self._uses:
            if use.reading is None and not use.counted:
                self.reason = f"of a process with clients: {use.reason}"
                return None
        if not self._uses:
            return own
        mine = ProcessUse("", {}, 0, own, sources=self.energy.sources, devices=tuple(gpus_of(self.device)))
        return Reading(add_energy([mine, *self._uses]), own.seconds)
