"""The description of a dataset, available without opening it, and how a split is opened by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import FmtlbenchError, describe_error

if TYPE_CHECKING:
    from ._dataset import Dataset


@dataclass(frozen=True)
class OfficialList:
    """The standard split: its number of images and, where known, the sha256 of their sorted ids, one per line."""

    images: int
    sha256: str | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: its tasks, their classes, its name in tables, and its readers.

    Args:
        name: shown by `fmtlbench list datasets`.
        domain: its name in scenarios; several datasets may stand for one domain.
        source: "synth" (rendered) or "real" (read from files).
        title: its name in tables.
        tasks: the tasks it has labels for.
        class_names: by class number, for the tasks that have classes.
        description: one sentence.
        readers: classes that open it, one per layout of its files; the first that fits is used.
        metric_options: options of metrics that depend on the data, such as how far away a matching edge may be.
        official: the standard splits.
        open_tasks: whether it has labels for every task that can be computed from a scene, not only for those listed.
    """

    name: str
    domain: str
    source: str
    title: str
    tasks: tuple[str, ...]
    class_names: Mapping[str, tuple[str, ...]]
    description: str
    readers: tuple[type[Dataset], ...]
    metric_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    official: Mapping[str, OfficialList] = field(default_factory=dict)
    open_tasks: bool = False

    @property
    def classes(self) -> dict[str, int]:
        """Task → number of classes, for the tasks that have classes."""
        return {task: len(names) for task, names in self.class_names.items()}

    def all_tasks(self) -> tuple[str, ...]:
        """Return every task a client may have here: those listed, then those that can be computed from a scene."""
        if not self.open_tasks:
            return self.tasks
        from ...tasks import TASKS

        return (*self.tasks, *(name for name, task in TASKS.items() if task.from_scene and name not in self.tasks))


def open_split(
    info: DatasetInfo, split: str, data_root: str | Path | None = None, layout: str | None = None, **options: Any
) -> Dataset:
    """Find and open a split of a dataset; refuse it if files are missing.

    Args:
        info: The dataset.
        split: "train" or "test".
        data_root: The value of --data-root; without it $FMTLBENCH_DATA or the user's config file decides.
        layout: The name of an archive, to choose one of several.
        options: Arguments of `Dataset`: size, tasks, limit, purpose, complete, progress, resize, …
    """
    try:
        return info.readers[0].open(info, split, data_root, layout, **options)
    except SystemExit as error:  # of a user's reader, which must not end the command as if all were well
        raise FmtlbenchError(f"{info.name} {split}: opening it failed: {describe_error(error)}") from error
