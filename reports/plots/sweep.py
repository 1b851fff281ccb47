"""Δm by the value of an option, of the method or of anything else; --option algo.friends, train.lr, ….

MaT-FL's Fig. 4: also a column of the tables; methods that do not vary are lines across.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...base.errors import UsageError, unknown
from ...config.setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS, check_axis, is_below
from ..collect import Collection, RunRecord
from ..delta import Delta
from ..figure_style import DELTA, Style, draw_whisker, legend_below, panel_grid, styled, styles
from ..labels import Labels, option_text, read_label, write_label
from ..settings import setting_values
from . import Options
from ._choose_runs import asked_columns, runs_of_one_setting, runs_of_scenario, say_spread
from ._columns import Panel
from ._curves import PlotError
from ._scaled import Points, choose_set, draw_means, read_points, shift_of

HEIGHT = 2.1  # inches of a panel
METHOD = "algo."
SCENARIO = "scenario."
DECADES = 100.0  # a larger ratio of the ends is drawn on a logarithmic axis
MOST_TICKS, APART = 8, 0.07  # values that stand at the axis themselves, and the part of it between two of them
SHOWS_DELTA = True


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    if options.option is None:
        raise UsageError("sweep: which option? For example --option algo.friends, or --option train.lr")
    runs, sweep = swept(runs_of_scenario(collection.runs, options.scenario), options.option, notes)
    kept = []
    for table in dict.fromkeys(run.table for run in runs):
        kept += runs_of_one_setting(collection, [run for run in runs if run.table == table], notes)
    columns = asked_columns(kept, options, notes)
    panels = [sweep_points(kept, sweep, options.split, options.delta, column) for column in columns]
    say_spread([panel.rows for panel in panels], notes, "bars")
    return sweep_figure(panels, sweep)


@dataclass(frozen=True)
class Sweep:
    """What every run has of an option, by the run's name, and the lines that runs are points of."""

    option: str
    values: Mapping[str, Hashable]  # of the runs that have it
    labels: Mapping[str, str]
    across: tuple[str, ...]  # labels without a second value

    def place(self, run: RunRecord) -> tuple[str, object]:
        return self.labels[run.name], self.values.get(run.name)


def swept(runs: Sequence[RunRecord], option: str, notes: list[str]) -> tuple[list[RunRecord], Sweep]:
    """Return runs that differ in the option and the method only, and what they have of the option.

    Args:
        runs: Of one scenario.
        option: A dotted path as `--set` takes it: algo.friends, train.lr, scenario.clients, …
        notes: Told what is left out, and which methods have no second value.

    Raises:
        UsageError: No run has such an option.
        PlotError: No method has two values of it.
    """
    values, axes = _option_values(runs, option)
    kept = choose_set(runs, axes, lambda run: values.get(run.name), option, notes)
    bare = _labels_without(kept, option)
    seen: dict[str, set[Hashable]] = {label: set() for label in bare.values()}
    for run in kept:
        if run.name in values:
            seen[bare[run.name]].add(values[run.name])
    varied = {label for label, found in seen.items() if len(found) > 1}
    if not varied:
        raise PlotError(f"--option {option}: {_say_values(seen)}; runs of a method with at least two values are needed")
    labels = {run.name: bare[run.name] if bare[run.name] in varied else run.label for run in kept}
    across = tuple(dict.fromkeys(label for label in labels.values() if label not in varied))
    fixed = {labels[run.name]: values[run.name] for run in kept if labels[run.name] in across and run.name in values}
    if fixed:
        told = ", ".join(f"{label} ({option_text(value)})" for label, value in fixed.items())
        notes.append(f"lines across that have one value of {option}: {told}")
    return kept, Sweep(option, values, labels, across)


def _option_values(runs: Sequence[RunRecord], option: str) -> tuple[dict[str, Hashable], list[str]]:
    """Return the option's value by run, and the axes of a setting in which runs may differ with it."""
    if _is_of_method(option):
        options = {run.name: _own_options(run.summary) for run in runs}
        known = sorted({key for of in options.values() for key in of})
        if option not in known:
            raise unknown("option of these runs' methods", option, known, "--option")
        return {run: _plain(of[option]) for run, of in options.items() if option in of}, []
    settings = setting_values(runs)
    known = {path for setting in settings.values() for path in setting.values}
    path, axes = option, [option]
    parameter = f"scenario.parameters.{option.removeprefix(SCENARIO)}"
    if option in ("clients", "scenario.clients"):
        return {run.name: len(run.summary["clients"]) for run in runs}, ["clients"]
    if option.startswith(SCENARIO) and parameter in known:
        path, axes = parameter, [parameter, "scenario.clients"]  # most parameters say how many there are
    check_axis(path, known, "--option")
    return {run.name: _plain(settings[run.setting, run.data_key].value(path)) for run in runs}, axes


def _is_of_method(option: str) -> bool:
    """Return whether an option is of the method or of its weighting, not of the setting."""
    return option.startswith(METHOD) or is_below(option, (WEIGHTING, WEIGHTING_OPTIONS))


