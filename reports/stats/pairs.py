"""Two methods at a time: Wilcoxon's signed ranks, corrected for many pairs, and the probability of improvement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ..intervals import LEVEL, corrected, t_quantile
from .ranks import StatsError


def differences(a: np.ndarray, b: np.ndarray, relative: bool) -> np.ndarray:
    """Return a − b per block; relative to the pair's mean size where blocks have different units."""
    d = np.asarray(a, float) - np.asarray(b, float)
    if relative:
        size = (np.abs(a) + np.abs(b)) / 2
        d = np.divide(d, size, out=np.zeros_like(d), where=size > 0)
    return np.round(d, 12)  # means over seeds differ in the last bit where the scores are equal


def wilcoxon_p(d: np.ndarray) -> float:
    """Return the two-sided p of the signed ranks; ranks of zeros are split between the two sides. All zeros: 1."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(d, zero_method="zsplit").pvalue) if np.any(d) else 1.0


def smallest_p(blocks: int) -> float:
    """Return the least p of the exact two-sided test: all differences have one sign, 2 of 2ⁿ equally likely cases."""
    return min(1.0, 2.0 ** (1 - blocks))


def wilcoxon_pairs(matrix: pd.DataFrame, correction: str = "holm", relative: bool = False) -> pd.DataFrame:
    """Return one row per pair of methods: wins of the first, of the second, ties, p and p corrected for all pairs.

    Args:
        matrix: [blocks, methods], higher is better.
        correction: holm or bonferroni, over all pairs of the matrix.
        relative: differences relative to the pair's mean size; needed when blocks have different units.
    """
    if matrix.shape[1] < 2 or len(matrix) < 1:
        raise StatsError(f"Wilcoxon compares 2 methods on at least 1 block; here: {matrix.shape[1]} on {len(matrix)}")
    rows = []
    for a, b in combinations(matrix, 2):
        d = differences(matrix[a].to_numpy(), matrix[b].to_numpy(), relative)
        wins = {"wins_a": int((d > 0).sum()), "wins_b": int((d < 0).sum()), "ties": int((d == 0).sum())}
        rows.append({"a": a, "b": b, **wins, "p": wilcoxon_p(d)})
    pairs = pd.DataFrame(rows)
    return pairs.assign(p_corrected=corrected(pairs["p"].tolist(), correction))


def as_matrix(pairs: pd.DataFrame, methods: Sequence[str], column: str = "p_corrected") -> pd.DataFrame:
    """Return the pairs as a symmetric table with 1 on the diagonal."""
    table = pd.DataFrame(1.0, index=list(methods), columns=list(methods))
    for a, b, p in zip(pairs["a"], pairs["b"], pairs[column]):
        table.loc[a, b] = table.loc[b, a] = p
    return table


@dataclass(frozen=True)
class Improvement:
    """P(a better than b) on a random block and pair of seeds, with an interval whose unit is the whole run."""

    a: str
    b: str
    probability: float
    low: float | None  # None: one seed has no spread
    high: float | None
    blocks: int
    seeds: tuple[int, int]  # fewest and most seeds of a method in a scenario
    how: str  # the interval was found
    level: float = LEVEL


@dataclass(frozen=True)
class Runs:
    """One method's scores in one scenario: a row per seed, a column per block; higher is better."""

    seeds: tuple[int, ...]
    scores: np.ndarray


def improvement(a: Sequence[Runs], b: Sequence[Runs], names: tuple[str, str] = ("a", "b")) -> Improvement:
    """Compute the probability of improvement of Agarwal et al., NeurIPS 2021: a win counts 1 and a tie 1/2.

    The blocks of a run stand or fall with its seed, so the interval leaves out whole runs, one at a time (the
    jackknife), both methods' runs of a seed together where they have the same seeds, and takes Student's t of what
    that changes.

    Args:
        a: The first method's runs, by scenario.
        b: The second method's, in the same order.
        names: What the methods are called.
    """
    if not len(a) or len(a) != len(b):
        raise StatsError(f"probability of improvement: {names[0]} has {len(a)} scenarios, {names[1]} has {len(b)}")
    if any(not len(runs.seeds) for runs in (*a, *b)):
        raise StatsError(f"probability of improvement: a block has no seed of {names[0]} or {names[1]}")
    blocks = sum(x.scores.shape[1] for x in a)
    counts = [len(runs.seeds) for runs in (*a, *b)]
    scenarios = [_Wins.of(x, y) for x, y in zip(a, b)]
    point = math.fsum(float(s.table.mean()) for s in scenarios) / blocks
    low = high = None
    parts = [part for s in scenarios for part in s.jackknife()] if min(counts) > 1 else []
    variance = math.fsum(v for v, _ in parts)
    if min(counts) < 2:
        how = "one seed has no interval"
    elif variance <= 0:
        how = "no interval: no run changes it by being left out"
    else:
        freedom = variance**2 / math.fsum(v * v / f for v, f in parts)  # Welch–Satterthwaite
        reach = t_quantile((1 + LEVEL) / 2, freedom) * math.sqrt(variance) / blocks
        low, high, how = max(0.0, point - reach), min(1.0, point + reach), "whole runs left out one at a time"
    return Improvement(*names, point, low, high, blocks, (min(counts), max(counts)), how)


@dataclass(frozen=True)
class _Wins:
    """Over a scenario's blocks: how many the run of one seed wins against the run of another. [seeds, seeds]."""

    table: np.ndarray
    paired: bool  # both methods have the same seeds, in the same order

    @classmethod
    def of(cls, x: Runs, y: Runs) -> _Wins:
        d = np.round(x.scores[:, None] - y.scores[None, :], 12)
        return cls(((np.sign(d) + 1) / 2).sum(2), x.seeds == y.seeds)

    def jackknife(self) -> list[tuple[float, int]]:
        """Return the mean's variance and degrees of freedom, leaving out a pair of runs or a run of either method."""
        n, m = self.table.shape
        if self.paired:
            return [_spread([np.delete(np.delete(self.table, i, 0), i, 1).mean() for i in range(n)])]
        rows = [np.delete(self.table, i, 0).mean() for i in range(n)]
        columns = [np.delete(self.table, j, 1).mean() for j in range(m)]
        return [_spread(rows), _spread(columns)]


def _spread(without: Sequence[float]) -> tuple[float, int]:
    """Return the jackknife's variance and degrees of freedom, from a statistic with one observation left out."""
    n = len(without)
    return (n - 1) / n * float(np.square(np.asarray(without) - np.mean(without)).sum()), n - 1
