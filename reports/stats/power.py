"""How many seeds it takes to tell two methods apart: the power of the paired t-test."""

from __future__ import annotations

import math

from ..intervals import LEVEL, t_quantile

MOST = 1000  # seeds; nobody runs more, and nearly equal methods would take any number
NEGLIGIBLE = 6.0  # t falls on the other side of 0 with a probability below Φ(-6) = 1e-9


def t_power(effect: float, n: int, level: float = LEVEL) -> float:
    """Return how likely a two-sided t-test over n pairs finds a mean difference of `effect` standard deviations."""
    from scipy.stats import nct

    freedom, shift = n - 1, abs(effect) * math.sqrt(n)
    reach = t_quantile((1 + level) / 2, freedom)
    other_side = nct.cdf(-reach, freedom, shift) if shift < NEGLIGIBLE else 0.0  # where it is tiny, scipy gives NaN
    return float(nct.sf(reach, freedom, shift) + other_side)


def seeds_needed(mean: float, std: float, power: float = 0.8, level: float = LEVEL) -> int | None:
    """Return the fewest seeds for which a paired t-test finds it with probability `power`; None: more than `MOST`.

    Args:
        mean: The difference between two methods.
        std: Its standard deviation over paired seeds.
        power: The probability asked for.
        level: The test's level of confidence.
    """
    if mean == 0:
        return None
    if std == 0:
        return 2
    effect = mean / std
    if t_power(effect, MOST, level) < power:
        return None
    low, high = 1, MOST  # power grows with n: too few, enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if t_power(effect, middle, level) >= power else (middle, high)
    return high
