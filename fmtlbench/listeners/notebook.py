"""A bar below the cell of a notebook."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from ..base.words import say_duration
from ..exchange import Party
from ..runs.records import RoundRow, TimingRow
from ._base import LISTENERS, Listener, Losses, Start


def in_notebook() -> bool:
    """Say whether this process is the kernel of a notebook; a terminal's IPython is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@LISTENERS.register("notebook")
class Notebook(Listener):
    """One bar that is drawn anew in its place, with the rounds, the time left and the last scores."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.shown = 0.0
        self.notes: list[str] = []

    def preparing(self, what: str, done: int, total: int) -> None:
        self._show(f"{what}: {done} of {total}", done, total, now=done == total)

    def begin(self, start: Start) -> None:
        self.rounds, self.first, self.done = start.rounds, start.done, start.done
        self.steps, self.all_steps, self.began = 0, start.steps_per_round, time.monotonic()
        self.scores = ""
        self._show_rounds(now=True)

    def step(self, party: Party, watch: Losses) -> None:
        self.steps += 1
        self._show_rounds()

    def round_done(self, row: RoundRow, timing: TimingRow) -> None:
        self.done, self.steps = row["round"], 0
        scores = [r for r in row.get("scores", ()) if r["primary"] and r["value"] is not None]
        if scores:
            self.scores = "; ".join(f"{r['client']} {r['task']} {r['metric']} {r['value']:.4g}" for r in scores)
        self._show_rounds(now=True)

    def note(self, message: str) -> None:
        self.notes.append(message)
        if self.handle is not None:
            self._show(*self.last, now=True)

    def _show_rounds(self, now: bool = False) -> None:
        part = min(self.steps / self.all_steps, 1.0) if self.all_steps else 0.0
        new = self.done - self.first + part
        left = (self.rounds - self.done - part) * (time.monotonic() - self.began) / new if new > 0 else None
        eta = f", about {say_duration(left)} left" if left else ""
        told = f": {self.scores}" if self.scores else ""
        self._show(f"round {self.done} of {self.rounds}{eta}{told}", self.done + part, self.rounds, now)

    def _show(self, text: str, done: float, total: float, now: bool = False) -> None:
        """Draw the bar, unless that was done just before."""
        self.last = (text, done, total)
        if not now and time.monotonic() - self.shown < 0.5:
            return
        from IPython.display import HTML, display  # a notebook brings it

        self.shown = time.monotonic()
        notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in self.notes)
        bar = f'<progress value="{done:.6g}" max="{total:.6g}" style="width:20em"></progress>'
        picture = HTML(f"<div>{bar} {escape(text)}</div>{notes}")
        if self.handle is None:
            self.handle = display(picture, display_id=True)
        else:
            self.handle.update(picture)
