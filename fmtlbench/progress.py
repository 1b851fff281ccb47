"""What a running command tells: bars on a terminal, one JSON object per round elsewhere. Always on stderr."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


class Quiet:
    """Tells nothing: the Python API's default."""

    def begin(self, rounds: int, done: int, steps_per_round: int) -> None: ...

    def preparing(self, what: str, done: int, total: int) -> None: ...

    def step(self, party: Any, watch: Any) -> None: ...

    def round_done(self, row: dict[str, Any], seconds: dict[str, float]) -> None: ...

    def pretraining(self, what: str, step: int, steps: int, loss: float) -> None: ...

    def note(self, message: str) -> None: ...

    def bill(self, cost: dict[str, Any]) -> None: ...

    def end(self) -> None: ...


class JsonLines(Quiet):
    """One line per round and per message, for logs and other programs."""

    def __init__(self, stream=None) -> None:
        self.stream = stream or sys.stderr
        self.pretrained: dict[str, tuple[int, float]] = {}  # the first step that was told, and when

    def begin(self, rounds, done, steps_per_round):
        self.rounds, self.first, self.started = rounds, done, time.monotonic()
        self._write(event="begin", rounds=rounds, done=done, steps_per_round=steps_per_round)

    def round_done(self, row, seconds):
        left = (self.rounds - row["round"]) * (time.monotonic() - self.started) / (row["round"] - self.first)
        scores = [r for r in row.get("scores", ()) if r["primary"]]
        self._write(
            event="round", round=row["round"], rounds=self.rounds, seconds=round(sum(seconds.values()), 3),
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


class Bars(Quiet):
    """A bar for the whole run and one for the round at hand, with the losses of the client that trains."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Eta

        self.console = console or Console(stderr=True)
        # Names and paths come from users: "[x]" in them is text, not markup.
        self.plain = {"highlight": False, "markup": False, "emoji": False}
        self.bars = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            Eta(), TextColumn("{task.fields[detail]}", markup=False), console=self.console, transient=True,
        )  # fmt: skip
        self.tasks: dict[str, Any] = {}
        self.shown = 0.0

    def preparing(self, what, done, total):
        if what not in self.tasks:
            self.bars.start()
            self.tasks[what] = self.bars.add_task(what, total=total, detail="")
        self.bars.update(self.tasks[what], completed=done, visible=done < total)

    def begin(self, rounds, done, steps_per_round):
        self.rounds, self.steps, self.round = rounds, steps_per_round, done
        self.bars.start()
        self.run_bar = self.bars.add_task("run", total=rounds * steps_per_round, detail="")
        self.round_bar = self.bars.add_task("", total=steps_per_round, detail="")
        self.bars.update(self.run_bar, completed=done * steps_per_round)
        self._name_round()

    def _name_round(self):
        self.bars.reset(self.round_bar, description=f"round {self.round + 1}/{self.rounds}", total=self.steps)

    def step(self, party, watch):
        self.bars.advance(self.run_bar)
        self.bars.advance(self.round_bar)
        if time.monotonic() - self.shown > 0.2:  # reading a loss is a sync on a GPU
            self.shown = time.monotonic()
            detail = " ".join(f"{task} {loss:.3f}" for task, loss in watch.latest().items())
            self.bars.update(self.round_bar, detail=f"{party.id}: {detail}")

    def round_done(self, row, seconds):
        self.round = row["round"]
        self.bars.update(self.run_bar, completed=self.round * self.steps)  # absent clients took no steps
        scores = [r for r in row.get("scores", ()) if r["primary"] and r["value"] is not None]
        if scores:
            text = "  ".join(f"{r['client']} {r['task']} {r['metric']} {r['value']:.4g}" for r in scores)
            self.console.print(f"round {row['round']}: {text}", style="dim", **self.plain)
        if self.round < self.rounds:
            self._name_round()

    def pretraining(self, what, step, steps, loss):
        self.preparing(what, step, steps)
        self.bars.update(self.tasks[what], detail=f"loss {loss:.3f}")

    def note(self, message):
        self.console.print(message, style="yellow", **self.plain)

    def bill(self, cost):
        from .cost.bill import bill_lines

        for line in bill_lines(cost):
            self.console.print(line, style="dim", **self.plain)

    def end(self):
        self.bars.stop()
