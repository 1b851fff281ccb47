"""Wilcoxon against Demšar (2006), corrections by hand, and the probability of improvement."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from demsar import AUC
from scipy.stats import mannwhitneyu, norm, wilcoxon

from fmtlbench.base.errors import UsageError
from fmtlbench.reports.stats import StatsError
from fmtlbench.reports.stats.pairs import Runs, _spread, as_matrix, differences, improvement, wilcoxon_pairs


def test_signed_ranks_of_the_literature():
    """Demšar's Table 2: R⁺ = 93 and R⁻ = 12 for C4.5+m against C4.5, the two zeros split; critical at 0.05 is 21."""
    d = differences(AUC["C4.5+m"], AUC["C4.5"], relative=False)
    assert wilcoxon(d, zero_method="zsplit").statistic == 12
    row = wilcoxon_pairs(AUC[["C4.5", "C4.5+m"]]).iloc[0]
    assert (row["wins_a"], row["wins_b"], row["ties"]) == (2, 10, 2) and row["p"] < 0.05


def test_exact_p_by_hand():
    """Four wins of four: both extremes of 2⁴ sign patterns, p = 2/16."""
    pairs = wilcoxon_pairs(pd.DataFrame({"a": [2.0, 4, 6, 8], "b": [1.0, 2, 3, 4]}))
    assert pairs["p"].tolist() == [0.125]


def test_corrections_by_hand():
    holm, bonferroni = wilcoxon_pairs(AUC, "holm"), wilcoxon_pairs(AUC, "bonferroni")
    assert bonferroni["p_corrected"].tolist() == pytest.approx([min(1, 6 * p) for p in bonferroni["p"]])
    order = np.argsort(holm["p"].to_numpy())
    expected = np.minimum(1, np.maximum.accumulate(holm["p"].to_numpy()[order] * np.arange(6, 0, -1)))
    assert holm["p_corrected"].to_numpy()[order] == pytest.approx(expected)


def test_direction_flipped_swaps_the_wins():
    up, down = wilcoxon_pairs(AUC), wilcoxon_pairs(-AUC)
    assert up["p"].tolist() == down["p"].tolist()
    assert up["wins_a"].tolist() == down["wins_b"].tolist()


def test_all_zero_differences_have_p_one():
    same = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [3.0, 4.0]})
    pairs = wilcoxon_pairs(same)
    assert pairs.loc[0, ["p", "p_corrected", "ties"]].tolist() == [1, 1, 2] and pairs["p"].notna().all()


def test_relative_differences_have_no_unit():
    """Without it the metres of a depth error would always rank below the percent of an mIoU."""
    scores = pd.DataFrame({"a": [30.0, -0.5, 12.0], "b": [29.0, -0.6, 0.0]})
    d = differences(scores["a"].to_numpy(), scores["b"].to_numpy(), relative=True)
    assert d == pytest.approx([1 / 29.5, 0.1 / 0.55, 2])
    in_feet = scores.mul([1.0, 3.28, 1.0], axis=0)
    assert differences(in_feet["a"].to_numpy(), in_feet["b"].to_numpy(), relative=True) == pytest.approx(d)
    assert differences(np.zeros(2), np.zeros(2), relative=True).tolist() == [0, 0]


def test_one_block_says_nothing():
    assert wilcoxon_pairs(pd.DataFrame({"a": [1.0], "b": [0.0]}))["p"].tolist() == [1]


def test_refusals():
    with pytest.raises(UsageError, match="did you mean 'holm'"):
        wilcoxon_pairs(AUC, "hom")
    with pytest.raises(StatsError, match="1 on 14"):
        wilcoxon_pairs(AUC[["C4.5"]])


def test_as_matrix_is_symmetric():
    table = as_matrix(wilcoxon_pairs(AUC), list(AUC))
    assert np.allclose(table, table.T) and (np.diag(table) == 1).all()
    assert table.loc["C4.5+m", "C4.5"] == wilcoxon_pairs(AUC)["p_corrected"][0]


# -- probability of improvement --------------------------------------------------------------------------------------


def runs(blocks, first_seed=0):
    """One scenario's runs from the scores of each block, one per seed."""
    scores = np.array(blocks, dtype=float).T
    return [Runs(tuple(range(first_seed, first_seed + len(scores))), scores)]


