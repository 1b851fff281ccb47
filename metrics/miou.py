"""Mean intersection over union from one confusion matrix over the whole set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ._base import IGNORE, METRICS, Metric, MetricError, option, require, within

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from typing_extensions import Self

    from fmtlbench.data.datasets import DatasetInfo
    from fmtlbench.tasks import TaskSpec


@METRICS.register("miou")
class MeanIoU(Metric):
    """Dataset-level mIoU: IoU_c = tp / (tp + fp + fn), mean over classes, in percent.

    Args:
        num_classes: Number of classes; ids are 0 … num_classes - 1.
        absent: A class in neither prediction nor label is left out ("skip") or counted as 0 as the public meters do
            ("zero"). Identical when every class occurs.
        ignore: Label of pixels that are not scored.
    """

    label, unit, higher_is_better = "mIoU", "%", True
    tasks = ("semseg", "human_parts")
    decided: ClassVar = {"num_classes": "the dataset decides it", "ignore": "255 is to be ignored in every label"}
    description = "mean intersection over union of one confusion matrix over the set"

    def __init__(self, *, num_classes: int, absent: str = "skip", ignore: int = IGNORE) -> None:
        if num_classes < 2:
            raise MetricError(f"mIoU: num_classes is {num_classes}, expected at least 2")
        if not num_classes <= ignore <= 65535:
            raise MetricError(f"mIoU: ignore is {ignore}, expected {num_classes} (no class) to 65535")
        option("mIoU", "absent", absent, ("skip", "zero"))
        super().__init__(num_classes=num_classes, absent=absent, ignore=ignore)
        self.num_classes, self.absent, self.ignore = num_classes, absent, ignore

    @classmethod
    def set_up(cls, task: TaskSpec, dataset: DatasetInfo, size: tuple[int, int], options: Mapping[str, Any]) -> Self:
        return super().set_up(task, dataset, size, {"num_classes": dataset.classes[task.name], **options})

    def update(self, prediction: Any, target: Any) -> None:
        """Add class maps `prediction` and `target`, both integer [B, H, W]."""
        import torch

        prediction, target = self._as_tensors(prediction, target, ("i", "i"))
        if not target.numel():
            return
        c, rows = self.num_classes, self.ignore + 1
        # one histogram over (label, prediction), with rows for ignored and invalid labels, so that no masks are needed
        index = target.to(torch.int32, copy=True).mul_(c).add_(prediction.int()).clamp_(0, rows * c - 1)
        counts = index.flatten().bincount(minlength=rows * c).view(rows, c)
        labels = f"class ids 0 to {c - 1} or {self.ignore} (ignore)"
        require(
            (within(prediction, 0, c - 1), "mIoU prediction", prediction, f"class ids 0 to {c - 1}"),
            (within(target, 0, self.ignore), "mIoU target", target, labels),
            (counts[c : self.ignore].sum() == 0, "mIoU target", target, labels),
        )
        self._add(confusion=counts[:c])  # [label, prediction]

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        confusion = sums["confusion"]
        hit, union = _count_hit_union(confusion)
        total = confusion.sum().item()
        if not total:
            return math.nan, {}
        iou = hit / union.clamp(min=1)
        mean = iou.sum() / (self.num_classes if self.absent == "zero" else (union > 0).sum())
        return 100 * mean.item(), {"pixelAcc": 100 * hit.sum().item() / total}


def _count_hit_union(confusion: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hit = confusion.diag().double()
    return hit, confusion.sum(0) + confusion.sum(1) - hit
