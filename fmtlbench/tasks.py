"""The six dense-prediction tasks, one record each: outputs, loss and its weight, decoding, metrics.

No torch here: `fmtlbench list` reads these records too. Losses are named and live in `losses.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .compiled import compiled
from .metrics import IGNORE

if TYPE_CHECKING:
    from torch import Tensor

    from .config import RunConfig

__all__ = ["IGNORE", "TASKS", "TaskSpec", "in_order", "task_specs"]


@dataclass(frozen=True)
class TaskSpec:
    """One task: everything the engine needs to train, decode and score it."""

    name: str
    title: str  # as in the papers' table heads
    loss: str  # a name in losses.LOSSES
    weight: float  # the FedHCA² paper's loss weight
    metric: str  # the primary one, a name in metrics.METRICS
    decode: Callable[[Tensor], Tensor]  # raw outputs [B, C, H, W] → what the metrics take
    channels: int | None = None  # None: the dataset's number of classes
    loss_options: dict[str, Any] = field(default_factory=dict)
    metric_options: dict[str, Any] = field(default_factory=dict)  # beyond the metric's defaults and the dataset's

    def outputs(self, classes: dict[str, int]) -> int:
        """Output channels, given the dataset's class counts by task."""
        return classes[self.name] if self.channels is None else self.channels


def _classes(z: Tensor) -> Tensor:
    """Name the likeliest class of each pixel, the first of equally likely ones."""
    found = compiled("largest", (z,))
    return found[0].view(len(z), *z.shape[2:]) if found else z.argmax(1)


def _unit(z: Tensor) -> Tensor:
    return z / z.norm(dim=1, keepdim=True).clamp(min=1e-12)


_SPECS = (
    TaskSpec("semseg", "SemSeg", "cross_entropy", 1.0, "miou", _classes),
    TaskSpec("human_parts", "Parts", "cross_entropy", 2.0, "miou", _classes),
    TaskSpec("sal", "Sal", "balanced_cross_entropy", 5.0, "maxf", lambda z: z.softmax(1)[:, 1], channels=2),
    TaskSpec("normals", "Normals", "l1_unit", 10.0, "merr", _unit, channels=3),
    TaskSpec(
        "edge", "Edge", "weighted_bce", 50.0, "odsf", lambda z: z[:, 0].sigmoid(),
        channels=1, loss_options={"positive": 0.95},
    ),
    TaskSpec("depth", "Depth", "l1", 1.0, "rmse", lambda z: z[:, 0].clamp(min=1e-9), channels=1),
)  # fmt: skip

TASKS: dict[str, TaskSpec] = {spec.name: spec for spec in _SPECS}


def in_order(tasks: Iterable[str]) -> tuple[str, ...]:
    """The tasks in the one order in which whole models and task codes are laid out on every client."""
    return tuple(sorted(tasks, key=list(TASKS).index))


ONE_LOGIT_SALIENCY = replace(
    TASKS["sal"], loss="balanced_bce", decode=lambda z: z[:, 0].sigmoid(), channels=1, loss_options={}
)


def task_specs(config: RunConfig, dataset: str) -> dict[str, TaskSpec]:
    """The records as a run's config has them for the clients of one dataset."""
    specs = dict(TASKS)
    if config.model.saliency == "one_logit":
        specs["sal"] = ONE_LOGIT_SALIENCY
    if dataset in (weights := config.train.edge_weight or {}):
        specs["edge"] = replace(specs["edge"], loss_options={"positive": weights[dataset]})
    for task, weight in (config.train.loss_weights or {}).items():
        specs[task] = replace(specs[task], weight=weight)
    for task, metric in (config.evaluation.metrics or {}).items():
        specs[task] = replace(specs[task], metric=metric)
    options = config.evaluation.metric_options or {}
    return {task: replace(spec, metric_options=options.get(spec.metric, {})) for task, spec in specs.items()}
