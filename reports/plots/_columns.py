"""Which columns of the tables a figure shows, a panel each; a task on two datasets is two columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ...base.errors import unknown
from ...tasks import in_columns, title_of
from ..collect import RunRecord
from ..columns import At, names_of_datasets, order_columns
from ..figure_style import arrow
from ._curves import PlotError

ALL = "all"  # tasks: a panel each


@dataclass(frozen=True)
class Choice:
    """What a user asked for instead of Δm; nothing: Δm."""

    task: str | None = None  # or `ALL`
    dataset: str | None = None
    client: str | None = None

    def __bool__(self) -> bool:
        return bool(self.task or self.dataset or self.client)

    def takes(self, score: Mapping[str, Any]) -> bool:
        wanted = {"task": None if self.task == ALL else self.task, "dataset": self.dataset, "client": self.client}
        return all(value in (None, score[key]) for key, value in wanted.items())

    def words(self) -> str:
        given = (("client", self.client), ("task", self.task if self.task != ALL else None), ("dataset", self.dataset))
        return " and ".join(f"{what} {name!r}" for what, name in given if name) or "any task"


@dataclass(frozen=True)
class Panel:
    """One column, or what one client has of it: how to read it from scores, and what the axes say."""

    at: At
    client: str | None
    title: str
    ylabel: str

    def value(self, run: RunRecord, records: Iterable[Mapping[str, Any]], split: str) -> float:
        """Return the mean over the clients that have the column, or the client's value, from a run's scores."""
        mine = [
            r
            for r in records
            if r["primary"]
            and r["split"] == split
            and (r["dataset"], r["task"], r["metric"]) == self.at
            and self.client in (None, r["client"])
        ]
        if not mine:
            raise PlotError(f"{run.name}: no score of {'/'.join(self.at)} on split {split!r}")
        missing = [r["client"] for r in mine if r["value"] is None]
        if missing:
            raise PlotError(f"{run.name}: {self.at[1]} has no value for {', '.join(missing)}")
        return fmean(r["value"] for r in mine)


def find_panels(runs: Sequence[RunRecord], split: str, choice: Choice) -> list[Panel]:
    """Return the columns that are meant, in the order of the tables.

    Raises:
        UsageError: No client or dataset of that name.
        PlotError: There is no such score, or there are several tasks and none was named.
    """
    scores = [s for run in runs for s in run.summary["scores"] if s["primary"] and s["split"] == split]
    if not scores:
        raise PlotError(f"{runs[0].name}: no scores of split {split!r}")
    if choice.dataset and choice.dataset not in (datasets := sorted({s["dataset"] for s in scores})):
        raise unknown("dataset", choice.dataset, datasets, "--dataset")
    mine = [score for score in scores if choice.takes(score)]
    if not mine:
        there = dict.fromkeys(f"{s['client']}/{s['task']}" for s in scores)
        shown = ", ".join(list(there)[:12]) + (", …" if len(there) > 12 else "")
        raise PlotError(f"{runs[0].name}: no score of {choice.words()}; there are {shown}")
    tasks = in_columns({score["task"] for score in mine})
    if choice.task is None and len(tasks) > 1:
        raise PlotError(f"{choice.words()} has several metrics; name one with --task, or all: {', '.join(tasks)}")
    members: dict[At, dict[str, None]] = {}
    better: dict[At, bool] = {}
    for score in mine:
        at = (score["dataset"], score["task"], score["metric"])
        members.setdefault(at, {})[score["client"]] = None
        better[at] = score["higher_is_better"]
    names = names_of_datasets(runs)
    return [
        Panel(
            at,
            choice.client,
            f"{names[at[0]]} {title_of(at[1])}" + (f" of {choice.client}" if choice.client else ""),
            f"{title_of(at[1])} {at[2]} {arrow(better[at])}",
        )
        for at in order_columns(members, runs)
    ]
