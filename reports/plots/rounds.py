"""Δm or one metric over rounds, energy, traffic or time (FMTL-Bench Fig. 3): mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...errors import unknown
from ...tasks import TASKS
from ..collect import RunRecord
from ..labels import zoo_rank
from ._curves import AMOUNTS, Baselines, PlotError, evaluated
from .style import arrow, legend_below, new_figure, styled, styles


def rounds_curves(
    runs: Sequence[RunRecord],
    x: str = "rounds",
    split: str = "global",
    task: str | None = None,
    client: str | None = None,
) -> tuple[pd.DataFrame, str, str]:
    """(label, seed, round, x, y) rows, and what the axes say.

    Δm, against the final scores of the local run of the same setting and seed, unless a task or client is named: then
    the task's metric, averaged over the clients that have it.
    """  # fmt: skip
    if x not in AMOUNTS:
        raise unknown("x axis", x, AMOUNTS, "--x")
    xlabel, amount = AMOUNTS[x]
    baselines = Baselines(runs, split)
    if not (task or client):
        baselines.check(runs)
    rows, ylabels = [], set()
    for run in sorted(runs, key=lambda r: (zoo_rank(r.summary["algorithm"]), r.label, r.summary["seed"])):
        used = amount(run)
        for round_, scores in evaluated(run, split).items():
            if round_ not in used:
                raise PlotError(f"{run.name}: round {round_} was evaluated, but has no {x} in the run's files")
            if task or client:
                y, ylabel = _metric(run, scores, task, client)
                ylabels.add(ylabel)
            else:
                y = baselines.delta(run, scores)
            point = {"label": run.label, "seed": run.summary["seed"], "round": round_, "x": used[round_], "y": y}
            rows.append(point)
    if len(ylabels) > 1:
        raise PlotError(f"several metrics cannot share an axis: {', '.join(sorted(ylabels))}; name one with --task")
    return pd.DataFrame(rows), xlabel, next(iter(ylabels), "Δm (%) ↑")


def _metric(run: RunRecord, scores: dict, task: str | None, client: str | None) -> tuple[float, str]:
    mine = {k: v for k, v in scores.items() if (task is None or k[1] == task) and (client is None or k[0] == client)}
    if not mine:
        wanted = " and ".join(f"{w} {n!r}" for w, n in (("client", client), ("task", task)) if n)
        there = ", ".join(f"{c}/{t}" for c, t, _ in scores)
        raise PlotError(f"{run.name}: no score of {wanted}; there are {there}")
    names = {(k[1], k[2], up) for k, (_, up) in mine.items()}
    if len(names) > 1:
        raise PlotError(f"client {client!r} has several metrics; name one with --task: {', '.join(k[1] for k in mine)}")
    task, metric, up = names.pop()
    missing = [k[0] for k, (value, _) in mine.items() if value is None]
    if missing:
        raise PlotError(f"{run.name}: {task} has no value for {', '.join(missing)}")
    return fmean(
        value for value, _ in mine.values()
    ), f"{TASKS[task].title if task in TASKS else task} {metric} {arrow(up)}"


@styled
def rounds_figure(curves: pd.DataFrame, xlabel: str, ylabel: str) -> Figure:
    """One line per method: the mean over seeds, and a band of one standard deviation where there are several."""
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
