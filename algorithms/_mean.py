"""Means of rows, equal or by sample size, over everybody or within groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..exchange import Party, Rows
from ..exchange.algebra import COMPILED_ROWS, empty_like, mean, mix
from ..exchange.common_rows import weighted_mean

if TYPE_CHECKING:
    from torch import Tensor

Weighting = Literal["equal", "samples"]


def row_weights(rows: Rows, parties: Sequence[Party], weighting: Weighting) -> np.ndarray:
    """Return one weight per row: 1, or the training images of the client it comes from. [R]."""
    if weighting == "equal":
        return np.ones(len(rows.owners))
    return np.array([parties[owner.client].samples for owner in rows.owners], dtype=float)


def mean_row(rows: Rows, parties: Sequence[Party], weighting: Weighting = "equal") -> Tensor:
    """Return the mean over all rows, for every row: one row in memory, seen R times. [R, d]."""
    after = rows.after
    if weighting == "equal":
        return mean(after).expand_as(after)
    weights = row_weights(rows, parties, weighting)
    return (after.new_tensor(weights / weights.sum()) @ after).expand_as(after)


def group_means(labels: Sequence[Hashable], weights: np.ndarray | None = None) -> np.ndarray:
    """Return the matrix that replaces each row by the (weighted) mean of the rows with its label. [R, R]."""
    same = np.array([[a == b for b in labels] for a in labels], dtype=float)
    if weights is not None:
        same *= weights
    return same / same.sum(1, keepdims=True)


def means_by_label(
    rows: Rows, labels: Sequence[Hashable], parties: Sequence[Party], weighting: Weighting = "equal"
) -> Tensor:
    """Return for every row the mean over the rows with its label; if all have one, one row in memory. [R, d]."""
    after, weights = rows.after, row_weights(rows, parties, weighting)
    if len(set(labels)) == 1:
        common = mean(after) if weighting == "equal" else weighted_mean(after, weights / weights.sum())
        return common.expand_as(after)
    if len(labels) <= COMPILED_ROWS:
        return mix(group_means(labels, weights), after)
    # Row by row: of many rows few have the same label, and a product with a matrix would mostly multiply by zero.
    new = empty_like(after)
    for label in dict.fromkeys(labels):
        first, *others = (place for place, other in enumerate(labels) if other == label)
        if not others:
            new[first] = after[first]
            continue
        shares = weights[[first, *others]] / weights[[first, *others]].sum()
        new[first] = after[first] * shares[0]
        for place, share in zip(others, shares[1:]):
            new[first].add_(after[place], alpha=float(share))
        for place in others:
            new[place] = new[first]
    return new


def alike(rows: Rows, parties: Sequence[Party]) -> list[Hashable]:
    """Return a label per row, equal for clients with the same dataset and the same task set."""
    members = [parties[owner.client] for owner in rows.owners]
    return [(party.dataset, frozenset(party.tasks)) for party in members]


def by_task(rows: Rows, parties: Sequence[Party]) -> list[str]:
    """Return a label per row: its task, or of a row of all of a client's decoders the set of its tasks."""
    return [owner.task or "+".join(sorted(parties[owner.client].tasks)) for owner in rows.owners]
