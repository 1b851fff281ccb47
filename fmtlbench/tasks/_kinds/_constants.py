"""Which constant prediction is best under a metric, found from sums over all labels."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ...metrics import IGNORE, Metric

DIRECTIONS = 4_000_000  # from this many pixels on, every k-th decides the candidate direction


class ConstantSearch:
    """Looks at all labels, then names the constants among which the best one is."""

    looks = False

    def __init__(self, meter: Metric, pixels: int) -> None:
        """Keep the meter, whose options the candidates depend on; it is not fed."""
        self.meter, self.pixels = meter, pixels

    def look(self, labels: Tensor) -> None:
        """Add a batch of labels to the sums."""

    def candidates(self) -> list[Tensor]:
        """Return the constants to score, each as a prediction of one pixel."""
        raise NotImplementedError


class Everywhere(ConstantSearch):
    """Foreground everywhere: what a threshold makes of any constant probability, if it is not nothing at all."""

    def candidates(self):
        return [torch.tensor(1.0)]


class Majority(ConstantSearch):
    """A constant class scores its share of the pixels, so the most frequent one is best."""

    looks, counts = True, torch.zeros(IGNORE, dtype=torch.int64)

    def look(self, labels):
        self.counts = self.counts + torch.bincount(labels.flatten().long(), minlength=IGNORE + 1)[:IGNORE]

    def candidates(self):
        return [self.counts.argmax()]


class Mean(ConstantSearch):
    """The mean of what RMSE scores."""

    looks, total, count = True, 0.0, 0

    def look(self, labels):
        valid = labels[(labels > 0) & (labels < self.meter.max_depth)]  # leaves out 255 too
        self.total += valid.double().sum().item()
        self.count += len(valid)

    def candidates(self):
        return [torch.tensor(self.total / self.count)] if self.count else []


class EdgeLogit(ConstantSearch):
    """Weighted cross-entropy of P edge pixels and N others is least where sigmoid(x) = wP / (wP + (1 − w)N).

    The public meters hand the sigmoid of the output to the loss: there x lies between 0 and 1.
    """

    looks, edges, others = True, 0, 0

    def look(self, labels):
        self.edges += int((labels == 1).sum())
        self.others += int((labels == 0).sum())

    def candidates(self):
        w = self.meter.positive_weight
        odds = w * self.edges / max((1 - w) * self.others, 1e-9)
        x = min(max(math.log(max(odds, 1e-9)), -20.0), 20.0)
        if self.meter.name == "edge_loss_public":
            x = min(max(x, 1e-6), 1 - 1e-6)
            x = math.log(x / (1 - x))
        return [torch.tensor(x)]


class Direction(ConstantSearch):
    """The spherical median (it minimises the mean angle) by Weiszfeld steps, and the mean direction it starts from."""

    looks = True

    def __init__(self, meter, pixels):
        super().__init__(meter, pixels)
        self.every, self.parts = max(1, pixels // DIRECTIONS), []

    def look(self, labels):
        vectors = labels.permute(0, 2, 3, 1).reshape(-1, 3)[:: self.every]
        self.parts.append(vectors[(vectors != IGNORE).all(1) & (vectors.norm(dim=1) > 0)].numpy())

    def candidates(self):
        vectors = np.concatenate(self.parts).astype(np.float64)
        if not len(vectors):  # zero-length labels, which score 90° whatever is said if they count
            return [torch.tensor([0.0, 0.0, 1.0])]
        mean = _unit(vectors.mean(0))
        median = mean
        for _ in range(50):
            angle = np.arccos(np.clip(vectors @ median, -1, 1))
            weight = 1 / np.maximum(np.sin(angle), 1e-3)
            median = _unit((vectors * weight[:, None]).sum(0))
        return [torch.tensor(v, dtype=torch.float32) for v in (mean, median)]


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-12)
