"""Δm over rounds, against final scores; --x kwh, bytes or hours.

FMTL-Bench's Fig. 3: also a metric instead of Δm; means over seeds, a panel per setting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...base.errors import unknown
from ..collect import Collection, RunRecord
from ..delta import Bases, Delta
from ..figure_style import (
    DELTA,
    End,
    bend_axis,
    draw_whisker,
    label_ends,
    label_lines,
    legend_below,
    panel_grid,
    styled,
    styles,
)
from ..labels import zoo_rank
from ..units import choose_unit
from . import Options
from ._choose_runs import asked_columns, draw_settings, say_spread
from ._columns import Panel
from ._curves import AMOUNTS, PlotError, evaluated

HEIGHT = 2.1  # inches of a panel, unless it has more labels than fit
SHOWS_DELTA = True


def reads(options: Options) -> tuple[str, ...]:
    return ("rounds", "timing") if options.x in ("kwh", "hours") else ("rounds",)


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    def curves_of(runs: list[RunRecord], title: str) -> list[Curves]:
        columns = asked_columns(runs, options, notes)
        found = [rounds_curves(runs, options.x, options.split, column, options.delta) for column in columns]
        notes.extend(filter(None, [found[0].left_out]))
        return [replace(curves, title="\n".join(filter(None, (title, curves.title)))) for curves in found]

    panels = draw_settings(collection, options, notes, curves_of)
    say_spread([panel.rows for panel in panels], notes, "whiskers")
    return rounds_figure(panels)


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
    column: Panel | None = None,
    delta: Delta | None = None,
) -> Curves:
    """Return the lines of runs of one setting; a run that kept no scores by round has none.

    Δm as `delta` asks for it, against final scores, unless a column is named: then its metric.
    """
    what, unit, _ = _amount(x)
    bases = Bases(runs, split, delta)
    if column is None:
        bases.check(runs)
    rows, lost = [], []
    for run in sorted(runs, key=lambda r: (zoo_rank(r.method), r.label, r.summary["seed"])):
        try:
            by_round = used_when_scored(run, x, split)
        except PlotError as error:
            lost.append(error)
            continue
        for round_, (used, records) in by_round.items():
            y = bases.delta(run, records) if column is None else column.value(run, records, split)
            point = {"label": run.label, "seed": run.summary["seed"], "round": round_, "x": used, "y": y}
            rows.append(point)
    if not rows:
        raise lost[0]
    frame = pd.DataFrame(rows)
    chosen, factor = choose_unit(unit, frame["x"])
    if factor != 1.0:
        frame["x"] *= factor
    xlabel = f"{what} ({chosen})" if chosen else what
    more = f", and {len(lost) - 1} more such runs" if len(lost) > 1 else ""
    ylabel, title = (DELTA, "") if column is None else (column.ylabel, column.title)
    return Curves(frame, xlabel, ylabel, title, left_out=f"left out: {lost[0]}{more}" if lost else "")


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
    bend_axis(axes, panel.rows.groupby(["label", "round"])["y"].mean().groupby("label").last().tolist())
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
            draw_whisker(axes, end, spread, look[label], k - (len(methods) - 1) / 2, axes.transData)
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
