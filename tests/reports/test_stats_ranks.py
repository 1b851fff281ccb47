"""Tests on ranks against the worked example of Demšar (2006) and against arithmetic by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from demsar import AUC, NAMES

from fmtlbench.reports.stats.ranks import (
    StatsError,
    average_ranks,
    critical_difference,
    critical_q,
    friedman,
    iman_davenport,
    nemenyi,
)


def test_average_ranks_of_the_literature():
    ranks = average_ranks(AUC)
    assert list(ranks.index) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert [round(ranks[name], 3) for name in NAMES] == [3.143, 2.0, 2.893, 1.964]


def test_friedman_of_the_literature():
    """The paper does not correct for ties; scipy does: 14 blocks hold three pairs and one foursome of equal scores."""
    found = friedman(AUC)
    assert found.chi2_without_ties == pytest.approx(9.28, abs=0.005)
    assert iman_davenport(found.chi2_without_ties, 14, 4)[0] == pytest.approx(3.69, abs=0.005)
    ties = 1 - (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4))
    assert found.chi2 == pytest.approx(found.chi2_without_ties / ties)
    assert found.f == pytest.approx(13 * found.chi2 / (14 * 3 - found.chi2))
    assert (found.blocks, found.methods) == (14, 4) and found.f_p < found.p < 0.05


@pytest.mark.parametrize(
    "alpha, row",
    [
        (0.05, (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)),
        (0.10, (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)),
    ],
)
def test_critical_values_are_table_5(alpha, row):
    assert [critical_q(k, alpha) for k in range(2, 11)] == pytest.approx(row, abs=1.1e-3)


def test_critical_difference_of_the_literature():
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)


def test_nemenyi_agrees_with_the_critical_difference():
    """At the level at which the gap is critical, p is that level."""
    ranks, p = average_ranks(AUC), nemenyi(AUC)
    for a in NAMES:
        for b in NAMES:
            gap = abs(ranks[a] - ranks[b])
            assert (p.loc[a, b] < 0.1) == (gap > critical_difference(4, 14, 0.1)), (a, b)
            if a != b:
                assert gap == pytest.approx(critical_difference(4, 14, p.loc[a, b]), rel=1e-3)
    assert list(p.index) == list(p.columns) == list(NAMES) and np.allclose(p, p.T)


def test_less_is_better_mirrors_everything():
    up, down = average_ranks(AUC), average_ranks(-AUC)
    assert all(up[name] + down[name] == pytest.approx(5) for name in NAMES)
    assert friedman(-AUC).chi2 == pytest.approx(friedman(AUC).chi2)
    pd.testing.assert_frame_equal(nemenyi(-AUC), nemenyi(AUC))


def test_by_hand():
    """Three blocks that agree on a > b > c: ranks 1, 2, 3; χ² = 12·3/(3·4) · (1 + 4 + 9 − 12) = 6, the most."""
    found = friedman(pd.DataFrame({"a": [3.0, 30, 9], "b": [2.0, 20, 5], "c": [1.0, 10, 1]}))
    assert found.chi2 == pytest.approx(6) and found.f == float("inf") and found.f_p == 0


def test_all_ties_show_no_difference():
    same = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in "abc"})
    found = friedman(same)
    assert (found.chi2, found.p, found.f, found.f_p) == (0, 1, 0, 1)
    assert average_ranks(same).tolist() == [2, 2, 2] and (nemenyi(same) == 1).all(axis=None)


@pytest.mark.parametrize(
    "matrix, words",
    [
        (AUC[["C4.5", "C4.5+m"]], "at least 3 methods, and here are 2"),
        (AUC.iloc[:1], "at least 2 blocks"),
        (AUC.replace(1000.0, np.nan), "missing"),
    ],
)
@pytest.mark.parametrize("test", [friedman, nemenyi])
def test_too_little_is_refused(test, matrix, words):
    with pytest.raises(StatsError, match=words):
        test(matrix)
