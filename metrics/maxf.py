"""Maximal F-measure of saliency maps over evenly spaced thresholds."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ._base import IGNORE, METRICS, Metric, MetricError, option, require, whole, within

if TYPE_CHECKING:
    import torch

LABELS = IGNORE + 1
BETA2 = 0.3


@METRICS.register("maxf")
class MaxF(Metric):
    """maxF over thresholds (0.05 … 0.95) on counts summed over the set, F = 1.3PR/(0.3P+R), in percent.

    The extra `sal_mIoU` is the per-image IoU, averaged over images, at its own best threshold. An image with neither
    salient nor predicted pixels has IoU 1; an image without valid pixels does not count.

    Args:
        thresholds: Number n of thresholds k/(n+1), of those n for which single precision splits exactly at each.
        lowest: Thresholds below it are left out; 0.2 in the MaT-FL code.
        highest: Thresholds above it are left out; 0.9 in the MaT-FL code.
        scores: What the thresholds are held against: the probability, or its sigmoid ("sigmoid_of_probability") as in
            the FMTL-Bench meter, where all scores lie between 0.5 and 0.73.
        iou: `sal_mIoU` averages over each "image", or over each "batch" taken as one image, as in the FMTL-Bench meter;
            it then depends on how many images an update has.
    """

    label, unit, higher_is_better = "maxF", "%", True
    tasks = ("sal",)
    description = "best F-measure (β² = 0.3) over 19 thresholds on counts summed over the set"

    def __init__(
        self,
        *,
        thresholds: int = 19,
        lowest: float = 0.0,
        highest: float = 1.0,
        scores: str = "probability",
        iou: str = "image",
    ) -> None:
        found = levels(thresholds) if 1 <= thresholds <= 255 else None
        if found is None:
            near = min((n for n in range(1, 256) if levels(n)), key=lambda n: abs(n - thresholds))
            raise MetricError(
                f"maxF: thresholds is {thresholds}, expected a number n from 1 to 255 whose steps of 1/(n+1) single "
                f"precision splits exactly; the nearest is {near}"
            )
        self.levels = found
        option("maxF", "scores", scores, ("probability", "sigmoid_of_probability"))
        option("maxF", "iou", iou, ("image", "batch"))
        self.grid = [k / (thresholds + 1) for k in range(1, thresholds + 1)]
        self.chosen = [i for i, t in enumerate(self.grid) if lowest <= t <= highest]
        if not self.chosen:
            raise MetricError(f"maxF: no threshold k/{thresholds + 1} lies from lowest={lowest} to highest={highest}")
        super().__init__(thresholds=thresholds, lowest=lowest, highest=highest, scores=scores, iou=iou)

    def update(self, prediction: Any, target: Any) -> None:
        """Add foreground probabilities [B, H, W] in [0, 1] and labels {0, 1, 255} of any dtype."""
        import torch

        prediction, target = self._as_tensors(prediction, target, ("f", "ibf"))
        if not target.numel():
            return
        steps, fine = len(self.grid) + 1, self.levels
        scores = prediction if self.options["scores"] == "probability" else prediction.float().sigmoid()
        # on a CPU image by image, so that data stay in its cache; on a GPU all at once
        part = len(target) if target.is_cuda else 1
        counts = torch.cat([_count_pixels(p, t, fine) for p, t in zip(scores.split(part), target.split(part))])
        known = whole(target) & (counts[:, 2:IGNORE].sum() == 0)
        require(
            (within(prediction, 0, 1), "maxF prediction", prediction, "probabilities in [0, 1]"),
            (known, "maxF target", target, "0, 1 or 255 (ignore)"),
        )
        if self.options["iou"] == "batch":
            counts = counts.sum(0, keepdim=True)
        passed = counts[:, :2].flip(2).cumsum(2).flip(2)[:, :, : fine : fine // steps]  # [B, 2, steps], entry 0: all
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
        f = ((1 + BETA2) * precision * recall / (BETA2 * precision + recall).clamp(min=1e-300))[self.chosen]
        best = int(f.argmax())
        iou = sums["iou"][self.chosen].max().item()
        return 100 * f[best].item(), {"sal_mIoU": 100 * iou / images, "threshold": self.grid[self.chosen[best]]}


@lru_cache
def levels(thresholds: int) -> int | None:
    """Return the least m·s, s = thresholds + 1, with floor(m·s·p) ≥ m·k exactly where p ≥ k/s, in single precision.

    With m = 1, rounding breaks this for many s (k = 17 of 20). Rounding is monotonic, so it is enough to test each k at
    the threshold itself and at the next smaller number. None if no m below 20 works.
    """
    import numpy as np

    steps = thresholds + 1
    k = np.arange(1, steps)
    at = (k / steps).astype(np.float32)
    below = np.nextafter(at, np.float32(0))
    for m in range(1, 20):
        factor = np.float32(m * steps)
        if (np.floor(at * factor) >= m * k).all() and (np.floor(below * factor) < m * k).all():
            return m * steps
    return None


def _count_pixels(prediction: torch.Tensor, target: torch.Tensor, fine: int) -> torch.Tensor:
    """Count pixels by (image, label, level), [B, 256, fine + 1]; ignored and invalid labels have their own rows."""
    import torch

    bins = fine + 1
    size = len(target) * LABELS * bins
    image = torch.arange(0, size, LABELS * bins, device=target.device, dtype=torch.int32).view(-1, 1, 1)
    index = (prediction.float() * fine).int().add_(target.int(), alpha=bins).add_(image).clamp_(0, size - 1)
    return index.flatten().bincount(minlength=size).view(-1, LABELS, bins)
