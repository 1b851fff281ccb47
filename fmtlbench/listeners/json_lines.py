"""One JSON object per round and message, on stderr: what a run tells where there is no terminal."""

from __future__ import annotations

import json
import sys
import time

from ._base import LISTENERS, Listener


@LISTENERS.register("json_lines")
class JsonLines(Listener):
    """One line per round and per message, for logs and other programs."""

    def __init__(self, stream=None) -> None:
        self.stream = stream or sys.stderr
        self.pretrained: dict[str, tuple[int, float]] = {}  # the first step that was told, and when

    def begin(self, start):
        self.rounds, self.first, self.started = start.rounds, start.done, time.monotonic()
        self._write(event="begin", rounds=start.rounds, done=start.done, steps_per_round=start.steps_per_round)

    def round_done(self, row, timing):
        left = (self.rounds - row["round"]) * (time.monotonic() - self.started) / (row["round"] - self.first)
        scores = [r for r in row.get("scores", ()) if r["primary"]]
        self._write(
            event="round", round=row["round"], rounds=self.rounds, seconds=round(sum(timing["seconds"].values()), 3),
            eta_seconds=round(left, 1), losses=row["losses"],
            **({"scores": {f"{r['client']}/{r['split']}/{r['task']}": r["value"] for r in scores}} if scores else {}),
        )  # fmt: skip

    def pretraining(self, what, step, steps, loss):
        first, began = self.pretrained.setdefault(what, (step, time.monotonic()))
        left = (steps - step) * (time.monotonic() - began) / (step - first) if step > first else None
        self._write(event="pretrain", backbone=what, step=step, steps=steps, loss=round(loss, 5),
                    eta_seconds=None if left is None else round(left, 1))  # fmt: skip

    def note(self, message):
        self._write(event="note", message=message)

    def bill(self, cost):
        energy = cost.get("energy") or {}
        figures = {key: energy.get(key) for key in ("kwh", "co2e_g", "source", "g_per_kwh", "reason")}
        self._write(
            event="bill", seconds=cost.get("seconds_total"), phases=cost.get("seconds"), bytes_up=cost.get("bytes_up"),
            bytes_down=cost.get("bytes_down"), energy=figures,
        )  # fmt: skip

    def _write(self, **event) -> None:
        self.stream.write(json.dumps(event, ensure_ascii=False) + "\n")
        self.stream.flush()
