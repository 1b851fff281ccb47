"""Δm by number of clients.

FedHCA²'s Fig. 5: runs that differ in nothing else, also by a column of the tables. The numbers come from a scenario's
parameter (`iid1_sdmt` with clients=8) or from its larger forms (`st_mt_1_2c`).
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...config.setting import scenario_family
from ..collect import Collection, RunRecord
from ..delta import Delta
from ..figure_style import DELTA, legend_below, panel_grid, styled, styles
from . import Options
from ._choose_runs import asked_columns, runs_of_one_setting, runs_of_scenario, say_spread
from ._columns import Panel
from ._curves import PlotError
from ._scaled import Points, choose_set, draw_means, read_points, shift_of

HEIGHT = 2.0  # inches of a panel
SHOWS_DELTA = True


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    names = {run.summary["scenario"] for run in collection.runs}
    if options.scenario is None and len(set(map(scenario_family, names))) > 1:
        runs_of_scenario(collection.runs, None)  # says which there are
    runs = [run for run in collection.runs if options.scenario in (None, scenario_family(run.summary["scenario"]))]
    runs = scaled(runs or runs_of_scenario(collection.runs, options.scenario), notes)
    kept = []
    for count in sorted(set(map(count_clients, runs))):
        same = [run for run in runs if count_clients(run) == count]
        kept += runs_of_one_setting(collection, same, notes)
    panels = [
        clients_points(kept, options.split, options.delta, column) for column in asked_columns(kept, options, notes)
    ]
    say_spread([panel.rows for panel in panels], notes, "bars")
    return clients_figure(panels)


def scaled(runs: Sequence[RunRecord], notes: list[str]) -> list[RunRecord]:
    """Return runs that differ in the number of clients only; of several sets the one with most numbers and methods."""
    return choose_set(runs, ["clients"], count_clients, "the number of clients", notes)


def count_clients(run: RunRecord) -> int:
    return len(run.summary["clients"])


def clients_points(
    runs: Sequence[RunRecord], split: str = "global", delta: Delta | None = None, column: Panel | None = None
) -> Points:
    """Return a point of every run over its number of clients: Δm, or a column of the tables."""
    points = read_points(runs, lambda run: (run.label, count_clients(run)), split, column, delta)
    counts = points.rows["x"].unique()
    if len(counts) < 2:
        raise PlotError(f"all runs have {counts[0]} clients; runs with at least two numbers of clients are needed")
    return points


@styled
def clients_figure(panels: Sequence[Points]) -> Figure:
    """Draw one line per method over the number of clients, with bars of one standard deviation over seeds."""
    look = styles(dict.fromkeys(label for panel in panels for label in panel.rows["label"]))
    figure, places = panel_grid(len(panels), HEIGHT)
    for axes, panel in zip(places, panels):
        _draw_panel(axes, panel, look)
    drawn = {box.get_label(): box[0] for axes in places for box in axes.containers}
    legend_below(figure, [drawn[label] for label in look], list(look))
    return figure


def _draw_panel(axes: Axes, panel: Points, look: dict) -> None:
    axes.set(xlabel="number of clients", ylabel=panel.ylabel, title=panel.title)
    counts = sorted(panel.rows["x"].unique())
    methods = list(panel.rows.groupby("label", sort=False))
    for k, (label, own) in enumerate(methods):
        draw_means(axes, label, own["x"].map(counts.index) + shift_of(k, len(methods)), own["y"], look[label])
    if panel.ylabel == DELTA:
        axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    axes.set_xticks(range(len(counts)), [str(n) for n in counts])
    axes.margins(x=0.06)
