"""Skewed shares, whatever the images show."""

from __future__ import annotations

import numpy as np

from ._base import PARTITIONS, PartitionRule, round_shares


@PARTITIONS.register("quantity")
class Quantity(PartitionRule):
    description = "shares drawn from Dirichlet(alpha), whatever the images show"
    takes_alpha = True

    def deal(self, dataset, clients, rng, least, alpha):
        """Draw the shares; nobody gets fewer than `least`."""
        extra = round_shares(len(dataset) - least * clients, rng.dirichlet(np.full(clients, alpha)))
        return np.split(rng.permutation(len(dataset)), np.cumsum(least + extra)[:-1])
