"""Class-weighted binary cross-entropy of edge detection, which the papers report during training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ._base import METRICS, Metric, MetricError, binary_label, finite, require

if TYPE_CHECKING:
    import torch


@METRICS.register("edge_loss")
class EdgeLoss(Metric):
    """Mean over the valid pixels of the set of −[w·y·log s + (1−w)(1−y)·log(1−s)], s = sigmoid(logit).

    Args:
        positive_weight: w of the score, independent of the training loss; 0.95 in every public meter.
    """

    label, unit, higher_is_better = "edge_loss", "", False
    tasks = ("edge",)
    takes_raw = True
    scores_training_labels = True  # as the public meters do
    description = "class-weighted binary cross-entropy of edge logits"

    def __init__(self, *, positive_weight: float = 0.95) -> None:
        if not 0 <= positive_weight <= 1:
            raise MetricError(f"{self.label}: positive_weight is {positive_weight}, expected a number in [0, 1]")
        super().__init__(positive_weight=positive_weight)
        self.positive_weight = positive_weight

    def update(self, prediction: Any, target: Any) -> None:
        """Add edge logits (before the sigmoid) [B, H, W] and labels {0, 1, 255} of any dtype."""
        from torch.nn.functional import softplus

        prediction, target = self._as_tensors(prediction, target, ("f", "ibf"))
        if not target.numel():
            return
        label, known = binary_label(target)
        require(
            (finite(prediction), f"{self.label} prediction", prediction, "finite logits"),
            (known, f"{self.label} target", target, "0, 1 or 255 (ignore)"),
        )
        x = self._logits(prediction.double())
        w = self.positive_weight
        loss = (w * softplus(-x)).where(label == 1, (1 - w) * softplus(x))
        self._add(loss=loss.masked_fill(label == 2, 0.0).sum(), pixels=(label < 2).sum())

    def _logits(self, prediction: torch.Tensor) -> torch.Tensor:
        return prediction

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        pixels = sums["pixels"].item()
        return (sums["loss"].item() / pixels if pixels else math.nan), {}
