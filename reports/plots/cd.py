"""critical-difference diagram; --alpha.

Average ranks, and a bar over methods that Nemenyi's test does not tell apart.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from ..collect import Collection
from ..figure_style import WIDTH, new_figure, styled, styles, text_width
from . import Options
from ._choose_runs import analyse_chosen
from ._curves import PlotError

UNIT = 0.155  # inches from one label to the next
TOP = 3.2  # labels above the axis that CD and its bar take
SHORTEST = 0.12  # inches per rank


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    analysis = analyse_chosen(collection, options, notes)
    if analysis.nemenyi is None:
        raise PlotError(f"no critical-difference diagram: {analysis.refusal}")
    return cd_figure(analysis.ranks, analysis.nemenyi, analysis.cd, options.alpha)


@styled
def cd_figure(ranks: pd.Series, p: pd.DataFrame, cd: float, alpha: float = 0.05) -> Figure:
    """Draw the diagram.

    Args:
        ranks: Average rank per method, best first.
        p: Nemenyi's p, methods by methods.
        cd: The critical difference at `alpha`.
        alpha: The level of significance.
    """
    from scikit_posthocs import critical_difference_diagram

    k = len(ranks)
    figure = new_figure(1.0)
    axes = figure.add_subplot(xlim=(1, k))
    drawn = critical_difference_diagram(
        ranks,
        p,
        alpha=alpha,
        ax=axes,
        color_palette={name: style.color for name, style in styles(ranks.index).items()},
        label_fmt_left="{label} ({rank:.2f}) ",
        label_fmt_right=" ({rank:.2f}) {label}",
        label_props={"fontsize": 7},
        elbow_props={"linewidth": 0.8},
        marker_props={"s": 9},
        crossbar_props={"linewidth": 2.2, "color": "0.25", "solid_capstyle": "butt"},
        text_h_margin=0.05 * k,
    )
    for text in drawn["labels"]:
        text.set_color("black")  # light colours make poor letters
    for artist in (*drawn["markers"], *drawn["elbows"]):  # of a method that is first or last everywhere, too
        artist.set_clip_on(False)
    lowest = min(text.get_position()[1] for text in drawn["labels"])
    start = min(float(ranks.iloc[0]), max(1.0, k - cd))
    axes.plot([start, start + cd], [1.9, 1.9], color="black", linewidth=1.2, marker="|", markersize=5)
    axes.text(start + cd / 2, 2.2, f"CD = {cd:.2f}", ha="center", va="bottom", fontsize=7)
    axes.set_ylim(lowest - 0.6, TOP)
    axes.spines["top"].set_visible(True)
    axes.set_xlabel("average rank (1 = best)")
    axes.xaxis.set_label_position("bottom")
    _place(figure, axes, drawn["labels"], k, UNIT * (TOP - lowest + 0.6))
    return figure


def _place(figure: Figure, axes: Axes, labels: list[Text], k: int, height: float) -> None:
    """Make room for the labels on both sides; the axis takes the rest, and the page grows where that is too little."""
    axes.set_xlim(1, k)
    left, right, axis = 0.0, 0.0, WIDTH
    for _ in range(20):  # labels begin at a rank, so how far they stick out depends on the length of the axis
        inch = axis / (k - 1)
        wide = [(text.get_ha(), text.get_position()[0], text_width([text.get_text()]) + 0.08) for text in labels]
        left = max([0.08, *(w - (x - 1) * inch for side, x, w in wide if side == "right")])
        right = max([0.08, *(w - (k - x) * inch for side, x, w in wide if side == "left")])
        axis = max(WIDTH - left - right, SHORTEST * (k - 1), 1.5)
    width, total = left + axis + right, height + 0.3
    figure.set_layout_engine("none")
    figure.set_size_inches(width, total)
    axes.set_position((left / width, 0.3 / total, axis / width, height / total))
    axes.xaxis.set_major_locator(FixedLocator(range(1, k + 1, 1 if axis / (k - 1) > 0.15 else 2)))
