"""Mean angular error of surface normals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fmtlbench.metrics import compiled

from ._base import IGNORE, METRICS, Metric, finite, option, require

if TYPE_CHECKING:
    import torch

BINS = 18_000  # of 0.01°, for the median
WITHIN = (11.25, 22.5, 30.0)


@METRICS.register("merr")
class MeanAngle(Metric):
    """mErr: mean angle in degrees, 2·atan2(‖p−g‖, ‖p+g‖) of unit vectors, over the valid pixels of the set.

    A pixel is invalid if a channel of its label is 255. Extras: the median (to 0.01°) and the share of pixels within
    11.25°, 22.5° and 30° in percent.

    Args:
        zero: A zero-length label is invalid ("skip"), or counts 90° as in the public meters ("count").
    """

    label, unit, higher_is_better = "mErr", "deg", False
    tasks = ("normals",)
    description = "mean angle between predicted and true surface normals"

    def __init__(self, *, zero: str = "skip") -> None:
        option("mErr", "zero", zero, ("skip", "count"))
        super().__init__(zero=zero)
        self.zero = zero

    def update(self, prediction: Any, target: Any) -> None:
        """Add normals [B, 3, H, W]: predictions of any length (zero length scores 90°), labels of unit length."""
        prediction, target = self._as_tensors(prediction, target, ("f", "f"), channels=3)
        if not target.numel():
            return
        sums = compiled("angles", (prediction, target), self.zero == "skip", IGNORE, BINS, WITHIN)
        self._add(**dict(zip(("angle", "pixels", "histogram", "within"), sums or self._by_torch(prediction, target))))

    def _by_torch(self, prediction: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the same sums as the compiled kernel, on any device and for any dtype."""
        import torch

        require(
            (finite(prediction), "mErr prediction", prediction, "finite vectors"),
            (finite(target), "mErr target", target, "unit vectors, zero vectors or 255 (ignore)"),
        )
        keep = (target != IGNORE).all(1)
        length = target.double().norm(dim=1)
        if self.zero == "skip":
            keep &= length > 0
        p = torch.nn.functional.normalize(prediction.double(), dim=1)
        g = target.double() / length.clamp(min=1e-12).unsqueeze(1)
        angle = torch.rad2deg(2 * torch.atan2((p - g).norm(dim=1), (p + g).norm(dim=1)))
        # ignored pixels fall into the extra last bin, so no data-dependent indexing is needed
        bins = (angle * (BINS / 180)).int().clamp_(0, BINS - 1).masked_fill_(~keep, BINS)
        histogram = bins.flatten().bincount(minlength=BINS + 1)[:BINS]
        within = torch.stack([((angle < limit) & keep).sum() for limit in WITHIN])
        return angle.masked_fill(~keep, 0.0).sum(), keep.sum(), histogram, within

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        pixels = sums["pixels"].item()
        if not pixels:
            return math.nan, {}
        middle = int((2 * sums["histogram"].cumsum(0) >= pixels).int().argmax())
        extras = {"median": (middle + 0.5) * 180 / BINS}
        for limit, count in zip(WITHIN, sums["within"].tolist()):
            extras[f"within{limit:g}"] = 100 * count / pixels
        return sums["angle"].item() / pixels, extras
