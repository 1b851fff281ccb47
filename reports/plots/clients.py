"""Δm by number of clients (FedHCA² Fig. 5): runs that differ in nothing else.

The numbers come from a scenario's parameter (`iid1_sdmt` with clients=8) or from its larger forms (`st_mt_1_2c`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ..collect import RunRecord
from ..labels import zoo_rank
from ..settings import flat, scenario_parameters
from ._curves import Baselines, PlotError, primary
from .style import legend_below, new_figure, styled, styles

# Of a config: what the number of clients changes, or what is no part of a setting.
_APART = ("scenario.", "algorithm.", "seed", "checkpoint_every", "data.workers", "model.weights")


def family(scenario: str) -> str:
    """`st_mt_1_4c` is `st_mt_1` with four times the clients."""
    return re.sub(r"_\d+c$", "", scenario)


def scaled(runs: Sequence[RunRecord], notes: list[str]) -> list[RunRecord]:
    """Runs that differ in the number of clients only; of several such sets the one with most numbers and methods."""
    rest_of: dict[tuple[str, str], str] = {}
    sets: dict[str, list[RunRecord]] = {}
    for run in runs:
        key = (run.setting, run.data_key)
        if key not in rest_of:  # one config per setting is read
            rest_of[key] = repr((family(run.summary["scenario"]), run.data_key, _rest(run)))
        sets.setdefault(rest_of[key], []).append(run)

    def size(of: list[RunRecord]) -> tuple[int, int, int]:
        return len({len(run.summary["clients"]) for run in of}), len({run.label for run in of}), len(of)

    best = max(sets.values(), key=size, default=[])
    if len(sets) > 1:
        notes.append(
            f"{len(sets)} settings that differ in more than the number of clients; drawn is the one of "
            f"{best[0].name}, left out are {len(runs) - len(best)} runs of others"
        )
    return best


def _rest(run: RunRecord) -> list[tuple[str, Any]]:
    """The setting without the number of clients: from the config, or from the summary where that is lost."""
    s = run.summary
    values = {k: v for k, v in flat(run.config).items() if k and not k.startswith(_APART)}
    if not values:
        values = {k: v for k, v in (s.get("setting_text") or {}).items() if k != "scenario_parameters"}
    values |= {key: s.get(key) for key in ("preset", "data", "rounds", "device")}
    values |= {f"scenario.{k}": v for k, v in scenario_parameters(run).items() if not k.startswith("clients")}
    return sorted(values.items(), key=lambda item: item[0])


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
