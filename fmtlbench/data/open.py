"""Open the dataset that stands for a domain, as the config says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import DataConfig, RunConfig
from ..listeners import Listener
from .cache import CachedDataset, open_cached
from .catalog import dataset_for
from .real import open_real
from .synth import SynthDataset

if TYPE_CHECKING:
    from .real.dataset import RealDataset


Dataset = "SynthDataset | RealDataset | CachedDataset"


def open_datasets(config: RunConfig, data_root: Path | None, progress: Listener) -> dict[tuple[str, str], Dataset]:
    """Every dataset a run needs, by (domain, split), with the labels its clients use."""
    opened = {}
    # The public meters compute the edge loss against the label that is trained on.
    metric = (config.evaluation.metrics or {}).get("edge", "")
    edges = "training" if metric.startswith("edge_loss") else None
    for domain, tasks in _tasks_by_domain(config).items():
        for split in ("train", "test"):
            tell = partial(progress.preparing, f"{domain} {split} data")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                opened[domain, split] = open_split(config.data, domain, split, data_root, tell, tasks, edges)
            for warning in caught:
                progress.note(str(warning.message))
    return opened


def _tasks_by_domain(config: RunConfig) -> dict[str, tuple[str, ...]]:
    used: dict[str, dict[str, None]] = {}
    for spec in config.scenario.everybody():
        used.setdefault(spec.dataset, {}).update(dict.fromkeys(spec.tasks))
        if config.scenario.partition.kind == "dirichlet":
            used[spec.dataset]["semseg"] = None  # whose histograms decide who gets an image
    return {domain: tuple(tasks) for domain, tasks in used.items()}


def open_split(
    config: DataConfig,
    domain: str,
    split: str,
    data_root: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    tasks: Iterable[str] | None = None,
    edges: str | None = None,
) -> SynthDataset | RealDataset | CachedDataset:
    """The `train` or `test` split of the dataset for `domain`; real data come out of the cache where it has them.

    Args:
        config: Decides between embedded and real data, their size, and how many images (of a real list: the first).
        domain: "nyud" or "pascal".
        split: "train" or "test".
        data_root: Where the real datasets lie, if --data-root said so.
        progress: Called with (done, total) where something takes long.
        tasks: Labels a real dataset must have; by default all.
        edges: Which edges of a real dataset to draw, "training" or "scoring"; by default what the split is for.
    """
    info, size = dataset_for(domain, config.source), tuple(config.size[domain])
    samples = (config.train_samples if split == "train" else config.test_samples) or {}
    if info.source == "real":
        limit = samples.get(domain)
        dataset = open_real(
            domain, split, data_root, size, tasks, limit=limit, edges=edges, progress=progress, resize=config.resize
        )
        return open_cached(dataset) or dataset
    return SynthDataset(info.name, split, samples[domain], size, progress=progress)
