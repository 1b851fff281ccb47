"""The code that a config uses: what brings its method, weighting, network, metrics, tasks, datasets and partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..algorithms import ALGORITHMS
from ..base.refs import Ref
from ..base.registry import Registry
from ..data.configured_tasks import task_specs
from ..data.datasets import DATASETS
from ..data.partitions import PARTITIONS
from ..metrics import METRICS
from ..networks.architectures import ARCHITECTURES
from ..tasks import TASKS
from ..weightings import WEIGHTINGS
from .code_identity import CHOSEN, SOURCES, CodeIdentity, Sources

if TYPE_CHECKING:
    from ..config.run_config import RunConfig


def code_of(config: RunConfig, sources: Sources = SOURCES) -> CodeIdentity:
    """Return the identity of the code that makes the numbers of a config.

    Without `sources` it is that of this process; new ones read the files as they are now.
    """
    used: dict[str, set[str]] = {part: set() for part in CHOSEN}

    def add(part: str, registry: Registry, ref: Ref) -> None:
        used[part] |= {str(file) for file in ref.files} or {registry.home_of(ref.name)}

    add("method", ALGORITHMS, config.algorithm.ref)
    add("network", ARCHITECTURES, config.model.ref)
    add("weighting", WEIGHTINGS, config.ref_of("weighting", config.train.weighting))
    add("partitions", PARTITIONS, config.ref_of("partition", config.scenario.partition.kind))
    for domain in config.scenario.domains:
        specs = task_specs(config, domain)
        for task in {task for group in config.scenario.clients if group.dataset == domain for task in group.tasks}:
            add("tasks", TASKS, config.ref_of("task", task))
            add("metrics", METRICS, config.ref_of("metric", specs[task].metric))
        if domain not in (config.data.files or {}):
            used["datasets"].add(DATASETS.home_of(config.data.dataset(domain).name))
    used["datasets"] |= {path for path in (config.data.files or {}).values() if path.endswith(".py")}
    return sources.identify(used)


def network_code_of(config: RunConfig) -> CodeIdentity:
    """Return the identity of the code that builds the networks of a config: the engine and the network, no more."""
    ref = config.model.ref
    files = {str(file) for file in ref.files} or {ARCHITECTURES.home_of(ref.name)}
    return SOURCES.identify({"network": files})
