"""p-values of all pairs of methods; --correction.

FMTL-Bench's Fig. 4, a heat map.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap
from matplotlib.figure import Figure

from ..collect import Collection
from ..figure_style import WIDTH, heat_map, new_figure, styled, text_width
from . import Options
from ._choose_runs import analyse_chosen

STEPS = (0.0, 0.001, 0.01, 0.05, 0.1, 1.0)
SHADES = ("#08519c", "#3182bd", "#9ecae1", "#e3eef9", "#f7f7f7")


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    analysis = analyse_chosen(collection, options, notes)
    notes += analysis.pair_notes
    return pvalues_figure(analysis.wilcoxon_table(), options.alpha, pvalues_label(options.correction))


def pvalues_label(correction: str) -> str:
    return f"Wilcoxon p, {correction.capitalize()}-corrected"


@styled
def pvalues_figure(table: pd.DataFrame, alpha: float = 0.05, label: str = "p") -> Figure:
    """Draw the lower triangle; p below `alpha` is in bold.

    Args:
        table: Symmetric, methods by methods.
        alpha: The level of significance.
        label: What the colour bar says, for example which test and correction.
    """
    names = list(table)
    k = len(names)
    cell = 0.32  # inches: room for <.001
    wide, high = cell * (k - 1) + text_width(names[1:]) + 0.3, cell * (k - 1) + 0.7 * text_width(names[:-1]) + 0.85
    figure = new_figure(high, max(WIDTH, wide))
    axes = figure.add_subplot()
    lower = table.to_numpy()[1:, :-1]
    shown = np.where(np.tri(k - 1, dtype=bool), lower, np.nan)
    colours = LinearSegmentedColormap.from_list("p", SHADES, N=len(SHADES))
    image = heat_map(axes, shown, cmap=colours, norm=BoundaryNorm(STEPS, colours.N))
    for i in range(k - 1):
        for j in range(i + 1):
            p = lower[i, j]
            look = {"color": "white" if p < 0.01 else "black", "fontweight": "bold" if p < alpha else "normal"}
            axes.text(j, i, short_p(p), ha="center", va="center", fontsize=7, **look)
    axes.set_xticks(range(k - 1), names[:-1], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(k - 1), names[1:])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks([x + 0.5 for x in range(k - 2)], minor=True)
    axes.set_yticks([y + 0.5 for y in range(k - 2)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="minor", length=0)
    bar = figure.colorbar(image, ax=axes, location="top", spacing="uniform", aspect=30, pad=0.02, ticks=STEPS[1:-1])
    bar.ax.set_xticklabels([f"{step:g}" for step in STEPS[1:-1]])
    bar.set_label(label)
    bar.outline.set_linewidth(0.4)
    return figure


def short_p(p: float) -> str:
    """Return p as wide as a cell: .034, <.001, 1."""
    if p < 0.001:
        return "<.001"
    if p > 0.9995:
        return "1"
    return f"{p:.3f}"[1:] if p < 0.1 else f"{p:.2f}"[1:]
