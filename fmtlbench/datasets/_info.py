"""What a dataset says of itself, without being opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._dataset import Dataset


@dataclass(frozen=True)
class OfficialList:
    """A split as everybody uses it: how many images, and where known the sha256 of their sorted ids, one per line."""

    images: int
    sha256: str | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset: which tasks it labels, which classes they have, how tables call it, and who reads it.

    Args:
        name: as `fmtlbench list datasets` shows it.
        domain: as scenarios call it; several datasets may stand for one domain.
        source: "synth" (rendered) or "real" (read from files).
        title: as tables call it.
        tasks: that it labels.
        class_names: of the tasks that have classes, by class number.
        description: a sentence.
        readers: classes that open it, one per layout of its files; the first that fits is taken.
        metric_options: options of a metric that belong to the data, such as how far a matching edge may lie.
        official: the splits as everybody uses them.
        open_tasks: It gives labels for every task that can be made from a scene, not only for those it lists.
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
        """Return every task a client may have here: those listed, then those that scenes can be asked for."""
        if not self.open_tasks:
            return self.tasks
        from ..tasks import TASKS

        return (*self.tasks, *(name for name, task in TASKS.items() if task.from_scene and name not in self.tasks))
