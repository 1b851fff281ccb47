"""Open the datasets that stand for a scenario's domains, as the config says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..metrics import METRICS
from ..tasks import semantic_task
from . import datasets
from .cache import open_cached
from .configured_tasks import task_specs
from .datasets import Reader, read_sample
from .partitions import PARTITIONS

if TYPE_CHECKING:
    from ..config.run_config import DataConfig, RunConfig
    from ..listeners import Listener


def open_datasets(config: RunConfig, data_root: Path | None, progress: Listener) -> dict[tuple[str, str], Reader]:
    """Open every dataset a run needs, by (domain, split), with the labels its clients use."""
    config.bring_files()
    opened = {}
    for domain, tasks in _tasks_by_domain(config).items():
        purpose = _purpose(config, domain, tasks)
        for split in ("train", "test"):
            tell = partial(progress.preparing, f"{domain} {split} data")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                opened[domain, split] = open_split(config.data, domain, split, data_root, tell, tasks, purpose)
            for warning in caught:
                progress.note(str(warning.message))
        if note := _say_cropping(opened[domain, "test"]):
            progress.note(f"{domain}: {note}")
    return opened


def _say_cropping(dataset: Reader) -> str | None:
    """Return what becomes of images that are larger than the networks' size; None where the first one fits in."""
    if dataset.stacked or dataset.resize != "none" or not len(dataset):
        return None
    shape = read_sample(dataset, 0, ("image",))["image"].shape[:2]
    if all(have <= most for have, most in zip(shape, dataset.size)):
        return None
    mine, size = ("×".join(map(str, sides)) for sides in (shape, dataset.size))
    return (
        f"images such as the first, of {mine} pixels, are larger than data.size, {size}: training crops them, and "
        "their middle is scored; data.resize=fixed scales them instead"
    )


def _tasks_by_domain(config: RunConfig) -> dict[str, tuple[str, ...]]:
    used: dict[str, dict[str, None]] = {}
    for spec in config.scenario.everybody():
        tasks = used.setdefault(spec.dataset, {})
        tasks.update(dict.fromkeys(spec.tasks))
        if PARTITIONS[config.scenario.partition.kind].reads_classes:
            named = semantic_task(config.data.dataset(spec.dataset).tasks)
            tasks.update({named: None} if named else {})
    return {domain: tuple(tasks) for domain, tasks in used.items()}


def _purpose(config: RunConfig, domain: str, tasks: Iterable[str]) -> str | None:
    """Return "training" if a metric is computed against the labels used for training, else None."""
    specs = task_specs(config, domain)
    twofold = {task for reader in config.data.dataset(domain).readers for task in reader.twofold}
    chosen = [METRICS[specs[task].metric].scores_training_labels for task in tasks if task in twofold]
    return "training" if any(chosen) else None


def open_split(
    config: DataConfig,
    domain: str,
    split: str,
    data_root: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    tasks: Iterable[str] | None = None,
    purpose: str | None = None,
) -> Reader:
    """Open the `train` or `test` split of the dataset for `domain`, using the cache of decoded files where it exists.

    Args:
        config: Decides which dataset, its image size, and how many images (the first of its list).
        domain: The name used in the scenario.
        split: "train" or "test".
        data_root: The value of --data-root, if it was given.
        progress: Called with (done, total) where something takes long.
        tasks: Labels it must have; by default all it lists.
        purpose: What the labels are for, "training" or "scoring"; by default decided by the split.
    """
    info = config.dataset(domain)
    samples = (config.train_samples if split == "train" else config.test_samples) or {}
    dataset = datasets.open_split(
        info,
        split,
        data_root,
        size=tuple(config.size[domain]),
        tasks=tasks,
        limit=samples.get(domain),
        purpose=purpose,
        progress=progress,
        resize=config.resize,
    )
    return dataset if dataset.stacked else open_cached(dataset) or dataset