def _own_options(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run's method and of its weighting, as `--set` names them."""
    weighting = summary.get("weighting") or {"name": EQUAL, "options": {}}
    return {
        **{f"{METHOD}{name}": value for name, value in (summary.get("options") or {}).items()},
        WEIGHTING: weighting["name"],
        **{f"{WEIGHTING_OPTIONS}.{name}": value for name, value in weighting["options"].items()},
    }


def _without(summary: Mapping[str, Any], option: str) -> dict[str, Any]:
    """Return a summary that does not tell an option of the method or its weighting."""
    section, _, name = option.rpartition(".")
    if option == WEIGHTING:
        return {**summary, "weighting": None}
    holder = summary if section == METHOD.rstrip(".") else summary.get("weighting") or {}
    bare = {**holder, "options": {key: value for key, value in (holder.get("options") or {}).items() if key != name}}
    return bare if holder is summary else {**summary, "weighting": bare if holder else None}


def _plain(value: Any) -> Hashable:
    """Return a number or word as it is, and what is neither as its text, so that values can be told apart."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else option_text(value)


def _labels_without(runs: Sequence[RunRecord], option: str) -> dict[str, str]:
    """Return the runs' labels without an option of their methods, by the run's name."""
    if not _is_of_method(option):
        return {run.name: run.label for run in runs}
    name = option.rpartition(".")[2]
    bare = [_without(run.summary, option) for run in runs]
    whole, rest = Labels([run.summary for run in runs]), Labels(bare)
    found = {}
    for run, summary in zip(runs, bare, strict=True):
        usual = whole.of(run.summary)
        if run.label.startswith(usual):  # what follows tells apart methods, files, code and what --rows names
            found[run.name] = rest.of(summary) + run.label.removeprefix(usual)
        else:  # called by somebody otherwise
            title, options = read_label(run.label)
            found[run.name] = write_label(title, {k: v for k, v in options.items() if k != name})
    return found


def _say_values(seen: Mapping[str, set[Hashable]]) -> str:
    parts = [f"{label} has {', '.join(map(option_text, found)) or 'none'}" for label, found in seen.items()]
    return "; ".join(parts[:4]) + ("; …" if len(parts) > 4 else "")


def sweep_points(
    runs: Sequence[RunRecord],
    sweep: Sweep,
    split: str = "global",
    delta: Delta | None = None,
    column: Panel | None = None,
) -> Points:
    """Return a point of every run over the option's value: Δm, or a column of the tables."""
    points = read_points(runs, sweep.place, split, column, delta)
    if points.rows["label"].isin(sweep.across).all():
        raise PlotError(f"--option {sweep.option}: nothing but lines across is left; Δm has no line for its baseline")
    return points


@styled
def sweep_figure(panels: Sequence[Points], sweep: Sweep) -> Figure:
    """Draw a line per method over the option's values, with bars of one standard deviation over seeds.

    A method with one value is a line across, with its bar at the right end.
    """
    look = styles(dict.fromkeys(label for panel in panels for label in panel.rows["label"]))
    figure, places = panel_grid(len(panels), HEIGHT)
    handles: dict[str, Any] = {}
    for axes, panel in zip(places, panels):
        handles |= _draw_panel(axes, panel, sweep, look)
    order = sorted(look, key=lambda label: label in sweep.across)  # what varies comes first
    legend_below(figure, [handles[label] for label in order], order)
    return figure


def _draw_panel(axes: Axes, panel: Points, sweep: Sweep, look: dict[str, Style]) -> dict[str, Any]:
    axes.set(xlabel=sweep.option, ylabel=panel.ylabel, title=panel.title)
    varied = panel.rows[~panel.rows["label"].isin(sweep.across)]
    values = in_order(varied["x"])
    numeric = all(map(_is_number, values))
    handles: dict[str, Any] = {}
    lines = list(varied.groupby("label", sort=False))
    for k, (label, own) in enumerate(lines):
        places = own["x"].astype(float) if numeric else own["x"].map(values.index) + shift_of(k, len(lines))
        draw_means(axes, label, places, own["y"], look[label])
        handles[label] = axes.containers[-1][0]
    fixed = list(panel.rows[panel.rows["label"].isin(sweep.across)].groupby("label", sort=False))
    for k, (label, own) in enumerate(fixed):
        mean, spread = own["y"].mean(), own["y"].std(ddof=1)
        handles[label] = axes.axhline(mean, label=label, **{**look[label].line(), "marker": None})
        if len(own) > 1:
            draw_whisker(axes, (1, mean), spread, look[label], k - len(fixed), axes.get_yaxis_transform())
            axes.update_datalim([(0, mean - spread), (0, mean + spread)], updatex=False)
    if panel.ylabel == DELTA:
        axes.axhline(0, color="0.6", linewidth=0.6, zorder=0)
    if numeric:
        _number_axis(axes, values)
    else:
        axes.set_xticks(range(len(values)), [option_text(value) for value in values])
    axes.margins(x=0.06 + 0.012 * len(fixed))  # the lines' bars stand right of the last value
    axes.autoscale_view()
    return handles


def in_order(values: Iterable[Any]) -> list[Any]:
    """Return each value once: numbers by size, then words."""
    once = dict.fromkeys(values)
    return sorted(once, key=lambda v: (0, v, "") if _is_number(v) else (1, 0, option_text(v)))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number_axis(axes: Axes, values: Sequence[float]) -> None:
    """Let an axis of numbers be logarithmic where it must, and name the values themselves where they have room."""
    wide = values[0] > 0 and values[-1] / values[0] > DECADES
    if wide:
        axes.set_xscale("log")
    at = np.log(values) if wide else np.array(values, float)
    if len(values) <= MOST_TICKS and (np.diff(at) >= APART * (at[-1] - at[0])).all():
        axes.set_xticks(values, [option_text(value) for value in values])
        axes.minorticks_off()
    elif not wide:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=all(isinstance(value, int) for value in values)))
