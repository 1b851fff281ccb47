"""Shares that grow from client to client."""

from __future__ import annotations

import numpy as np

from ._base import PARTITIONS, PartitionRule, linear_sizes


@PARTITIONS.register("linear")
class Linear(PartitionRule):
    description = "shares in the proportion 1 : 2 : … : clients, at random"

    def deal(self, dataset, clients, rng, least, alpha):
        sizes = linear_sizes(len(dataset), clients, least)
        return np.split(rng.permutation(len(dataset)), np.cumsum(sizes)[:-1])

    def sizes(self, count, clients, least):
        return linear_sizes(count, clients, least)
