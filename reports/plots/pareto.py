"""What a method costs against what it gains: Δm over seconds, energy or traffic, the front marked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...errors import unknown
from ..collect import RunRecord
from ..delta import Bases, Delta
from ..labels import zoo_rank
from ._curves import PlotError
from .style import GREY, legend_below, new_figure, styled, styles

COSTS = {"seconds": "time (s) ↓", "kwh": "energy (kWh) ↓", "bytes": "communication (GB) ↓"}


def pareto_points(
    runs: Sequence[RunRecord], cost: str = "seconds", split: str = "global", delta: Delta | None = None
) -> pd.DataFrame:
    """Return (label, seed, cost, delta_m) of every run; those that Δm is against have 0."""
    if cost not in COSTS:
        raise unknown("cost", cost, COSTS, "--cost")
    lacking = [run.name for run in runs if _cost(run, cost) is None]
    if lacking:
        raise PlotError(f"no {cost} in {len(lacking)} of {len(runs)} runs: {', '.join(lacking[:3])}")
    bases = Bases(runs, split, delta)
    bases.check(runs)
    return pd.DataFrame(
        {
            "label": run.label,
            "seed": run.summary["seed"],
            "cost": _cost(run, cost),
            "delta_m": bases.delta(run, run.summary["scores"]),
        }
        for run in sorted(runs, key=lambda r: (zoo_rank(r.summary["algorithm"]), r.label))
    )


def _cost(run: RunRecord, cost: str) -> float | None:
    if cost == "seconds":
        return run.cost.get("seconds_total")
    if cost == "kwh":
        return (run.cost.get("energy") or {}).get("kwh")
    both = [run.summary.get(key, run.cost.get(key)) for key in ("bytes_up", "bytes_down")]
    return None if None in both else sum(both) / 1e9


def front(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Return the points that no other point beats in both, by rising cost."""
    order = sorted(range(len(cost)), key=lambda i: (cost[i], -gain[i]))
    kept, best = [], float("-inf")
    for i in order:
        if gain[i] > best:
            kept.append(i)
            best = gain[i]
    return kept


@styled
def pareto_figure(points: pd.DataFrame, cost: str = "seconds") -> Figure:
    """Draw one point per method: means over seeds, with bars of one standard deviation."""
    figure = new_figure(2.1)
    axes = figure.add_subplot(xlabel=COSTS[cost], ylabel="Δm (%) ↑")
    look = styles(points["label"])
    by_label = points.groupby("label", sort=False)[["cost", "delta_m"]]
    mean, spread = by_label.mean(), by_label.std(ddof=1).fillna(0)
    on = front(mean["cost"].tolist(), mean["delta_m"].tolist())
    axes.step(mean["cost"].iloc[on], mean["delta_m"].iloc[on], where="post", color=GREY, linewidth=0.8, zorder=1)
    for k, label in enumerate(mean.index):
        x, y = mean.loc[label]
        bars = {"xerr": spread.loc[label, "cost"], "yerr": spread.loc[label, "delta_m"], "elinewidth": 0.6}
        axes.errorbar(x, y, label=label, zorder=3, **bars, **look[label].point())
        if k in on:
            axes.plot(x, y, "o", markersize=9, markerfacecolor="none", markeredgecolor=GREY, zorder=2)
    if mean["cost"].min() > 0 and mean["cost"].max() / mean["cost"].min() > 20:
        axes.set_xscale("log")
    axes.margins(0.08)
    handles, labels = axes.get_legend_handles_labels()
    ring = Line2D([], [], linestyle="-", color=GREY, linewidth=0.8, marker="o", markersize=6, markerfacecolor="none")
    legend_below(figure, [*(h[0] for h in handles), ring], [*labels, "Pareto front"], handle=1.4)
    return figure
