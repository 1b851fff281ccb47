"""Files of a user that bring a metric, a partition, a task or a weighting: read when a config is made, and when used.

Where a config may name one of these, it may give the path of a .py file with one registration instead. The config then
holds the registered name, what is in the file counts for its hash, and every process that works by the config reads the
file before it looks the name up.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import FmtlbenchError, UsageError, nearest, unknown
from ..base.registry import Registry
from ..base.user_code import UserCode, read_user_code
from ..metrics import METRICS, Metric
from ..tasks import TASKS, TaskSpec
from ..weightings import WEIGHTINGS, Weighting
from .partitions import PARTITIONS, PartitionRule

if TYPE_CHECKING:
    from ..config.run_config import RunConfig

OPEN: dict[str, Registry[Any]] = {registry.kind: registry for registry in (METRICS, PARTITIONS, TASKS, WEIGHTINGS)}


def _find_metric_problem(metric: Any) -> str | None:
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        return "is not a subclass of fmtlbench.metrics.Metric"
    for field, form in (("label", str), ("unit", str), ("higher_is_better", bool), ("tasks", tuple)):
        if not isinstance(getattr(metric, field, None), form):
            return f"has no {field} of type {form.__name__}; add it to the class"
    return None


def _find_partition_problem(rule: Any) -> str | None:
    fits = isinstance(rule, type) and issubclass(rule, PartitionRule)
    return None if fits else "is not a subclass of fmtlbench.data.partitions.PartitionRule"


def _find_task_problem(task: Any) -> str | None:
    if not isinstance(task, TaskSpec):
        return "is not a TaskSpec"
    if task.metric not in METRICS:
        return f"has the metric {task.metric!r}, which there is not; {nearest(task.metric, METRICS)}"
    return None


def _find_weighting_problem(weighting: Any) -> str | None:
    if not (isinstance(weighting, type) and issubclass(weighting, Weighting)):
        return "is not a subclass of fmtlbench.weightings.Weighting"
    for text in ("title", "paper"):
        if not isinstance(vars(weighting).get(text), str):
            return f'has no {text} of its own; add {text} = "…" to the class'
    if not dataclasses.is_dataclass(weighting.Params):
        return "has a Params that is not a dataclass; add @dataclass(frozen=True)"
    return None


PROBLEMS = {
    "metric": _find_metric_problem,
    "partition": _find_partition_problem,
    "task": _find_task_problem,
    "weighting": _find_weighting_problem,
}

_loaded: dict[str, UserCode] = {}  # entry of a config → what it stands for in this process now


def take_file(kind: str, path: str, where: str, tree: dict[str, Any]) -> str:
    """Register what a file brings, note the file in a config's tree, and return the registered name."""
    file = Path(path).absolute()
    name = OPEN[kind].keep(str(file), where, PROBLEMS[kind])
    entry, code = f"{kind} {name}", read_user_code(str(file))
    _loaded[entry] = code
    tree.setdefault("plugins", {})[entry] = code.content
    tree.setdefault("plugin_files", {})[entry] = str(file)
    return name


def find_name(kind: str, given: str, where: str, tree: dict[str, Any]) -> str:
    """Return the registered name that a config means by a name, or by the path of a file, which is read and noted.

    Raises:
        UsageError: There is no such name, with the nearest ones, or what has it is not as it should be.
    """
    if given.endswith(".py"):
        return take_file(kind, given, where, tree)
    if given not in OPEN[kind]:
        raise unknown(kind, given, OPEN[kind], where)
    if problem := PROBLEMS[kind](OPEN[kind][given]):
        raise UsageError(f"{where}: {kind} {given!r} {problem}")
    return given


def load_plugins(config: RunConfig) -> None:
    """Register in this process what the files of a config bring; refuse a file that is missing or has changed."""
    for entry, path in config.plugin_files.items():
        if not Path(path).is_file():
            raise FmtlbenchError(f"{path}: the file that brought {entry!r} is not there any more")
        known = _loaded.get(entry)
        if known is None or known.content != config.plugins.get(entry) or not known.is_unchanged():
            registry = OPEN[entry.partition(" ")[0]]  # not read yet, or another config's file has the same name
            registry.keep(path)
            _loaded[entry] = read_user_code(path)
        if _loaded[entry].content != config.plugins.get(entry):
            raise FmtlbenchError(f"{path}: the file that brought {entry!r} has changed since, or a module beside it")
