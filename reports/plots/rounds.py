"""Δm or metrics over rounds, energy, traffic or time (FMTL-Bench Fig. 3): means over seeds, a panel per setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from ...errors import unknown
from ...tasks import in_columns, title_of
from ..collect import RunRecord
from ..delta import Bases, Delta
from ..labels import zoo_rank
from ..units import choose_unit
from ._curves import AMOUNTS, PlotError, evaluated
from .style import End, arrow, label_ends, label_lines, legend_below, panel_grid, styled, styles

APART = 2.5  # points between whiskers
HEIGHT = 2.1  # inches of a panel, unless it has more labels than fit
DELTA = "Δm (%) ↑"


@dataclass(frozen=True)
class Curves:
    """The lines of one panel: rows (label, seed, round, x, y), what the axes say, and the panel's title."""

    rows: pd.DataFrame
    xlabel: str
    ylabel: str
    title: str = ""
    left_out: str = ""  # which runs have no line, and why


def rounds_curves(
    runs: Sequence[RunRecord],
    x: str = "rounds",
    split: str = "global",
    task: str | None = None,
    client: str | None = None,
    delta: Delta | None = None,
) -> Curves:
    """Return the lines of runs of one setting; a run that kept no scores by round has none.

    Δm as `delta` asks for it, against final scores, unless a task or client is named: then the task's metric, averaged
    over the clients that have it.
    """
    what, unit, _ = _amount(x)
    bases = Bases(runs, split, delta)
    if not (task or client):
        bases.check(runs)
    rows, ylabels, lost = [], set(), []
    for run in sorted(runs, key=lambda r: (zoo_rank(r.summary["algorithm"]), r.label, r.summary["seed"])):
        try:
            by_round = used_when_scored(run, x, split)
        except PlotError as error:
            lost.append(error)
            continue
        for round_, (used, records) in by_round.items():
            if task or client:
                y, ylabel = _metric(run, records, task, client)
                ylabels.add(ylabel)
            else:
                y = bases.delta(run, records)
            point = {"label": run.label, "seed": run.summary["seed"], "round": round_, "x": used, "y": y}
            rows.append(point)
    if len(ylabels) > 1:
        raise PlotError(f"several metrics cannot share an axis: {', '.join(sorted(ylabels))}; name one with --task")
    if not rows:
        raise lost[0]
    frame = pd.DataFrame(rows)
    chosen, factor = choose_unit(unit, frame["x"])
    if factor != 1.0:
        frame["x"] *= factor
    xlabel, ylabel = f"{what} ({chosen})" if chosen else what, next(iter(ylabels), DELTA)
    more = f", and {len(lost) - 1} more such runs" if len(lost) > 1 else ""
    return Curves(frame, xlabel, ylabel, left_out=f"left out: {lost[0]}{more}" if lost else "")


def scored_tasks(runs: Sequence[RunRecord], split: str, client: str | None = None) -> list[str]:
    """Return the tasks with a primary score on the split, in the order of the tables' columns."""
    found = {
        score["task"]
        for run in runs
        for score in run.summary["scores"]
        if score["primary"] and score["split"] == split and client in (None, score["client"])
    }
    return in_columns(found)


def _amount(x: str) -> tuple[str, str, Callable[[RunRecord], dict[int, float]]]:
    if x not in AMOUNTS:
        raise unknown("x axis", x, AMOUNTS, "--x")
    return AMOUNTS[x]


def used_when_scored(run: RunRecord, x: str, split: str) -> dict[int, tuple[float, list[dict]]]:
    """Return of every round that was evaluated what had been used up until then, and the scores.

    Raises:
        PlotError: The run's files do not tell.
    """
    used, scores = _amount(x)[2](run), evaluated(run, split)
    for round_ in scores:
        if round_ not in used:
            raise PlotError(f"{run.name}: round {round_} was evaluated, but has no {x} in the run's files")
    return {round_: (used[round_], records) for round_, records in scores.items()}


def _metric(run: RunRecord, records: list[dict], task: str | None, client: str | None) -> tuple[float, str]:
    mine = [r for r in records if (task is None or r["task"] == task) and (client is None or r["client"] == client)]
    if not mine:
        wanted = " and ".join(f"{w} {n!r}" for w, n in (("client", client), ("task", task)) if n)
        there = ", ".join(f"{r['client']}/{r['task']}" for r in records)
        raise PlotError(f"{run.name}: no score of {wanted}; there are {there}")
    names = {(r["task"], r["metric"], r["higher_is_better"]) for r in mine}
    if len(names) > 1:
        tasks = ", ".join(r["task"] for r in mine)
        raise PlotError(f"client {client!r} has several metrics; name one with --task, or all: {tasks}")
    task, metric, up = names.pop()
    missing = [r["client"] for r in mine if r["value"] is None]
    if missing:
        raise PlotError(f"{run.name}: {task} has no value for {', '.join(missing)}")
    title = title_of(task)
    return fmean(r["value"] for r in mine), f"{title} {metric} {arrow(up)}"


@styled
def rounds_figure(panels: Sequence[Curves]) -> Figure:
    """Draw one line per method, named at its end; a whisker there shows one standard deviation over seeds.

    Over rounds all lines end at the same place; where they do not, a legend names them.
    """
    look = styles(dict.fromkeys(label for panel in panels for label in panel.rows["label"]))
    labels = [list(dict.fromkeys(panel.rows["label"])) for panel in panels]
    figure, places = panel_grid(len(panels), HEIGHT, max(map(label_lines, labels)))
    ends = [_draw_panel(axes, panel, look) for axes, panel in zip(places, panels)]
    if all(panel.xlabel == AMOUNTS["rounds"][0] for panel in panels):
        label_ends(figure, places, ends)
    else:
        drawn = {line.get_label(): line for axes in places for line in axes.lines if line.get_label() in look}
        legend_below(figure, [drawn[label] for label in look], list(look))
    return figure


def _draw_panel(axes: Axes, panel: Curves, look: dict) -> list[End]:
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
    ends = []
    methods = list(panel.rows.groupby("label", sort=False))
    for k, (label, of) in enumerate(methods):
        seeds = of["seed"].nunique()
        by_round = of.groupby("round")
        if (by_round["seed"].nunique() < seeds).any():
            raise PlotError(f"{label}: its {seeds} seeds were not evaluated in the same rounds, so they have no mean")
        x, mean = by_round["x"].mean(), by_round["y"].mean()
        every = max(1, len(x) // 6)  # a dozen markers say which line it is; a hundred would hide it
        axes.plot(x, mean, label=label, markevery=every, **look[label].line())
        end = x.iloc[-1], mean.iloc[-1]
        if seeds > 1:
            spread = by_round["y"].std(ddof=1).iloc[-1]
            beside = ScaledTranslation(APART / 72 * (k - (len(methods) - 1) / 2), 0, axes.figure.dpi_scale_trans)
            thin = {"color": look[label].color, "elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
            axes.errorbar(*end, spread, transform=axes.transData + beside, **thin)
            axes.update_datalim([(end[0], end[1] - spread), (end[0], end[1] + spread)])
        ends.append(End(label, end, look[label].color))
    if panel.ylabel == DELTA:
        axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    if panel.xlabel == AMOUNTS["rounds"][0]:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))  # one round is one tick
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.margins(x=0.03)
    axes.autoscale_view()
    return ends
