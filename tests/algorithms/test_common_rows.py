"""Server steps that end in one row, and the election of signs: compiled, by torch, and as their formulas say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fmtlbench.exchange import common_rows, signs
from fmtlbench.exchange.algebra import COMPILED_ROWS
from fmtlbench.exchange.common_rows import Rule, move_mean, optimize_mean

WIDTH = 5000
RULES = [
    Rule("momentum", lr=0.7, beta1=0.9),
    Rule("adam", lr=0.01, beta1=0.9, beta2=0.99, tau=1e-3),
    Rule("yogi", lr=0.01, beta1=0.5, beta2=0.9, tau=1e-2),
    Rule("drift", lr=0.6),
]
by_rule = pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
# Compiled up to COMPILED_ROWS, and by torch beyond.
by_count = pytest.mark.parametrize("rows", [1, 2, 3, COMPILED_ROWS, COMPILED_ROWS + 1, 20])


def problem(rows, seed=0, width=WIDTH):
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.5, 2, rows)
    before, update = rng.normal(size=(rows, width)), 0.1 * rng.normal(size=(rows, width))
    after = torch.from_numpy((before + update).astype(np.float32))
    return after, torch.from_numpy(before.astype(np.float32)), shares / shares.sum(), rng.normal(size=rows)


@by_count
def test_the_mean_start_moves_by_the_combined_updates(rows):
    after, before, shares, coefficients = problem(rows)
    expected = shares @ before.double().numpy() + coefficients @ (after - before).double().numpy()
    np.testing.assert_allclose(move_mean(after, before, shares, coefficients), expected, atol=2e-6)


@by_count
@by_rule
def test_rules_follow_their_formulas_over_rounds(rows, rule):
    moments, m, v = None, np.zeros(WIDTH), np.full(WIDTH, rule.tau**2)
    for seed in range(3):
        after, before, shares, _ = problem(rows, seed)
        u = shares @ (after.double() - before.double()).numpy()
        if rule.name == "momentum":
            m = rule.beta1 * m + u
            step = rule.lr * m
        elif rule.name == "drift":
            m = m + rule.lr * u
            step = u + m
        else:
            m = rule.beta1 * m + (1 - rule.beta1) * u
            if rule.name == "adam":
                v = rule.beta2 * v + (1 - rule.beta2) * u**2
            else:
                v = v - (1 - rule.beta2) * u**2 * np.sign(v - u**2)
            step = rule.lr * m / (np.sqrt(v) + rule.tau)
        new, moments = optimize_mean(after, before, shares, rule, moments)
        np.testing.assert_allclose(new, shares @ before.double().numpy() + step, atol=2e-6)
        np.testing.assert_allclose(moments, [m, v] if rule.name in ("adam", "yogi") else [m], atol=1e-7, rtol=1e-5)


@by_count
@by_rule
def test_equal_starts_are_their_mean_to_the_last_bit(rows, rule):
    """One row in memory that all see, as while a run goes on, or copies of it, as in one that was resumed."""
    after, before, shares, coefficients = problem(rows)
    seen, copies = before[:1].expand_as(before), before[:1].repeat(rows, 1)
    assert torch.equal(move_mean(seen, copies, shares, coefficients), before[0])
    moved = [move_mean(after, starts, shares, coefficients) for starts in (seen, copies)]
    assert torch.equal(*moved)
    optimized = [optimize_mean(after, starts, shares, rule, None) for starts in (seen, copies)]
    assert all(map(torch.equal, *optimized))


@pytest.mark.parametrize("rows", [3, 12])
def test_part_of_the_columns_of_wider_rows_is_enough(rows):
    after, before, shares, coefficients = problem(rows)
    part = slice(0, 77)
    whole = move_mean(after, before, shares, coefficients)
    found = move_mean(after[:, part], before[:, part], shares, coefficients)
    torch.testing.assert_close(found, whole[part], atol=1e-6, rtol=1e-6)


def test_more_columns_than_a_block_has(monkeypatch):
    after, before, shares, coefficients = problem(12)
    whole = move_mean(after, before, shares, coefficients)
    elected, own, agreed = signs.elect(after, before[0])
    rebuilt = signs.rebuild(after, before[0], elected, own / agreed)
    monkeypatch.setattr("fmtlbench.exchange.algebra.BLOCK", 12 * 999)
    torch.testing.assert_close(move_mean(after, before, shares, coefficients), whole, atol=1e-6, rtol=1e-6)
    again, own2, agreed2 = signs.elect(after, before[0])
    assert torch.equal(again, elected)
    np.testing.assert_allclose((own2, agreed2), (own, agreed))
    assert torch.equal(signs.rebuild(after, before[0], elected, own / agreed), rebuilt)


# -- signs -------------------------------------------------------------------------------------------------------------


def elect_by_hand(vectors):
    sigma = np.where(vectors.mean(0) > 0, 1.0, -1.0)
    masks = vectors * sigma > 0
    unified = sigma * np.abs(masks * vectors).max(0)
    return unified, masks


@by_count
def test_election_and_rebuilding_follow_their_formulas(rows):
    after, before, _, _ = problem(rows)
    after[:, ::7] = before[0, ::7]  # columns in which nobody moved
    base = before[0]
    vectors = (after - base).double().numpy()
    unified, masks = elect_by_hand(vectors)
    elected, own, agreed = signs.elect(after, base)
    np.testing.assert_array_equal(elected, unified)
    np.testing.assert_allclose(own, np.abs(vectors).sum(1))
    np.testing.assert_allclose(agreed, np.abs(masks * unified).sum(1))
    factors = own / agreed
    rebuilt = signs.rebuild(after, base, elected, factors)
    np.testing.assert_allclose(rebuilt, base.numpy() + factors[:, None] * masks * unified, atol=2e-6, rtol=1e-6)


@pytest.mark.parametrize("rows", [2, 10])
def test_vectors_too_small_to_be_squared_vote_by_their_signs(rows):
    vectors = 1e-30 * np.random.default_rng(0).normal(size=(rows, 50))
    after, base = torch.from_numpy(vectors.astype(np.float32)), torch.zeros(50)
    unified, masks = elect_by_hand(after.double().numpy())
    elected, _, _ = signs.elect(after, base)
    np.testing.assert_array_equal(elected, unified)
    rebuilt = signs.rebuild(after, base, elected, np.ones(rows))
    np.testing.assert_array_equal(rebuilt.numpy() != 0, masks)


def test_both_ways_are_tested():
    """Few rows in main memory are compiled, doubles are not: the tests above would not notice if nothing were."""
    after, before, shares, coefficients = problem(3)
    assert common_rows._is_for_kernels(after, before)
    wide = move_mean(after.double(), before.double(), shares, coefficients)
    assert wide.dtype == torch.float64
    torch.testing.assert_close(move_mean(after, before, shares, coefficients), wide.float(), atol=2e-6, rtol=1e-6)
