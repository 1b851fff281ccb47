"""Does the order of methods hold? Kendall's τ between two orders, and between halves of the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from ...base.seeds import stream
from ..intervals import LEVEL, REPETITIONS
from .ranks import StatsError

SPLITS = 1000  # of the seeds into halves; random ones where there are more
RESAMPLED = 100  # of these, so many for each resample of the seeds
SEEDS, METHODS = 4, 3  # at least: two in each half, and an order that is more than one comparison


def kendall_tau(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Kendall's τ-b over the last axis, for many orders at once; NaN where one of the two is all ties."""
    first, second = np.triu_indices(np.shape(a)[-1], 1)
    # Equal means differ in the last bits.
    x, y = (np.sign(np.round(v[..., first] - v[..., second], 10)) for v in (np.asarray(a, float), np.asarray(b, float)))
    size = np.sqrt(np.square(x).sum(-1) * np.square(y).sum(-1))
    return np.divide((x * y).sum(-1), size, out=np.full(np.shape(size), np.nan), where=size > 0)


@dataclass(frozen=True)
class Correlation:
    """Kendall's τ-b of two orders of the same methods."""

    tau: float
    p: float
    how: str  # the p was found


def order_correlation(a: Sequence[float], b: Sequence[float]) -> Correlation:
    """Return τ-b with its two-sided p: exact without ties, by the normal approximation with them.

    Raises:
        StatsError: For fewer than three methods, or all of them equal.
    """
    from scipy.stats import kendalltau

    if len(a) < METHODS:
        raise StatsError(f"an order needs at least {METHODS} methods, and here are {len(a)}")
    tau = float(kendall_tau(np.asarray(a), np.asarray(b)))
    if np.isnan(tau):
        raise StatsError("no order: all methods are equal on one side")
    ties = any(len(set(np.round(values, 10))) < len(values) for values in (a, b))
    how = "asymptotic" if ties else "exact"
    found = kendalltau(np.round(a, 10), np.round(b, 10), method=how)
    return Correlation(tau, float(found.pvalue), "normal approximation, with ties" if ties else "exact")


@dataclass(frozen=True)
class Agreement:
    """τ-b between the orders of two disjoint halves of the seeds, mean over splits, with an interval over seeds."""

    tau: float
    low: float
    high: float
    methods: int
    seeds: int
    splits: int
    every: bool  # all splits there are, or random ones

    def words(self) -> str:
        which = f"all {self.splits}" if self.every else f"{self.splits} random"
        return (
            f"τ between halves: Kendall's τ-b of the methods' order by mean Δm, mean over {which} splits of the seeds "
            f"into two disjoint halves; [low, high]: {100 * LEVEL:g} %, {REPETITIONS} resamples of whole seeds, "
            "for all methods together, copies of a seed in one half, percentiles moved to have the resamples' mean at τ"
        )


def half_agreement(gains: np.ndarray) -> Agreement:
    """Return how well the order of half the seeds tells that of the other half.

    An odd seed goes to the second half. A resample that drew a seed twice keeps both copies in one half, or the halves
    would agree by having it in common. It then has fewer different seeds than there are, which alone lowers τ: so the
    interval is the resamples' percentiles without the difference between their mean and the τ found.

    Args:
        gains: Δm, [seeds, methods].

    Raises:
        StatsError: For fewer than four seeds or three methods, or where no half has an order.
    """
    n, methods = gains.shape
    if n < SEEDS or methods < METHODS:
        raise StatsError(
            f"the order of halves needs at least {SEEDS} seeds common to {METHODS} methods, and here "
            f"are {n} common to {methods}"
        )
    halves, every = _splits(n)
    found = kendall_tau(_means(halves, gains), _means(1 - halves, gains))
    if np.isnan(found).all():
        raise StatsError("no order: all methods have the same Δm")
    tau = float(np.nanmean(found))
    drawn = _resample(gains, halves)
    ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) - drawn.mean() + tau
    low, high = map(float, np.clip(ends, -1, 1))
    return Agreement(tau, low, high, methods, n, len(halves), every)


def _splits(n: int) -> tuple[np.ndarray, bool]:
    """Return which seeds are in the first half, [splits, seeds], and whether these are all splits there are."""
    size = n // 2
    if n % 2:
        firsts = combinations(range(n), size)
    else:  # a split and its mirror are one: the first seed is always in the first half
        firsts = ((0, *rest) for rest in combinations(range(1, n), size - 1))
    chosen = list(islice(firsts, SPLITS + 1))
    every = len(chosen) <= SPLITS
    if not every:
        rng = stream(0, "halves", n)
        chosen = [rng.permutation(n)[:size] for _ in range(SPLITS)]
    halves = np.zeros((len(chosen), n))
    for row, members in zip(halves, chosen):
        row[list(members)] = 1
    return halves, every


def _means(weights: np.ndarray, gains: np.ndarray) -> np.ndarray:
    return weights @ gains / weights.sum(-1, keepdims=True)


def _resample(gains: np.ndarray, halves: np.ndarray) -> np.ndarray:
    """Return the mean τ of each resample of the seeds that has one."""
    n = len(gains)
    rng = stream(0, "order", *gains.shape)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=REPETITIONS)
    some = halves[rng.choice(len(halves), min(RESAMPLED, len(halves)), replace=False)]
    found = np.full((len(some), REPETITIONS), np.nan)
    for taus, half in zip(found, some):
        first, second = counts * half, counts * (1 - half)
        both = (first.sum(1) > 0) & (second.sum(1) > 0)
        taus[both] = kendall_tau(_means(first[both], gains), _means(second[both], gains))
    return np.nanmean(found[:, ~np.isnan(found).all(0)], axis=0)
