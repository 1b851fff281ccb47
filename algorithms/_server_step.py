"""What servers with one common row per group do beside averaging: longer steps, and sums over absent clients too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..exchange import Party
from ..exchange.algebra import empty_like
from ..exchange.common_rows import move_mean
from ._groups import Group, Grouped
from ._mean import row_weights

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 1 << 18  # columns that are visited at once: what is between rows and result stays in the cache


def step_along_mean(group: Group, rate: float) -> Tensor:
    """Return w + `rate` · mean Δ, w being the group's common row; running statistics are averaged plainly. [d]."""
    if rate == 1:
        return group.mean_after
    rows, width = group.rows, group.rows.parameters
    new = move_mean(rows.after[:, :width], rows.before[:, :width], group.shares, rate * group.shares)
    return group.row_of(new)


def everybody_shares(method: Grouped, group: Group) -> np.ndarray:
    """Return what each present row of a group counts among all of the group's rows, absent ones included. [R].

    1/N where clients count alike.
    """
    kind = group.name.partition("/")[0]
    by_samples = method.params.weighting == "samples"

    def weigh(party: Party) -> float:
        return method.group_of(kind, party).count(group.name) * (party.samples if by_samples else 1)

    return row_weights(group.rows, method.parties, method.params.weighting) / sum(map(weigh, method.parties))


def add_weighted(start: Tensor | None, rows: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return `start` + Σ weight · row in new memory, each row read once; without a start, from zero. [d]."""
    total = empty_like(rows[0])
    for first in range(0, len(total), BLOCK):
        columns = slice(first, first + BLOCK)
        part = total[columns]
        part.zero_() if start is None else part.copy_(start[columns])
        for row, weight in zip(rows, weights, strict=True):
            part.add_(row[columns], alpha=weight)
    return total
