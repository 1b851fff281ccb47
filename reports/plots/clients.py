"""Δm by number of clients (FedHCA² Fig. 5): runs that differ in nothing else.

The numbers come from a scenario's parameter (`iid1_sdmt` with clients=8) or from its larger forms (`st_mt_1_2c`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from ..collect import RunRecord
from ..delta import Bases, Delta
from ..labels import zoo_rank
from ..settings import setting_values
from ._curves import PlotError
from .style import legend_below, new_figure, styled, styles


def scaled(runs: Sequence[RunRecord], notes: list[str]) -> list[RunRecord]:
    """Return runs that differ in the number of clients only; of several sets the one with most numbers and methods."""
    values = setting_values(runs)
    sets: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        rest = values[run.setting, run.data_key].apart_from(["clients"])
        sets.setdefault((run.data_key, rest), []).append(run)

    def size(of: list[RunRecord]) -> tuple[int, int, int]:
        return len({len(run.summary["clients"]) for run in of}), len({run.label for run in of}), len(of)

    best = max(sets.values(), key=size, default=[])
    if len(sets) > 1:
        notes.append(
            f"{len(sets)} settings that differ in more than the number of clients; drawn is the one of "
            f"{best[0].name}, left out are {len(runs) - len(best)} runs of others"
        )
    return best


def clients_points(runs: Sequence[RunRecord], split: str = "global", delta: Delta | None = None) -> pd.DataFrame:
    """Return (label, seed, clients, delta_m) of every run; unless a reference is named, the local ones are the zero."""
    bases = Bases(runs, split, delta)
    zero = () if bases.rule.reference else (bases.rule.baseline,)
    shown = [run for run in runs if not {run.summary["algorithm"], run.row[0]} & set(zero)]
    if not shown:
        raise PlotError(f"nothing to draw: all runs are {bases.rule.baseline} ones, which are the zero of Δm")
    bases.check(shown)
    rows = [
        {
            "label": run.label,
            "seed": run.summary["seed"],
            "clients": len(run.summary["clients"]),
            "delta_m": bases.delta(run, run.summary["scores"]),
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
    """Draw one line per method over the number of clients, with bars of one standard deviation over seeds."""
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
