"""The code that a config uses: what brings its method, weighting, network, metrics, tasks, datasets and partition."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..algorithms import ALGORITHMS
from ..base.registry import Registry
from ..base.user_code import UserCode
from ..base.user_files import USER_MODULE
from ..data.configured_tasks import task_specs
from ..data.datasets import DATASETS
from ..data.partitions import PARTITIONS
from ..metrics import METRICS
from ..networks.architectures import ARCHITECTURES
from ..tasks import TASKS
from ..weightings import WEIGHTINGS
from .code_identity import SOURCES, CodeIdentity, Sources

if TYPE_CHECKING:
    from ..config.run_config import RunConfig


def code_of(config: RunConfig, sources: Sources = SOURCES) -> CodeIdentity:
    """Return the identity of the code that makes the numbers of a config.

    Without `sources` it is that of this process; new ones read the files as they are now.
    """
    tasks: set[str] = set()
    metrics: set[str] = set()
    datasets: set[str] = set()
    for domain in config.scenario.domains:
        here = {task for group in config.scenario.clients if group.dataset == domain for task in group.tasks}
        tasks |= here
        specs = task_specs(config, domain)
        metrics |= {specs[task].metric for task in here}
        if domain not in (config.data.files or {}):
            datasets.add(_find_home(DATASETS, config.data.dataset(domain).name))
    files = [path for path in (config.data.files or {}).values() if path.endswith(".py")]
    return sources.identify(
        {
            "method": _bringing(ALGORITHMS, config.algorithm.name, config.algorithm.code),
            "network": _bringing(ARCHITECTURES, config.model.architecture, config.model.code),
            "datasets": {*datasets, *files},
            "tasks": _named(config, TASKS, tasks),
            "metrics": _named(config, METRICS, metrics),
            "partitions": _named(config, PARTITIONS, {config.scenario.partition.kind}),
            "weighting": _named(config, WEIGHTINGS, {config.train.weighting}),
        }
    )


def network_code_of(config: RunConfig) -> CodeIdentity:
    """Return the identity of the code that builds the networks of a config: the engine and the network, no more."""
    return SOURCES.identify({"network": _bringing(ARCHITECTURES, config.model.architecture, config.model.code)})


def _bringing(registry: Registry, name: str, code: UserCode) -> set[str]:
    """Return the module that registered a class, or the user's file and those beside it that it imports."""
    if code.file is None:
        return {_find_home(registry, name)}
    file = Path(code.file).absolute()
    return {str(file), *(str(file.parent / helper) for helper in code.helpers)}


def _named(config: RunConfig, registry: Registry, names: set[str]) -> set[str]:
    """Return what brings each of these: the module that registered it, or the user's file that the config names."""
    files = {name: config.plugin_files.get(f"{registry.kind} {name}") for name in names}
    return {_find_home(registry, name) if file is None else file for name, file in files.items()}


def _find_home(registry: Registry, name: str) -> str:
    """Return the module that registered something; of a user's file that brought it along with a dataset, its path."""
    module = registry.home_of(name)
    return str(sys.modules[module].__file__) if module.startswith(USER_MODULE) else module
