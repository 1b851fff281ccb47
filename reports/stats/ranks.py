"""Tests on ranks over blocks: Friedman, Iman–Davenport, Nemenyi. Protocol of Demšar, JMLR 7 (2006).

A matrix has one row per block and one column per method, and higher is better in all of it (see `blocks.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...base.errors import FmtlbenchError


class StatsError(FmtlbenchError):
    """The runs at hand do not allow the test; the message says what is missing."""


@dataclass(frozen=True)
class Friedman:
    """Do the methods differ at all? χ² of scipy (corrected for ties), and the less conservative F made of it."""

    blocks: int
    methods: int
    chi2: float
    p: float
    chi2_without_ties: float  # the plain formula of the average ranks, as textbooks print it
    f: float  # Iman–Davenport; infinite if every block ranks the methods alike
    f_p: float


def block_ranks(matrix: pd.DataFrame) -> pd.DataFrame:
    """Return the ranks in every block: 1 = best; equal scores share the mean of their ranks."""
    return matrix.rank(axis=1, ascending=False, method="average")


def average_ranks(matrix: pd.DataFrame) -> pd.Series:
    """Mean rank per method, best first."""
    return block_ranks(matrix).mean().sort_values(kind="stable")


def friedman(matrix: pd.DataFrame) -> Friedman:
    """Test all methods at once.

    Raises:
        StatsError: For fewer than three methods or two blocks.
    """
    from scipy.stats import friedmanchisquare

    n, k = _size(matrix)
    mean = block_ranks(matrix).mean().to_numpy()
    plain = 12 * n / (k * (k + 1)) * (np.square(mean).sum() - k * (k + 1) ** 2 / 4)
    if (matrix.nunique(axis=1) == 1).all():  # nothing to rank anywhere: scipy would divide 0 by 0
        chi2, p = 0.0, 1.0
    else:
        chi2, p = map(float, friedmanchisquare(*(matrix[name].to_numpy() for name in matrix)))
    f, f_p = iman_davenport(chi2, n, k)
    return Friedman(n, k, chi2, p, float(max(plain, 0.0)), f, f_p)


def iman_davenport(chi2: float, blocks: int, methods: int) -> tuple[float, float]:
    """Return F of (k − 1, (k − 1)(N − 1)) degrees of freedom, and its p."""
    from scipy.stats import f as f_distribution

    rest = blocks * (methods - 1) - chi2
    if rest <= 1e-9 * blocks * (methods - 1):
        return math.inf, 0.0
    value = (blocks - 1) * chi2 / rest
    return value, float(f_distribution.sf(value, methods - 1, (methods - 1) * (blocks - 1)))


def nemenyi(matrix: pd.DataFrame) -> pd.DataFrame:
    """Return the p of every pair of methods, all pairs at once (the studentised range accounts for their number)."""
    from scikit_posthocs import posthoc_nemenyi_friedman

    _size(matrix)
    p = posthoc_nemenyi_friedman(matrix.to_numpy())
    return pd.DataFrame(p.to_numpy(), index=list(matrix), columns=list(matrix))


def critical_q(methods: int, alpha: float = 0.05) -> float:
    """Return q_α of Demšar's Table 5: the studentised range with infinite degrees of freedom, over √2."""
    from scipy.stats import studentized_range

    return float(studentized_range.isf(alpha, methods, np.inf)) / math.sqrt(2)


def critical_difference(methods: int, blocks: int, alpha: float = 0.05) -> float:
    """Return how far apart two average ranks must be: q_α √(k(k + 1) / 6N)."""
    return critical_q(methods, alpha) * math.sqrt(methods * (methods + 1) / (6 * blocks))


def _size(matrix: pd.DataFrame) -> tuple[int, int]:
    blocks, methods = matrix.shape
    if methods < 3:
        raise StatsError(f"Friedman and Nemenyi compare at least 3 methods, and here are {methods}: {list(matrix)}")
    if blocks < 2:
        raise StatsError(f"Friedman and Nemenyi need at least 2 blocks (scenario, client, task), and here is {blocks}")
    if not np.isfinite(matrix.to_numpy()).all():
        raise StatsError("a score is missing or not finite: drop incomplete blocks first")
    return blocks, methods
