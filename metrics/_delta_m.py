"""Δm, the mean relative change against a baseline."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from ._base import MetricError


def delta_m(
    values: Mapping[Hashable, float],
    baseline: Mapping[Hashable, float],
    higher_is_better: Mapping[Hashable, bool],
    weights: Mapping[Hashable, float] | None = None,
) -> float:
    """Return the mean over keys of ±(value − baseline) / |baseline| in percent, signed so that larger is better.

    Args:
        values: Score per key, for example per (client, task, metric).
        baseline: The score of the same key in the baseline run.
        higher_is_better: Direction per key.
        weights: Weight per key, normalised to sum 1 (FMTL-Bench Eq. 5); equal if not given.

    Raises:
        MetricError: For mismatched keys, a baseline of zero, a value that is not finite, or weights that are negative
            or all zero. It names the keys.
    """
    if not values:
        raise MetricError("Δm: no values")
    for name, other in (("baseline", baseline), ("higher_is_better", higher_is_better), ("weights", weights)):
        if other is not None and set(other) != set(values):
            missing, extra = [k for k in values if k not in other], [k for k in other if k not in values]
            raise MetricError(f"Δm: {name} lacks the keys {missing} of values and has the extra keys {extra}")
    for name, mapping in (("values", values), ("baseline", baseline), ("weights", weights or {})):
        for key, number in mapping.items():
            if not math.isfinite(number):
                raise MetricError(f"Δm: {name}[{key!r}] is {number}, expected a finite number")
    for key, number in baseline.items():
        if number == 0:
            raise MetricError(f"Δm: baseline[{key!r}] is 0, so a relative change does not exist")
    weights = weights if weights is not None else dict.fromkeys(values, 1.0)
    for key, number in weights.items():
        if number < 0:
            raise MetricError(f"Δm: weights[{key!r}] is {number}, expected at least 0")
    total = math.fsum(weights.values())
    if total == 0:
        raise MetricError("Δm: all weights are 0")
    changes = (
        weights[key] * (1 if higher_is_better[key] else -1) * (value - baseline[key]) / abs(baseline[key])
        for key, value in values.items()
    )
    return 100 * math.fsum(changes) / total
