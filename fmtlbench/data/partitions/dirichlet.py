"""Label skew: clients see different classes."""

from __future__ import annotations

import numpy as np

from ._base import PARTITIONS, PartitionRule
from ._histograms import histograms


@PARTITIONS.register("dirichlet")
class Dirichlet(PartitionRule):
    description = "every class spread over the clients by Dirichlet(alpha); an image goes where its classes lie"
    takes_alpha = True
    reads_classes = True

    def deal(self, dataset, clients, rng, least, alpha):
        pixels = histograms(dataset)
        spread = rng.dirichlet(np.full(clients, alpha), size=pixels.shape[1])  # [classes, clients]
        total = pixels.sum(1, keepdims=True)
        chance = np.where(total > 0, pixels @ spread / np.maximum(total, 1), 1 / clients)  # [images, clients]
        edges = np.cumsum(chance, axis=1)
        draws = rng.random((len(pixels), 1)) * edges[:, -1:]  # the last edge is 1 but for rounding
        owner = np.minimum((draws >= edges).sum(1), clients - 1)
        sizes = np.bincount(owner, minlength=clients)
        for poor in range(clients):
            while sizes[poor] < least:  # the likeliest image of the richest client
                rich = int(sizes.argmax())
                theirs = np.flatnonzero(owner == rich)
                owner[theirs[chance[theirs, poor].argmax()]] = poor
                sizes[rich] -= 1
                sizes[poor] += 1
        return [np.flatnonzero(owner == client) for client in range(clients)]
