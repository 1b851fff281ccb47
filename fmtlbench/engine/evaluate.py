"""Score one model on its test splits. Always the model as it is now: no best-round picking."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
import torch
from torch import nn

from ..base.errors import FmtlbenchError, describe_error
from ..data.batches import test_batches
from ..data.datasets import DatasetInfo
from ..data.meters import make_meter
from ..data.views import ClientData
from ..exchange import Party
from ..metrics import Metric, MetricError
from ..runs.records import Score
from ..tasks import TaskSpec
from .messages import MeterSums


@torch.no_grad()
def evaluate(
    model: nn.Module,
    party: Party,
    data: ClientData,
    info: DatasetInfo,
    specs: dict[str, TaskSpec],
    batch_size: int,
    device: torch.device,
    workers: int = 0,
    sums: MeterSums | None = None,
) -> list[Score]:
    """Return one record per (split, task, metric); copy what they were computed from into `sums`, if given."""
    model.eval()
    records: list[Score] = []
    for split, view in data.tests.items():
        meters = {task: make_meter(specs[task], info, view.dataset.size) for task in party.tasks}
        for batch in test_batches(view, party.tasks, batch_size, device, workers):
            raw = model(batch["image"])
            for task, meter in meters.items():
                outputs = raw[task].float()
                scored = outputs if meter.takes_raw else specs[task].decode(outputs)
                # Meters sum in double precision, which MPS does not have.
                given = (t.cpu() if device.type == "mps" else t for t in (scored, batch[task]))
                with _telling_of(meter, party, task):
                    meter.update(*given)
        for task, meter in meters.items():
            records += score_records(party, split, task, meter)
            if sums is not None:
                sums[split, task] = read_sums(meter, party, task)
    return records


@contextmanager
def _telling_of(meter: Metric, party: Party, task: str) -> Iterator[None]:
    """Tell an exception of a metric in one line: metrics may be other people's code."""
    try:
        yield
    except FmtlbenchError:
        raise
    except (Exception, SystemExit) as error:
        said = describe_error(error)
        raise MetricError(f"metric {meter.name} failed on {task} of client {party.id}: {said}") from error


def read_sums(meter: Metric, party: Party, task: str) -> dict[str, np.ndarray]:
    """Return what a meter computes its score from."""
    with _telling_of(meter, party, task):
        return meter.state()


def score_records(party: Party, split: str, task: str, meter: Metric) -> list[Score]:
    """Return a meter's result as records: the primary value first, then its companions."""
    with _telling_of(meter, party, task):
        result = meter.compute()
    whose = {"client": party.id, "dataset": party.dataset, "split": split, "task": task}
    kind = {"unit": result.unit, "higher_is_better": result.higher_is_better, "primary": True}
    primary = {**whose, "metric": result.label, "value": _number(result.value), **kind}
    companions = (
        {**whose, "metric": name, "value": _number(value), "primary": False} for name, value in result.extras.items()
    )
    return cast("list[Score]", [primary, *companions])


def _number(value: float) -> float | None:
    """Return the value, or None for NaN and infinity, which JSON has not: a score of nothing is null."""
    return float(value) if math.isfinite(value) else None
