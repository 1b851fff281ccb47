"""How sure a mean over seeds is: intervals and tests whose unit is the whole run.

All scores of a run rise or fall together with its seed, so they count as one. No pandas here, and of scipy only the
special functions, which load quickly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.errors import UsageError, nearest
from ..base.seeds import stream

FEW = 8  # runs: fewer say too little about a distribution to resample it
REPETITIONS = 2000
LEVEL = 0.95
CORRECTIONS = ("holm", "bonferroni")


def mean_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Compute the interval of the mean of independent values.

    Student's t for few of them, a studentised bootstrap for more: percentiles of resampled means would be too narrow
    for a dozen values. None for fewer than two values, which have no spread.
    """
    values = np.asarray(values, float)
    n = len(values)
    if n < 2:
        return None
    mean, error = values.mean(), standard_error(values)
    if error == 0:
        return float(mean), float(mean)
    low, high = ((1 - level) / 2, (1 + level) / 2)
    reach = t_quantile(high, n - 1) * error
    students = (float(mean - reach), float(mean + reach))
    if n < FEW:
        return students
    drawn = values[stream(0, "bootstrap", n).integers(n, size=(REPETITIONS, n))]
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(n)
    usable = errors > 1e-12 * error  # the same value n times has no t
    if usable.mean() < high:  # most values are equal: too many draws say nothing
        return students
    t = (drawn.mean(axis=1)[usable] - mean) / errors[usable]
    right, left = np.quantile(t, [high, low])
    return float(mean - right * error), float(mean - left * error)


def std_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Return the interval of the standard deviation (n − 1) of normal values, by χ²; None for fewer than two."""
    from scipy.special import chdtri  # of the upper tail

    values = np.asarray(values, float)
    freedom = len(values) - 1
    if freedom < 1:
        return None
    squares = freedom * float(values.var(ddof=1))
    return tuple(math.sqrt(squares / chdtri(freedom, tail)) for tail in ((1 - level) / 2, (1 + level) / 2))


def interval_method(seeds: int) -> str:
    """Say what `mean_interval` does for so many seeds."""
    if seeds < FEW:
        return f"Student's t over {seeds} seeds' Δm"
    return f"studentised bootstrap of {seeds} seeds' Δm, {REPETITIONS} repetitions"


def standard_error(values: np.ndarray) -> float:
    """Compute the standard error of the mean; 0 where the values differ by rounding only."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return error if error > 1e-12 * max(1.0, float(np.abs(values).max())) else 0.0


def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def mean_p(values: Sequence[float]) -> float | None:
    """Compute the two-sided p of Student's t-test that the mean of the values is 0; None for fewer than two."""
    from scipy.special import stdtr

    values = np.asarray(values, float)
    if len(values) < 2:
        return None
    error = standard_error(values)
    if error == 0:
        return 1.0 if abs(values.mean()) <= 1e-9 else 0.0
    return float(2 * stdtr(len(values) - 1, -abs(values.mean()) / error))


def corrected(p: Sequence[float], correction: str = "holm") -> list[float]:
    """Adjust p-values for their number: Holm's step-down or Bonferroni's, which is larger."""
    if correction not in CORRECTIONS:
        raise UsageError(f"correction {correction!r}: {nearest(correction, CORRECTIONS)}")
    n = len(p)
    if correction == "bonferroni":
        return [min(1.0, n * value) for value in p]
    adjusted, worst = [0.0] * n, 0.0
    for rank, i in enumerate(sorted(range(n), key=lambda i: p[i])):
        worst = max(worst, min(1.0, (n - rank) * p[i]))
        adjusted[i] = worst
    return adjusted