def test_probability_by_hand():
    """First block: 3 wins and 1 tie of 4 pairs of seeds; second: 1 of 4."""
    found = improvement(runs([[2.0, 3.0], [1.0, 0.0]]), runs([[1.0, 2.0], [0.5, 1.5]]))
    assert found.probability == pytest.approx((3.5 / 4 + 1 / 4) / 2)
    assert found.low <= found.probability <= found.high and found.seeds == (2, 2) and found.blocks == 2
    assert found.how == "whole runs left out one at a time"


def test_probability_is_mann_whitneys():
    g = np.random.default_rng(1)
    a, b = g.integers(0, 5, size=(6, 4)).astype(float), g.integers(0, 5, size=(6, 3)).astype(float)
    expected = np.mean([mannwhitneyu(x, y).statistic / 12 for x, y in zip(a, b)])
    assert improvement(runs(a), runs(b)).probability == pytest.approx(expected)
    both = improvement([*runs(a[:2]), *runs(a[2:])], [*runs(b[:2]), *runs(b[2:])])  # two scenarios
    assert both.probability == pytest.approx(expected) and both.blocks == 6


def test_probability_of_equals_and_of_opposites():
    same = runs([[1.0, 2.0]] * 3)
    assert improvement(same, same).probability == 0.5
    better = improvement(runs([[2.0, 2.0], [2.0, 2.0]]), runs([[1.0, 1.0], [1.0, 1.0]]))
    assert (better.probability, better.low, better.high) == (1, None, None)  # two wins of two prove no certainty
    assert better.how.startswith("no interval")
    a, b = runs([[1.0], [5.0], [2.0]]), runs([[0.0], [6.0], [1.0]])
    assert improvement(a, b).probability == pytest.approx(1 - improvement(b, a).probability)


def test_the_jackknife_of_a_mean_is_its_standard_error_squared():
    values = np.array([1.0, 2.5, 4.0, 8.0])
    variance, freedom = _spread([np.delete(values, i).mean() for i in range(4)])
    assert freedom == 3 and variance == pytest.approx(values.var(ddof=1) / 4)


def test_one_seed_has_no_interval():
    found = improvement(runs([[1.0], [5.0]]), runs([[0.0], [6.0]]))
    assert (found.probability, found.low, found.high) == (0.5, None, None)


@pytest.mark.parametrize("seeds", [5, 20])
def test_the_interval_does_not_shrink_with_blocks_of_the_same_runs(seeds):
    """Forty copies of a block say no more than one: their runs are the same."""
    g = np.random.default_rng(seeds)
    x, y = g.normal(0.5, size=seeds), g.normal(size=seeds)
    one, many = (improvement(runs([x] * copies), runs([y] * copies)) for copies in (1, 40))
    assert (many.low, many.high) == pytest.approx((one.low, one.high))


@pytest.mark.parametrize("seeds, least", [((3, 3), 0.87), ((5, 5), 0.90), ((20, 20), 0.92), ((3, 9), 0.87)])
def test_the_interval_covers_the_probability(seeds, least):
    """Blocks that a run's luck moves together; the truth by theory: P(difference of two normals > 0).

    A little short of 95 % for few seeds, as the documents say.
    """
    g, hits, repetitions = np.random.default_rng(7), [], 600
    truth = norm.cdf(0.5 / math.sqrt(2 * (1 + 0.25)))
    for _ in range(repetitions):
        a, b = (m + g.normal(size=(1, n)) + 0.5 * g.normal(size=(6, n)) for m, n in zip((0.5, 0.0), seeds))
        found = improvement(runs(a), runs(b))
        hits += [] if found.low is None else [found.low <= truth <= found.high]
    assert len(hits) > 0.95 * repetitions
    assert least <= np.mean(hits) <= 0.99


def test_seeds_of_two_methods_need_not_be_the_same():
    g = np.random.default_rng(0)
    x, y = g.normal(0.5, size=(3, 5)), g.normal(size=(3, 4))
    found = improvement(runs(x), runs(y, first_seed=9))
    assert found.low < found.probability < found.high and found.seeds == (4, 5)


@pytest.mark.parametrize("a, b, words", [([], [], "0 scenarios"), (runs([[1.0]]), [], "has 0")])
def test_nothing_to_compare(a, b, words):
    with pytest.raises(StatsError, match=words):
        improvement(a, b)
    with pytest.raises(StatsError, match="no seed"):
        improvement([Runs((), np.zeros((0, 1)))], runs([[1.0]]))
