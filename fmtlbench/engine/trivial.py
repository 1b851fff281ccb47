"""The best constant prediction: what a model must beat to have learned anything from the image.

The constant is chosen on the test labels themselves, so no constant predictor can score better (by more than the
resolution of the search). The labels are read twice, batch by batch: for the sums that decide the candidates, and to
score these with the task's own meter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from ..data.batches import test_batches
from ..data.datasets import DatasetInfo
from ..data.meters import make_meter
from ..data.views import View
from ..metrics import Metric
from ..tasks import TaskSpec

CPU = torch.device("cpu")


def best_constant(
    spec: TaskSpec, info: DatasetInfo, view: View, batch_size: int = 32, workers: int = 0
) -> float | None:
    """Return the task's primary metric under its best constant prediction, or None if there is nothing to score."""
    labels = partial(_labels, spec.name, view, batch_size, workers)
    size = view.dataset.size
    search = spec.kind.search_constant(make_meter(spec, info, size), len(view) * math.prod(size))
    if search is None:
        return None  # a metric of somebody's own
    for batch in labels() if search.looks else ():
        search.look(batch)
    meters = [(make_meter(spec, info, size), constant) for constant in search.candidates()]
    for batch in labels() if meters else ():
        for meter, constant in meters:
            _update(meter, constant, batch)
    scores = [score for meter, _ in meters if math.isfinite(score := meter.compute().value)]
    if not scores:
        return None
    return max(scores) if meters[0][0].higher_is_better else min(scores)


def _labels(task: str, view: View, batch_size: int, workers: int) -> Iterator[Tensor]:
    for batch in test_batches(view, (task,), batch_size, CPU, workers):
        yield batch[task]


def _update(meter: Metric, constant: Tensor, labels: Tensor) -> None:
    shape = tuple(constant.shape)
    size = (len(labels), *shape, *labels.shape[-2:])
    meter.update(constant.view(1, *shape, 1, 1).expand(size).contiguous(), labels)
