"""What lies far from most values: one method that went astray would shrink all others to dots in a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import quantiles

ENOUGH = 8  # so many values have quartiles that mean something
FAR_OUT = 3.0  # Tukey's outer fences, in distances between the quartiles


def find_fences(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends between which most values lie; without end where too few or too equal ones are given."""
    values = [value for value in values if isfinite(value)]
    if len(values) >= ENOUGH:
        first, _, third = quantiles(values, n=4, method="inclusive")
        if reach := FAR_OUT * (third - first):
            return first - reach, third + reach
    return float("-inf"), float("inf")
