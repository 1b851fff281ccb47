"""The best constant prediction: what a model must beat to have learned anything from the image.

The constant is chosen on the test labels themselves, so no constant predictor can score better (by more than the
resolution of the search); every candidate is scored by the task's own meter.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ..data.batches import test_batches
from ..data.catalog import DatasetInfo
from ..data.views import View
from ..metrics import Metric
from ..metrics.rmse import MAX_DEPTH
from ..tasks import IGNORE, TaskSpec
from .evaluate import make_meter

CPU = torch.device("cpu")


def best_constant(
    spec: TaskSpec, info: DatasetInfo, view: View, batch_size: int = 32, workers: int = 0
) -> float | None:
    """The task's primary metric under its best constant prediction, or None if there is nothing to score."""
    labels = torch.cat([batch[spec.name] for batch in test_batches(view, (spec.name,), batch_size, CPU, workers)])
    if spec.metric not in _CANDIDATES:
        return None  # a metric of somebody's own
    scores = []
    for constant in _CANDIDATES[spec.metric](labels):
        meter = make_meter(spec, info, view.dataset.size)
        _score(meter, constant, labels, batch_size)
        scores.append(meter.compute().value)
    scores = [s for s in scores if math.isfinite(s)]
    if not scores:
        return None
    return max(scores) if meter.higher_is_better else min(scores)


def _score(meter: Metric, constant: Tensor, labels: Tensor, batch_size: int) -> None:
    shape = (3,) if constant.dim() else ()
    for part in labels.split(batch_size):
        size = (len(part), *shape, *part.shape[-2:])
        meter.update(constant.view(1, *shape, 1, 1).expand(size).contiguous(), part)


def _classes(labels: Tensor) -> list[Tensor]:
    """A constant class scores its share of the pixels, so the most frequent one is best."""
    return [torch.bincount(labels[labels != IGNORE].long(), minlength=1).argmax()]


def _probability(labels: Tensor) -> list[Tensor]:
    return [torch.tensor(1.0)]


def _logits(labels: Tensor) -> list[Tensor]:
    """Weighted cross-entropy falls towards one logit and rises after it: a fine grid finds it."""
    return list(torch.linspace(-10, 10, 401))


def _mean_depth(labels: Tensor) -> list[Tensor]:
    valid = labels[(labels > 0) & (labels < MAX_DEPTH)]  # what RMSE scores; leaves out 255 too
    return [valid.double().mean().float()] if len(valid) else []


def _mean_direction(labels: Tensor) -> list[Tensor]:
    """The spherical median (it minimises the mean angle) by Weiszfeld steps, and the mean direction it starts from."""
    vectors = labels.permute(0, 2, 3, 1).reshape(-1, 3)
    vectors = vectors[(vectors != IGNORE).all(1) & (vectors.norm(dim=1) > 0)].double().numpy()
    if not len(vectors):
        return []
    mean = vectors.mean(0)
    mean /= max(np.linalg.norm(mean), 1e-12)
    median = mean
    for _ in range(50):
        angle = np.arccos(np.clip(vectors @ median, -1, 1))
        weight = 1 / np.maximum(np.sin(angle), 1e-3)
        median = (vectors * weight[:, None]).sum(0)
        median /= max(np.linalg.norm(median), 1e-12)
    return [torch.tensor(v, dtype=torch.float32) for v in (mean, median)]


_CANDIDATES = {
    "miou": _classes, "maxf": _probability, "odsf": _probability, "rmse": _mean_depth, "merr": _mean_direction,
    "edge_loss": _logits, "edge_loss_public": _logits,
}  # fmt: skip
