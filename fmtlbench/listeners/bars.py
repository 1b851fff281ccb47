"""Bars on a terminal, on stderr."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypedDict

from ..exchange import Party
from ..runs.records import Cost, RoundRow, TimingRow
from ._base import LISTENERS, Listener, Losses, Start

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID


class _PrintOptions(TypedDict):
    highlight: bool
    markup: bool
    emoji: bool


@LISTENERS.register("bars")
class Bars(Listener):
    """A bar for the whole run and one for the round at hand, with the losses of the client that trains."""

    def __init__(self, console: Console | None = None, shows_bill: bool = True) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.console, self.shows_bill = console or Console(stderr=True), shows_bill
        # Names and paths come from users: "[x]" in them is text, not markup.
        self.plain: _PrintOptions = {"highlight": False, "markup": False, "emoji": False}
        columns = (
            *(TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()),
            *(TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[detail]}", markup=False)),
        )
        self.bars = Progress(*columns, console=self.console, transient=True)
        self.tasks: dict[str, TaskID] = {}
        self.shown = 0.0

    def preparing(self, what: str, done: int, total: int) -> None:
        if what not in self.tasks:
            self.bars.start()
            self.tasks[what] = self.bars.add_task(what, total=total, detail="")
        self.bars.update(self.tasks[what], completed=done, visible=done < total)

    def begin(self, start: Start) -> None:
        self.rounds, self.steps, self.round = start.rounds, start.steps_per_round, start.done
        self.bars.start()
        self.run_bar = self.bars.add_task("run", total=self.rounds * self.steps, detail="")
        self.round_bar = self.bars.add_task("", total=self.steps, detail="")
        self.bars.update(self.run_bar, completed=self.round * self.steps)
        self._name_round()

    def _name_round(self) -> None:
        self.bars.reset(self.round_bar, description=f"round {self.round + 1}/{self.rounds}", total=self.steps)

    def step(self, party: Party, watch: Losses) -> None:
        self.bars.advance(self.run_bar)
        self.bars.advance(self.round_bar)
        if time.monotonic() - self.shown > 0.2:  # reading a loss is a sync on a GPU
            self.shown = time.monotonic()
            detail = " ".join(f"{task} {loss:.3f}" for task, loss in watch.latest().items())
            self.bars.update(self.round_bar, detail=f"{party.id}: {detail}")

    def round_done(self, row: RoundRow, timing: TimingRow) -> None:
        self.round = row["round"]
        self.bars.update(self.run_bar, completed=self.round * self.steps)  # absent clients took no steps
        scores = [r for r in row.get("scores", ()) if r["primary"] and r["value"] is not None]
        if scores:
            text = "  ".join(f"{r['client']} {r['task']} {r['metric']} {r['value']:.4g}" for r in scores)
            self.console.print(f"round {row['round']}: {text}", style="dim", **self.plain)
        if self.round < self.rounds:
            self._name_round()

    def note(self, message: str) -> None:
        self.console.print(message, style="yellow", **self.plain)

    def bill(self, cost: Cost) -> None:
        from ..cost.bill import bill_lines

        for line in bill_lines(cost) if self.shows_bill else ():
            self.console.print(line, style="dim", **self.plain)

    def end(self) -> None:
        self.bars.stop()
