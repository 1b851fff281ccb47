"""Scores against something that runs differ in, and in nothing else: what clients and sweep share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from ..collect import RunRecord
from ..delta import Bases, Delta
from ..figure_style import DELTA, Style
from ..labels import zoo_rank
from ..settings import setting_values
from ._columns import Panel
from ._curves import PlotError


@dataclass(frozen=True)
class Points:
    """The points of one panel: rows (label, seed, x, y), what the vertical axis says, and the panel's title."""

    rows: pd.DataFrame
    ylabel: str = DELTA
    title: str = ""


def choose_set(
    runs: Sequence[RunRecord],
    axes: Sequence[str],
    value: Callable[[RunRecord], Hashable],
    what: str,
    notes: list[str],
) -> list[RunRecord]:
    """Return runs that differ in `axes` and method only; of several such sets the one with most values and methods."""
    settings = setting_values(runs)
    sets: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        rest = settings[run.setting, run.data_key].apart_from(axes)
        sets.setdefault((run.data_key, rest), []).append(run)

    def size(of: list[RunRecord]) -> tuple[int, int, int]:
        return len({value(run) for run in of}), len({run.label for run in of}), len(of)

    best = max(sets.values(), key=size, default=[])
    if len(sets) > 1:
        notes.append(
            f"{len(sets)} settings that differ in more than {what}; drawn is the one of "
            f"{best[0].name}, left out are {len(runs) - len(best)} runs of others"
        )
    return best


def read_points(
    runs: Iterable[RunRecord],
    of: Callable[[RunRecord], tuple[str, object]],
    split: str,
    column: Panel | None,
    delta: Delta | None,
) -> Points:
    """Return a point per run; `of` says a run's label and its place.

    Unless a column is named they are Δm; the baseline's runs are its zero then, and have none, but where it is against
    a named reference.
    """
    runs = sorted(runs, key=lambda run: (zoo_rank(run.method), run.label, run.summary["seed"]))
    if column is not None:
        values = [(run, column.value(run, run.summary["scores"], split)) for run in runs]
    else:
        bases = Bases(runs, split, delta)
        zero = () if bases.rule.reference else (bases.rule.baseline,)
        shown = [run for run in runs if not {run.method, run.row[0]} & set(zero)]
        if not shown:
            raise PlotError(f"nothing to draw: all runs are {bases.rule.baseline} ones, which are the zero of Δm")
        bases.check(shown)
        values = [(run, bases.delta(run, run.summary["scores"])) for run in shown]
    labels, places = zip(*(of(run) for run, _ in values))
    rows = pd.DataFrame({"label": labels, "seed": [run.summary["seed"] for run, _ in values]})
    rows["x"] = pd.Series(places, dtype=object)  # as they are: 8 is not 8.0, and null is a value
    rows["y"] = [y for _, y in values]
    ylabel, title = (DELTA, "") if column is None else (column.ylabel, column.title)
    return Points(rows, ylabel, title)


def draw_means(axes: Axes, label: str, places: pd.Series, values: pd.Series, look: Style) -> None:
    """Draw a line through the means over seeds, with bars of one standard deviation where there are several."""
    by_place = values.groupby(places)
    mean, spread = by_place.mean(), by_place.std(ddof=1)
    bars = spread.fillna(0).to_numpy() if spread.notna().any() else None
    axes.errorbar(mean.index, mean, bars, label=label, elinewidth=0.7, capsize=1.5, **look.line())


def shift_of(number: int, count: int) -> float:
    """Return how far a line's bars are moved, so that they stand side by side and not on top of each other."""
    return (number - (count - 1) / 2) * 0.5 / max(count, 6)
