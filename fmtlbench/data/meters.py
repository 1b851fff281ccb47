"""Choose the meter of a task, with options from the metric's defaults, the dataset and the config.

Does not import torch, because options are checked when a config is resolved.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.errors import RefusedError, UsageError, describe_error, unknown
from ..base.located import locate
from ..base.schema import build
from ..metrics import METRICS, Metric, MetricError
from ..tasks import TASKS, TaskSpec
from .datasets import DATASETS, DatasetInfo

if TYPE_CHECKING:
    from ..config.run_config import RunConfig

KEY = "evaluation.metric_options"


def make_meter(spec: TaskSpec, info: DatasetInfo, size: tuple[int, int]) -> Metric:
    """Return the task's primary metric, set up for a dataset and an image size; errors name the metric."""
    try:
        return METRICS[spec.metric].set_up(spec, info, size, spec.metric_options)
    except MetricError:
        raise
    except (Exception, SystemExit) as error:
        raise MetricError(
            f"{spec.metric} cannot be set up for {spec.name} of {info.name}: {describe_error(error)}"
        ) from error


def fits_task(metric: type[Metric], task: TaskSpec) -> bool:
    """Return whether a metric can score a task: the metric lists the task, or the task names the metric."""
    return task.name in metric.tasks or task.metric == metric.name


def typed_options(name: str, given: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the given options of the metric `name`, cast to the types it declares; refuse unknown ones."""
    metric = METRICS[name]
    offered = _list_options(metric)
    for key, value in given.items():
        reason = metric.decided.get(key) or metric.decided.get(f"{key}={value}")
        if reason:
            where = f"{path}.{key}" if path else key
            choice = f"; options of {name}: {', '.join(offered) or 'none'}" if key in metric.decided else ""
            raise UsageError(": ".join(part for part in (locate(given, key), where, reason + choice) if part))
    fields = [(key, hint, dataclasses.field(default=None)) for key, hint in offered.items()]
    typed = build(dataclasses.make_dataclass("Options", fields), given, path)
    return {key: getattr(typed, key) for key in given}


def _list_options(metric: type[Metric]) -> dict[str, Any]:
    """Return the keyword arguments of a metric that a config may set, with their types."""
    try:
        hints = typing.get_type_hints(metric.__init__)
    except NameError:  # an annotation that only a type checker can resolve
        hints = {}
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [p.name for p in inspect.signature(metric).parameters.values() if p.kind in named]
    return {name: hints.get(name, Any) for name in parameters if name not in metric.decided}


def check_metric_options(config: RunConfig, tree: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the config's metric options, cast to their types; refuse wrong ones before a run has trained.

    `tree` is what the config was made of, which knows where each value was said.
    """
    given = config.evaluation.metric_options
    if given is None:
        return None
    used = {task: spec.metric for task, spec in TASKS.items()} | (config.evaluation.metrics or {})
    here = dict.fromkeys(task for spec in config.scenario.everybody() for task in spec.tasks)
    typed = {}
    for name, options in given.items():
        path = f"{KEY}.{name}"
        if name not in METRICS:
            raise unknown("metric", name, METRICS, f"{locate(tree, path) or config.preset}: {path}")
        typed[name] = typed_options(name, tree["evaluation"]["metric_options"][name], path)
        for key, value in typed[name].items():  # one by one, so that the message can say where it was written
            _try(config, name, {key: value}, f"{path}.{key}", tree)
        _try(config, name, typed[name], path, tree)
        tasks = [task for task in here if fits_task(METRICS[name], TASKS[task])]
        if tasks and all(used[task] != name for task in tasks) and _find_flag(path, options, tree):
            now = ", ".join(f"{task} is scored with {used[task]}" for task in tasks)
            wanted = " ".join(f"--set evaluation.metrics.{task}={name}" for task in tasks)
            raise RefusedError(f"{_find_flag(path, options, tree)}: {path}: would do nothing: {now}; add {wanted}")
    return typed


def _try(config: RunConfig, name: str, options: dict[str, Any], path: str, tree: Mapping[str, Any]) -> None:
    # The datasets of the scenario's clients; for a metric that scores none of their tasks, all there are.
    used = {spec.dataset: config.data.dataset(spec.dataset) for spec in config.scenario.everybody()}
    fitting = [d for d in used.values() if any(fits_task(METRICS[name], TASKS[task]) for task in d.tasks)]
    for info in fitting or DATASETS.values():
        size = config.data.size.get(info.domain) or next(iter(config.data.size.values()))
        for task in (task for task in info.tasks if fits_task(METRICS[name], TASKS[task])):
            try:
                make_meter(dataclasses.replace(TASKS[task], metric=name, metric_options=options), info, size)
            except MetricError as error:
                raise UsageError(f"{locate(tree, path) or config.preset}: {path}: {error}") from None


def _find_flag(path: str, options: Mapping[str, Any], tree: Mapping[str, Any]) -> str | None:
    """Return the --set flag that gave one of the options, or None: options of a preset may stay unused."""
    written = [locate(tree, f"{path}.{key}") for key in options]
    return next((where for where in written if where.startswith("--set")), None)
