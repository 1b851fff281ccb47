"""Root mean squared error of depth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fmtlbench.metrics import compiled

from ._base import IGNORE, METRICS, Metric, MetricError, finite, require

if TYPE_CHECKING:
    import torch


MAX_DEPTH = 80.0  # metres; labels from here on are not scored
MIN_PREDICTION = 1e-9
CLOSE = 1.25  # ratio


@METRICS.register("rmse")
class RMSE(Metric):
    """RMSE in metres over the valid pixels of the set: 0 < label < max_depth. Predictions are clamped to ≥ 1e-9.

    Extras: absRel (mean |p − g| / g) and delta1 (percent of pixels with max(p/g, g/p) < 1.25).

    Args:
        max_depth: Labels from here on are invalid.
    """

    label, unit, higher_is_better = "RMSE", "m", False
    tasks = ("depth",)
    description = "root mean squared depth error over valid pixels of the set"

    def __init__(self, *, max_depth: float = MAX_DEPTH) -> None:
        if not 0 < max_depth <= IGNORE:
            raise MetricError(f"RMSE: max_depth is {max_depth}, expected more than 0 and at most {IGNORE} (ignore)")
        super().__init__(max_depth=max_depth)
        self.max_depth = max_depth

    def update(self, prediction: Any, target: Any) -> None:
        """Add depths in metres, [B, H, W] or [B, 1, H, W]."""
        import torch

        prediction, target = self._as_tensors(prediction, target, ("f", "f"))
        if not target.numel():
            return
        limit = torch.tensor(self.max_depth, dtype=target.dtype).item()  # in the label's dtype, as torch compares
        sums = compiled("depths", (prediction, target), MIN_PREDICTION, limit, CLOSE)
        self._add(**dict(zip(("squared", "relative", "close", "pixels"), sums or self._by_torch(prediction, target))))

    def _by_torch(self, prediction: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the same sums as the compiled kernel, on any device and for any dtype."""
        import torch

        require(
            (finite(prediction), "RMSE prediction", prediction, "finite depths in metres"),
            (finite(target), "RMSE target", target, "finite depths in metres, 0 or 255 where unknown"),
        )
        keep = (target > 0) & (target < self.max_depth)
        p, g = prediction.double().clamp(min=MIN_PREDICTION), target.double().masked_fill(~keep, 1.0)
        error = (p - g).masked_fill(~keep, 0.0)
        close = (torch.maximum(p / g, g / p) < CLOSE) & keep
        return error.square().sum(), (error.abs() / g).sum(), close.sum(), keep.sum()

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        pixels = sums["pixels"].item()
        if not pixels:
            return math.nan, {}
        extras = {"absRel": sums["relative"].item() / pixels, "delta1": 100 * sums["close"].item() / pixels}
        return math.sqrt(sums["squared"].item() / pixels), extras
