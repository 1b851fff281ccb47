"""Δm by number of clients (FedHCA² Fig. 5): runs of one scenario with different parameter values."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ..collect import RunRecord
from ..labels import zoo_rank
from ._curves import Baselines, PlotError, primary
from .style import legend_below, new_figure, styled, styles


def clients_points(runs: Sequence[RunRecord], split: str = "global") -> pd.DataFrame:
    """(label, seed, clients, delta_m) of every run but the local ones, which are the zero."""
    baselines = Baselines(runs, split)
    shown = [run for run in runs if run.summary["algorithm"] != "local"]
    if not shown:
        raise PlotError("nothing to draw: all runs are local ones, which are the zero of Δm")
    baselines.check(shown)
    rows = [
        {
            "label": run.label,
            "seed": run.summary["seed"],
            "clients": len(run.summary["clients"]),
            "delta_m": baselines.delta(run, primary(run.summary["scores"], split)),
        }
        for run in sorted(shown, key=lambda r: (zoo_rank(r.summary["algorithm"]), r.label))
    ]
    points = pd.DataFrame(rows)
    counts = points["clients"].unique()
    if len(counts) < 2:
        raise PlotError(f"all runs have {counts[0]} clients; runs with at least two numbers of clients are needed")
    return points


@styled
def clients_figure(points: pd.DataFrame) -> Figure:
    """One line per method over the number of clients, with bars of one standard deviation over seeds."""
    figure = new_figure(2.0)
    axes = figure.add_subplot(xlabel="number of clients", ylabel="Δm (%) ↑")
    counts = sorted(points["clients"].unique())
    look = styles(points["label"])
    labels = list(dict.fromkeys(points["label"]))
    for k, label in enumerate(labels):
        own = points[points["label"] == label].groupby("clients")["delta_m"]
        mean, spread = own.mean(), own.std(ddof=1)
        shift = (k - (len(labels) - 1) / 2) * 0.5 / max(len(labels), 6)  # bars side by side, not on top of each other
        x = [counts.index(n) + shift for n in mean.index]
        bars = spread.fillna(0).to_numpy() if spread.notna().any() else None
        axes.errorbar(x, mean, bars, label=label, elinewidth=0.7, capsize=1.5, **look[label].line())
    axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.margins(x=0.06)
    handles, names = axes.get_legend_handles_labels()
    legend_below(figure, [h[0] for h in handles], names)
    return figure
