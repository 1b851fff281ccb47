"""Runs that go on from what a kill would leave: their folder is copied while they train, so one training is both.

What lies on the disk at a moment is what a kill at that moment leaves there. Real kills, of processes of their own, are
in engine/test_run.py, cost/test_cost_runs.py and data/test_real_end_to_end.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from fmtlbench.engine.executor import SerialExecutor
from fmtlbench.listeners import Listener
from fmtlbench.runs.result import RunResult

# What the config decides of a run's files.
NUMBERS = ("metrics.jsonl", "summary.json", "config.yaml", "sums.npz")


def numbers_of(result: RunResult) -> dict[str, bytes]:
    return {name: (result.folder / name).read_bytes() for name in NUMBERS}


class Where(Listener):
    """Knows how far a run is: its finished rounds, and the training steps of this one."""

    done, steps = 0, 0

    def begin(self, start):
        self.done, self.steps = start.done, 0

    def step(self, party, watch):
        self.steps += 1

    def round_done(self, row, timing):
        self.done, self.steps = row["round"], 0


class InRounds(Where):
    """Calls `then(number)` at a training step, counted over all clients, of some rounds; both count from 1."""

    def __init__(self, rounds: Sequence[int], step: int, then: Callable[[int], None]) -> None:
        self.rounds, self.wanted, self.then = rounds, step, then

    def step(self, party, watch):
        super().step(party, watch)
        if self.steps == self.wanted and self.done + 1 in self.rounds:
            self.then(self.done + 1)


def cuts_and_whole(run: Callable[..., RunResult], folder: Path, rounds: Sequence[int], step: int = 1, **given):
    """(the runs that go on after a cut in each of `rounds`, the same run uninterrupted); `run(out=…)` runs it.

    What else is `given` goes to the uninterrupted run alone.
    """

    def copy(number):
        shutil.copytree(folder / "whole", folder / f"cut-{number}")

    run = partial(run, checkpoint_every=1)
    whole = run(out=folder / "whole", progress=InRounds(rounds, step, copy), **given)
    resumed = [run(out=folder / f"cut-{number}") for number in rounds]
    for number, result in zip(rounds, resumed):
        sessions = json.loads((result.folder / "manifest.json").read_text())["sessions"]
        assert [session["from_round"] for session in sessions] == [1, number], "it was to go on where it was cut"
    return resumed, whole


def cut_and_whole(run: Callable[..., RunResult], folder: Path, number: int = 3, **given):
    """(the run that goes on after a cut in a round, the same run uninterrupted)."""
    (resumed,), whole = cuts_and_whole(run, folder, [number], **given)
    return resumed, whole


def whole_with_copies(run: Callable[..., RunResult], folder: Path, moments: Mapping[str, tuple]) -> RunResult:
    """An uninterrupted run; `folder / moment` is what a kill at that moment would have left of it.

    Args:
        run: `run(out=…, progress=…)` runs it.
        folder: Where it and the copies lie.
        moments: By name: an object, the name of its function, and `when`. The moment is before the first call of the
            function for which `when(where, *arguments)` says yes.
    """
    where = Where()
    with pytest.MonkeyPatch.context() as patch:
        for moment, (target, name, when) in moments.items():
            copy = partial(_copy_folder, folder / "whole", folder / moment)
            patch.setattr(target, name, _copying(getattr(target, name), partial(when, where), copy))
        whole = run(out=folder / "whole", progress=where)
    missed = [moment for moment in moments if not (folder / moment).exists()]
    assert not missed, "there were no such moments"
    return whole


def _copy_folder(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copytree(source, target)
    else:  # the run has not come so far as to make it
        target.mkdir()


def _copying(function: Callable, when: Callable[..., bool], copy: Callable[[], object]) -> Callable:
    left = [copy]

    def wrapped(*args, **kwargs):
        if left and when(*args, **kwargs):
            left.pop()()
        return function(*args, **kwargs)

    return wrapped


def about_to_send(kind: type, done: int, following: type | None = None) -> tuple:
    """The moment after `done` rounds when messages of a kind, `following` others, go to clients of this process."""
    sent: list[type] = []

    def when(where, executor, messages, *_):
        kinds = [type(message) for message in messages.values()] if where.done == done else []
        found = kind in kinds and (following is None or following in sent)
        sent.extend(kinds)
        return found

    return SerialExecutor, "map", when
