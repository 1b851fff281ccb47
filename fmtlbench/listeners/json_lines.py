"""One JSON object per round and message, on stderr: what a run tells where there is no terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from ..runs.records import Cost, RoundRow, TimingRow
from ._base import LISTENERS, Listener, Start


@LISTENERS.register("json_lines")
class JsonLines(Listener):
    """One line per round and per message, for logs and other programs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def begin(self, start: Start) -> None:
        self.rounds, self.first, self.started = start.rounds, start.done, time.monotonic()
        self._write(event="begin", rounds=start.rounds, done=start.done, steps_per_round=start.steps_per_round)

    def round_done(self, row: RoundRow, timing: TimingRow) -> None:
        left = (self.rounds - row["round"]) * (time.monotonic() - self.started) / (row["round"] - self.first)
        scores = [r for r in row.get("scores", ()) if r["primary"]]
        event = {
            "round": row["round"],
            "rounds": self.rounds,
            "seconds": round(sum(timing["seconds"].values()), 3),
            "eta_seconds": round(left, 1),
            "losses": row["losses"],
        }
        if scores:
            event["scores"] = {f"{r['client']}/{r['split']}/{r['task']}": r["value"] for r in scores}
        self._write(event="round", **event)

    def note(self, message: str) -> None:
        self._write(event="note", message=message)

    def bill(self, cost: Cost) -> None:
        energy: Mapping[str, Any] = cost.get("energy") or {}
        figures = {key: energy.get(key) for key in ("kwh", "co2e_g", "source", "g_per_kwh", "reason")}
        times = {"seconds": cost.get("seconds_total"), "phases": cost.get("seconds")}
        traffic = {"bytes_up": cost.get("bytes_up"), "bytes_down": cost.get("bytes_down")}
        self._write(event="bill", **times, **traffic, energy=figures)

    def _write(self, **event: Any) -> None:
        self.stream.write(json.dumps(event, ensure_ascii=False) + "\n")
        self.stream.flush()
