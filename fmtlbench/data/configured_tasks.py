"""The tasks as a run's config has them: weights, losses, metrics and their options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..tasks import TASKS, TaskSpec

if TYPE_CHECKING:
    from ..config.run_config import RunConfig


def task_specs(config: RunConfig, domain: str) -> dict[str, TaskSpec]:
    """Return the records of all tasks for the clients of one domain."""
    config.bring_files()
    config.data.dataset(domain)  # its file may bring tasks of its own
    specs = dict(TASKS)
    if config.model.saliency == "one_logit":
        specs["sal"] = replace(specs["sal"], loss="balanced_bce", channels=1, loss_options={})
    if domain in (weights := config.train.edge_weight or {}):
        specs["edge"] = replace(specs["edge"], loss_options={"positive": weights[domain]})
    for task, weight in (config.train.loss_weights or {}).items():
        specs[task] = replace(specs[task], weight=weight)
    for task, metric in (config.evaluation.metrics or {}).items():
        specs[task] = replace(specs[task], metric=metric)
    options = config.evaluation.metric_options or {}
    return {task: replace(spec, metric_options=options.get(spec.metric, {})) for task, spec in specs.items()}
