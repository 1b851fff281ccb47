"""The figures of the tests between methods: critical differences, and p-values of all pairs."""

from __future__ import annotations

from matplotlib.figure import Figure

from ..plots.cd import cd_figure
from ..plots.pvalues import pvalues_figure, pvalues_label
from .analysis import Analysis


def draw_tests(analysis: Analysis) -> dict[str, Figure]:
    """Draw what the tests found, by name; a critical difference only where there is one."""
    label = pvalues_label(analysis.correction)
    figures = {"pvalues": pvalues_figure(analysis.wilcoxon_table(), analysis.alpha, label)}
    if analysis.cd is not None:
        figures["cd"] = cd_figure(analysis.ranks, analysis.nemenyi, analysis.cd, analysis.alpha)
    return figures
