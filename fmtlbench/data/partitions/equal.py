"""Equal shares, at random."""

from __future__ import annotations

import numpy as np

from ._base import PARTITIONS, PartitionRule, equal_sizes


@PARTITIONS.register("equal")
class Equal(PartitionRule):
    description = "equally many images for everybody, at random"

    def deal(self, dataset, clients, rng, least, alpha):
        return np.array_split(rng.permutation(len(dataset)), clients)

    def sizes(self, count, clients, least):
        return equal_sizes(count, clients)
