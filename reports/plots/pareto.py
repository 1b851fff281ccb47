"""Δm against its cost, the front marked; --cost.

The cost is time, energy or traffic.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...base.errors import unknown
from ..collect import Collection, RunRecord
from ..delta import Bases, Delta
from ..figure_style import DELTA, GREY, bend_axis, legend_below, panel_grid, styled, styles
from ..labels import zoo_rank
from ..units import choose_unit
from . import Options
from ._choose_runs import draw_settings, drawable, say_delta, say_spread
from ._curves import PlotError

COSTS = {"seconds": ("time", "s"), "kwh": ("energy", "kWh"), "bytes": ("communication", "GB")}
HEIGHT = 2.1  # inches of a panel
SHOWS_DELTA = True


def reads(options: Options) -> tuple[str, ...]:
    return ("cost",)


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    def points_of(runs: list[RunRecord], title: str) -> list[tuple[str, pd.DataFrame]]:
        runs = drawable(runs, notes, lambda run: cost_of(run, options.cost))
        points = pareto_points(runs, options.cost, options.split, options.delta)
        notes.append(say_delta(runs, options))
        return [(title, points)]

    panels = draw_settings(collection, options, notes, points_of)
    say_spread([points for _, points in panels], notes, "bars")
    return pareto_figure(panels, options.cost)


def pareto_points(
    runs: Sequence[RunRecord], cost: str = "seconds", split: str = "global", delta: Delta | None = None
) -> pd.DataFrame:
    """Return (label, seed, cost, delta_m) of every run; those that Δm is against have 0."""
    bases = Bases(runs, split, delta)
    bases.check(runs)
    return pd.DataFrame(
        {
            "label": run.label,
            "seed": run.summary["seed"],
            "cost": cost_of(run, cost),
            "delta_m": bases.delta(run, run.summary["scores"]),
        }
        for run in sorted(runs, key=lambda r: (zoo_rank(r.method), r.label))
    )


def cost_of(run: RunRecord, cost: str) -> float:
    """Return what a run has cost; a PlotError if its files do not tell."""
    if cost not in COSTS:
        raise unknown("cost", cost, COSTS, "--cost")
    if (found := _cost(run, cost)) is None:
        raise PlotError(f"{run.name}: no {cost} in its files")
    return found


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
def pareto_figure(panels: Sequence[tuple[str, pd.DataFrame]], cost: str = "seconds") -> Figure:
    """Draw the titled tables of points, a panel each: one point per method, with bars of one standard deviation."""
    look = styles(dict.fromkeys(label for _, points in panels for label in points["label"]))
    figure, places = panel_grid(len(panels), HEIGHT)
    handles: dict[str, Line2D] = {}
    for axes, (title, points) in zip(places, panels):
        handles |= _draw_panel(axes, title, points, cost, look)
    front_line = {"linestyle": "-", "color": GREY, "linewidth": 0.8}
    handles["Pareto front"] = Line2D([], [], marker="o", markersize=6, markerfacecolor="none", **front_line)
    legend_below(figure, list(handles.values()), list(handles), handle=1.4)
    return figure


def _draw_panel(axes: Axes, title: str, points: pd.DataFrame, cost: str, look: dict) -> dict[str, Line2D]:
    what, unit = COSTS[cost]
    unit, factor = choose_unit(unit, points["cost"])
    axes.set(title=title, xlabel=f"{what} ({unit}) ↓", ylabel=DELTA)
    by_label = points.assign(cost=points["cost"] * factor).groupby("label", sort=False)[["cost", "delta_m"]]
    mean, spread = by_label.mean(), by_label.std(ddof=1).fillna(0)
    on = front(mean["cost"].tolist(), mean["delta_m"].tolist())
    axes.step(mean["cost"].iloc[on], mean["delta_m"].iloc[on], where="post", color=GREY, linewidth=0.8, zorder=1)
    handles = {}
    for k, label in enumerate(mean.index):
        x, y = mean.loc[label]
        left, right = min(x, spread.loc[label, "cost"]), spread.loc[label, "cost"]  # nothing costs less than nothing
        bars = {"xerr": [[left], [right]], "yerr": spread.loc[label, "delta_m"], "elinewidth": 0.6}
        handles[label] = axes.errorbar(x, y, label=label, zorder=3, **bars, **look[label].point())[0]
        if k in on:
            axes.plot(x, y, "o", markersize=9, markerfacecolor="none", markeredgecolor=GREY, zorder=2)
    if mean["cost"].min() > 0 and mean["cost"].max() / mean["cost"].min() > 20:
        axes.set_xscale("log")
    bend_axis(axes, mean["delta_m"].tolist())
    axes.margins(0.08)
    axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    return handles
