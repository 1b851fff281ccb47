"""Δm or one metric over rounds, energy, traffic or time (FMTL-Bench Fig. 3): mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...errors import unknown
from ...tasks import title_of
from ..collect import RunRecord
from ..delta import Bases, Delta
from ..labels import zoo_rank
from ._curves import AMOUNTS, PlotError, evaluated
from .style import arrow, legend_below, new_figure, styled, styles


def rounds_curves(
    runs: Sequence[RunRecord],
    x: str = "rounds",
    split: str = "global",
    task: str | None = None,
    client: str | None = None,
    delta: Delta | None = None,
) -> tuple[pd.DataFrame, str, str]:
    """Return rows (label, seed, round, x, y), and what the axes say.

    Δm as `delta` asks for it, against final scores, unless a task or client is named: then the task's metric, averaged
    over the clients that have it.
    """
    if x not in AMOUNTS:
        raise unknown("x axis", x, AMOUNTS, "--x")
    xlabel, amount = AMOUNTS[x]
    bases = Bases(runs, split, delta)
    if not (task or client):
        bases.check(runs)
    rows, ylabels = [], set()
    for run in sorted(runs, key=lambda r: (zoo_rank(r.summary["algorithm"]), r.label, r.summary["seed"])):
        used = amount(run)
        for round_, records in evaluated(run, split).items():
            if round_ not in used:
                raise PlotError(f"{run.name}: round {round_} was evaluated, but has no {x} in the run's files")
            if task or client:
                y, ylabel = _metric(run, records, task, client)
                ylabels.add(ylabel)
            else:
                y = bases.delta(run, records)
            point = {"label": run.label, "seed": run.summary["seed"], "round": round_, "x": used[round_], "y": y}
            rows.append(point)
    if len(ylabels) > 1:
        raise PlotError(f"several metrics cannot share an axis: {', '.join(sorted(ylabels))}; name one with --task")
    return pd.DataFrame(rows), xlabel, next(iter(ylabels), "Δm (%) ↑")


def _metric(run: RunRecord, records: list[dict], task: str | None, client: str | None) -> tuple[float, str]:
    mine = [r for r in records if (task is None or r["task"] == task) and (client is None or r["client"] == client)]
    if not mine:
        wanted = " and ".join(f"{w} {n!r}" for w, n in (("client", client), ("task", task)) if n)
        there = ", ".join(f"{r['client']}/{r['task']}" for r in records)
        raise PlotError(f"{run.name}: no score of {wanted}; there are {there}")
    names = {(r["task"], r["metric"], r["higher_is_better"]) for r in mine}
    if len(names) > 1:
        tasks = ", ".join(r["task"] for r in mine)
        raise PlotError(f"client {client!r} has several metrics; name one with --task: {tasks}")
    task, metric, up = names.pop()
    missing = [r["client"] for r in mine if r["value"] is None]
    if missing:
        raise PlotError(f"{run.name}: {task} has no value for {', '.join(missing)}")
    title = title_of(task)
    return fmean(r["value"] for r in mine), f"{title} {metric} {arrow(up)}"


@styled
def rounds_figure(curves: pd.DataFrame, xlabel: str, ylabel: str) -> Figure:
    """Draw one line per method: the mean over seeds, and a band of one standard deviation where there are several."""
    figure = new_figure(2.1)
    axes = figure.add_subplot(xlabel=xlabel, ylabel=ylabel)
    look = styles(curves["label"])
    for label, of in curves.groupby("label", sort=False):
        seeds = of["seed"].nunique()
        by_round = of.groupby("round")
        if (by_round["seed"].nunique() < seeds).any():
            raise PlotError(f"{label}: its {seeds} seeds were not evaluated in the same rounds, so they have no mean")
        x, mean = by_round["x"].mean(), by_round["y"].mean()
        every = max(1, len(x) // 6)  # a dozen markers say which line it is; a hundred would hide it
        axes.plot(x, mean, label=label, markevery=every, **look[label].line())
        if seeds > 1:
            spread = by_round["y"].std(ddof=1)
            axes.fill_between(x, mean - spread, mean + spread, color=look[label].color, alpha=0.15, linewidth=0)
    if ylabel.startswith("Δm"):
        axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    if xlabel == AMOUNTS["rounds"][0]:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))  # one round is one tick
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.margins(x=0.02)
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure
