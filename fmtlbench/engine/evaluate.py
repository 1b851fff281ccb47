"""Score one model on its test splits. Always the model as it is now: no best-round picking."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from ..data.batches import test_batches
from ..data.views import ClientData
from ..datasets import DatasetInfo
from ..exchange import Party
from ..meters import make_meter
from ..metrics import Metric
from ..tasks import TaskSpec


@torch.no_grad()
def evaluate(
    model: nn.Module, party: Party, data: ClientData, info: DatasetInfo, specs: dict[str, TaskSpec], batch_size: int,
    device: torch.device, workers: int = 0,
) -> list[dict[str, Any]]:  # fmt: skip
    """One record per (split, task, metric)."""
    model.eval()
    records = []
    for split, view in data.tests.items():
        meters = {task: make_meter(specs[task], info, view.dataset.size) for task in party.tasks}
        for batch in test_batches(view, party.tasks, batch_size, device, workers):
            raw = model(batch["image"])
            for task, meter in meters.items():
                outputs = raw[task].float()
                scored = outputs if meter.takes_raw else specs[task].decode(outputs)
                # Meters sum in double precision, which MPS does not have.
                meter.update(*(t.cpu() if device.type == "mps" else t for t in (scored, batch[task])))
        for task, meter in meters.items():
            records += score_records(party, split, task, meter)
    return records


def score_records(party: Party, split: str, task: str, meter: Metric) -> list[dict[str, Any]]:
    """A meter's result as plain rows: the primary value first, then its companions."""
    result = meter.compute()
    where = {"client": party.id, "dataset": party.dataset, "split": split, "task": task}
    primary = {
        **where, "metric": result.label, "value": _number(result.value), "unit": result.unit,
        "higher_is_better": result.higher_is_better, "primary": True,
    }  # fmt: skip
    return [primary, *({**where, "metric": k, "value": _number(v), "primary": False} for k, v in result.extras.items())]


def _number(value: float) -> float | None:
    """JSON has no NaN: a score of nothing is null."""
    return float(value) if math.isfinite(value) else None
