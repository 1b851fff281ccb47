"""The best constant prediction: what a model must beat to have learned anything from the image.

The constant is chosen on the test labels themselves, so no constant predictor can score better (by more than the
resolution of the search). The labels are read twice, batch by batch: for the sums that decide the candidates, and to
score these with the task's own meter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from ..config.run_config import RunConfig
from ..data.batches import test_batches
from ..data.configured_tasks import task_specs
from ..data.datasets import DatasetInfo
from ..data.meters import make_meter
from ..data.views import ClientData, View
from ..exchange import Party
from ..metrics import Metric
from ..runs.records import Score
from ..tasks import TaskSpec

CPU = torch.device("cpu")


def add_constants(
    records: Sequence[Score], config: RunConfig, members: Mapping[str, Party], data: Sequence[ClientData]
) -> None:
    """Write the best constant prediction's score beside every score of a task's primary metric.

    It comes from labels alone, but for edges and normals takes many seconds: so it is found when all else is done.
    """
    known: dict[tuple[str, str, str], float | None] = {}
    for record in records:
        if not record["primary"]:
            continue
        party = members[record["client"]]
        view = data[party.index].tests[record["split"]]
        # Clients judged on the same images and labels share the constant.
        shared = record["split"] == "global" and not view.relabel and not config.data.validation
        key = (record["dataset"], record["task"], record["split"] if shared else party.id)
        if key not in known:
            spec, info = task_specs(config, party.dataset)[record["task"]], config.data.dataset(party.dataset)
            known[key] = best_constant(spec, info, view, workers=config.data.workers)
        record["trivial"] = known[key]


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
