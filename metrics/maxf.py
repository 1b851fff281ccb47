"""Maximal F-measure of saliency maps over fixed thresholds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ._base import IGNORE, METRICS, Metric, as_tensor, require, same_shape, whole, within

if TYPE_CHECKING:
    import torch

STEPS = 20  # thresholds 1/20 … 19/20
# floor(60·p) ≥ 3k if and only if p ≥ k/20, for every float32 p; with 20 in place of 60 rounding spoils k = 17
FINE = 3 * STEPS
LABELS = IGNORE + 1
BETA2 = 0.3


@METRICS.register("maxf")
class MaxF(Metric):
    """maxF over thresholds 0.05 … 0.95 on counts summed over the set, F = 1.3PR/(0.3P+R), in percent.

    The extra `sal_mIoU` is the per-image IoU, averaged over images, at its own best threshold. An image with neither
    salient nor predicted pixels has IoU 1; an image without valid pixels does not count.
    """

    label, unit, higher_is_better = "maxF", "%", True
    tasks = ("sal",)
    description = "best F-measure (β² = 0.3) over 19 thresholds on counts summed over the set"

    def __init__(self) -> None:
        super().__init__()

    def update(self, prediction: Any, target: Any) -> None:
        """Add foreground probabilities [B, H, W] in [0, 1] and labels {0, 1, 255} of any dtype."""
        import torch

        prediction = as_tensor(prediction, "maxF prediction", kinds="f")
        target = as_tensor(target, "maxF target", kinds="ibf")
        same_shape("maxF", prediction, target)
        if not target.numel():
            return
        # on a CPU image by image, which stays in the cache; on a GPU all at once
        step = len(target) if target.is_cuda else 1
        counts = torch.cat([_histogram(p, t) for p, t in zip(prediction.split(step), target.split(step))])
        known = whole(target) & (counts[:, 2:IGNORE].sum() == 0)
        require(
            (within(prediction, 0, 1), "maxF prediction", prediction, "probabilities in [0, 1]"),
            (known, "maxF target", target, "0, 1 or 255 (ignore)"),
        )
        passed = counts[:, :2].flip(2).cumsum(2).flip(2)[:, :, : FINE : FINE // STEPS]  # [B, 2, STEPS], entry 0: all
        hit, predicted, actual = passed[:, 1, 1:], passed[:, :, 1:].sum(1), passed[:, 1, :1]
        union = predicted + actual - hit
        valid = passed[:, :, 0].sum(1, keepdim=True) > 0
        iou = torch.where(union > 0, hit.double() / union.clamp(min=1), 1.0) * valid
        self._add(hit=hit.sum(0), predicted=predicted.sum(0), actual=actual.sum(), iou=iou.sum(0), images=valid.sum())

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        images = sums["images"].item()
        if not images:
            return math.nan, {}
        hit = sums["hit"].double()
        precision, recall = hit / sums["predicted"].clamp(min=1), hit / sums["actual"].clamp(min=1)
        f = (1 + BETA2) * precision * recall / (BETA2 * precision + recall).clamp(min=1e-300)
        best = int(f.argmax())
        extras = {"sal_mIoU": 100 * sums["iou"].max().item() / images, "threshold": (best + 1) / STEPS}
        return 100 * f[best].item(), extras


def _histogram(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Pixels by (image, label, level), [B, 256, 61]. Ignored pixels have their row, and stray labels show in theirs."""
    import torch

    bins = FINE + 1
    size = len(target) * LABELS * bins
    image = torch.arange(0, size, LABELS * bins, device=target.device, dtype=torch.int32).view(-1, 1, 1)
    index = (prediction.float() * FINE).int().add_(target.int(), alpha=bins).add_(image).clamp_(0, size - 1)
    return index.flatten().bincount(minlength=size).view(-1, LABELS, bins)
