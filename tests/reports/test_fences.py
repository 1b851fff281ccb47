"""One method that went astray does not shrink the others in drawings."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from fmtlbench.reports.fences import find_fences
from fmtlbench.reports.figure_style import bend_axis

ALIKE = [0.0, 1.0, 2.0, 3.0, -4.0, -5.0, -6.0]


def test_fences_are_tukeys_outer_ones():
    low, high = find_fences([*range(1, 10)])  # quartiles 3 and 7
    assert (low, high) == (3 - 12, 7 + 12)


@pytest.mark.parametrize("values", [[], [0.0, 1.0, -400.0], [0.0] * 7 + [5.0]])
def test_too_few_or_too_equal_values_have_no_fences(values):
    assert find_fences(values) == (float("-inf"), float("inf"))


def test_an_axis_bends_for_what_is_far_away_and_says_so():
    axes = Figure().add_subplot()
    axes.set_ylabel("Δm (%) ↑")
    axes.plot([*ALIKE, -400.0])
    bend_axis(axes, [*ALIKE, -400.0])
    assert axes.get_ylabel() == "Δm (%) ↑, log beyond ±6" and axes.get_yscale() == "symlog"
    assert {-100.0, -10.0, 0.0} <= set(axes.get_yticks())
    place = axes.transData.transform
    heights = [place((0, y))[1] for y in (-400, -6, 3)]
    assert heights[0] < heights[1] < heights[2] and heights[2] - heights[1] > 0.2 * (heights[1] - heights[0])


def test_an_axis_of_values_that_lie_together_stays_as_it_is():
    axes = Figure().add_subplot(ylabel="Δm (%) ↑")
    bend_axis(axes, [*ALIKE, 7.0])
    assert axes.get_ylabel() == "Δm (%) ↑" and axes.get_yscale() == "linear"
