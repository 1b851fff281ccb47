"""Two methods at a time: Wilcoxon's signed ranks, corrected for many pairs, and the probability of improvement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from ...errors import UsageError, nearest
from .ranks import StatsError

CORRECTIONS = ("holm", "bonferroni")


def differences(a: np.ndarray, b: np.ndarray, relative: bool) -> np.ndarray:
    """Difference a − b per block; relative to the pair's mean size where blocks have different units."""
    d = np.asarray(a, float) - np.asarray(b, float)
    if relative:
        size = (np.abs(a) + np.abs(b)) / 2
        d = np.divide(d, size, out=np.zeros_like(d), where=size > 0)
    return np.round(d, 12)  # means over seeds differ in the last bit where the scores are equal


def wilcoxon_p(d: np.ndarray) -> float:
    """Two-sided p of the signed ranks; ranks of zeros are split between the two sides. All zeros: 1."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(d, zero_method="zsplit").pvalue) if np.any(d) else 1.0


def smallest_p(blocks: int) -> float:
    """Of the exact two-sided test: all differences have one sign, which is 2 of 2ⁿ equally likely cases."""
    return min(1.0, 2.0 ** (1 - blocks))


def wilcoxon_pairs(matrix: pd.DataFrame, correction: str = "holm", relative: bool = False) -> pd.DataFrame:
    """One row per pair of methods: wins of the first, of the second, ties, p and p corrected for all the pairs.

    Args:
        matrix: [blocks, methods], higher is better.
        correction: holm or bonferroni, over all pairs of the matrix.
        relative: differences relative to the pair's mean size; needed when blocks have different units.
    """
    from statsmodels.stats.multitest import multipletests

    if correction not in CORRECTIONS:
        raise UsageError(f"correction {correction!r}: {nearest(correction, CORRECTIONS)}")
    if matrix.shape[1] < 2 or len(matrix) < 1:
        raise StatsError(f"Wilcoxon compares 2 methods on at least 1 block; here: {matrix.shape[1]} on {len(matrix)}")
    rows = []
    for a, b in combinations(matrix, 2):
        d = differences(matrix[a].to_numpy(), matrix[b].to_numpy(), relative)
        wins = {"wins_a": int((d > 0).sum()), "wins_b": int((d < 0).sum()), "ties": int((d == 0).sum())}
        rows.append({"a": a, "b": b, **wins, "p": wilcoxon_p(d)})
    pairs = pd.DataFrame(rows)
    return pairs.assign(p_corrected=multipletests(pairs["p"], method=correction)[1])


def as_matrix(pairs: pd.DataFrame, methods: Sequence[str], column: str = "p_corrected") -> pd.DataFrame:
    """The pairs as a symmetric table with 1 on the diagonal."""
    table = pd.DataFrame(1.0, index=list(methods), columns=list(methods))
    for a, b, p in zip(pairs["a"], pairs["b"], pairs[column]):
        table.loc[a, b] = table.loc[b, a] = p
    return table


@dataclass(frozen=True)
class Improvement:
    """P(a better than b) on a random block and pair of seeds, with a bootstrap interval."""

    a: str
    b: str
    probability: float
    low: float
    high: float
    blocks: int
    seeds: tuple[int, int]  # fewest and most seeds of a method in a block
    level: float = 0.95


def improvement(
    a: Sequence[Sequence[float]],
    b: Sequence[Sequence[float]],
    rng: np.random.Generator,
    names: tuple[str, str] = ("a", "b"),
    reps: int = 2000,
    level: float = 0.95,
) -> Improvement:
    """Probability of improvement of Agarwal et al., NeurIPS 2021: a win counts 1 and a tie 1/2.

    Args:
        a: For each block, the scores of the first method's seeds; higher is better.
        b: The same for the second method.
        rng: The generator of the bootstrap.
        names: What the methods are called.
        reps: Bootstrap samples: blocks are drawn with replacement, then seeds within each drawn block.
        level: Of the percentile interval.
    """
    if not len(a) or len(a) != len(b):
        raise StatsError(f"probability of improvement: {names[0]} has {len(a)} blocks, {names[1]} has {len(b)}")
    wins = [_wins(np.asarray(x, float), np.asarray(y, float)) for x, y in zip(a, b)]
    counts = [n for table in wins for n in table.shape]
    if not min(counts):
        raise StatsError(f"probability of improvement: a block has no seed of {names[0]} or {names[1]}")
    picked = rng.integers(len(wins), size=(reps, len(wins)))
    drawn = np.empty(picked.shape)
    for block, table in enumerate(wins):
        where = picked == block
        rows, columns = (rng.integers(n, size=(where.sum(), n)) for n in table.shape)
        drawn[where] = table[rows[:, :, None], columns[:, None, :]].mean((1, 2))
    low, high = np.quantile(drawn.mean(1), [(1 - level) / 2, (1 + level) / 2])
    point = float(np.mean([table.mean() for table in wins]))
    return Improvement(*names, point, float(low), float(high), len(wins), (min(counts), max(counts)), level)


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[seeds of x, seeds of y]: 1 where x is better, 1/2 where they are equal."""
    d = np.round(x[:, None] - y[None, :], 12)
    return (np.sign(d) + 1) / 2
