"""What a task is: a record that names its kind of labels, its loss and weight, its metric and how tables show it.

No torch here: `fmtlbench list` reads these records too. Losses are named and live in `losses.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..base.errors import UsageError, nearest, short_repr
from ..base.registry import Registry
from ..metrics import IGNORE, METRICS
from ._kinds import LabelKind

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

LAST = 1000  # where tasks stand that do not say where


@dataclass(frozen=True)
class TaskSpec:
    """One task: everything that is needed to train, decode, score, store and show it.

    Args:
        name: as scenarios call it.
        title: as in the papers' table heads.
        kind: what its labels are.
        loss: a name in losses.LOSSES, or a function of (raw outputs, labels, `**loss_options`) that gives a scalar.
        metric: the primary one, a name in metrics.METRICS.
        weight: of the loss among a client's tasks; those of the six first ones are the FedHCA² paper's.
        description: a few words, for figures.
        channels: outputs of a network; None: the kind's, or the dataset's number of classes.
        column: tables list tasks by this number, then by name.
        layout: whole models and task codes are laid out by this number, then by name, on every client.
        colour: of its lines in figures; None: one of the palette.
        semantic: Its classes say what a picture shows: crops and label skew go by them.
        needs_foreground: An image that shows class 0 alone neither trains nor scores.
        from_scene: makes the label from what is known of an embedded sample (datasets.synth.full_sample), for tasks
            that the embedded datasets do not list among their own.
    """

    name: str
    title: str
    kind: LabelKind
    loss: str | Callable[..., Tensor]
    metric: str
    weight: float = 1.0
    description: str = ""
    channels: int | None = None
    column: int = LAST
    layout: int = LAST
    colour: str | None = None
    semantic: bool = False
    needs_foreground: bool = False
    from_scene: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = None
    loss_options: dict[str, Any] = field(default_factory=dict)
    unit: str | None = None  # of the score, where it is not the metric's own
    metric_options: dict[str, Any] = field(default_factory=dict)  # beyond the metric's defaults and the dataset's

    def __post_init__(self) -> None:
        if not isinstance(self.kind, LabelKind):
            raise UsageError(
                f"task {self.name!r}: kind is {short_repr(self.kind)}, expected a LabelKind such as Metres()"
            )
        if not isinstance(self.loss, str) and not callable(self.loss):
            raise UsageError(f"task {self.name!r}: loss is {short_repr(self.loss)}, expected a name or a function")

    def ignores(self, label: np.ndarray) -> bool:
        """Tell whether nothing of a dataset's label counts: the task needs foreground, and there is none."""
        return self.needs_foreground and not ((label != 0) & (label != IGNORE)).any()

    def decode(self, raw: Tensor) -> Tensor:
        """Turn raw outputs [B, C, H, W] into what the metrics take."""
        return self.kind.decode(raw)

    def outputs(self, classes: Mapping[str, int]) -> int:
        """Return the number of output channels, given the dataset's class counts by task."""
        if self.channels is not None:
            return self.channels
        return classes[self.name] if self.kind.outputs is None else self.kind.outputs


def _find_problem(task: Any) -> str | None:
    """Return why a user's file does not bring a task as it should be; None if it does."""
    if not isinstance(task, TaskSpec):
        return "is not a TaskSpec"
    if task.metric not in METRICS:
        return f"has the metric {task.metric!r}, which there is not; {nearest(task.metric, METRICS)}"
    return None


TASKS: Registry[TaskSpec] = Registry("task", "fmtlbench.tasks", _find_problem)


def in_order(tasks: Iterable[str]) -> tuple[str, ...]:
    """Sort tasks into the one order in which whole models and task codes are laid out on every client."""
    return tuple(sorted(tasks, key=lambda task: (TASKS[task].layout, task)))


def column_of(task: str) -> tuple[int, str]:
    """Return what to sort tasks by for table columns; those that nobody knows any more come last."""
    return (TASKS[task].column if task in TASKS else LAST), task


def in_columns(tasks: Iterable[str]) -> list[str]:
    """Sort tasks into the order of table columns."""
    return sorted(tasks, key=column_of)


def title_of(task: str) -> str:
    """Return how tables call a task; one whose package is not installed any more keeps its name."""
    return TASKS[task].title if task in TASKS else task


def colour_of(task: str, otherwise: str) -> str:
    """Return the colour of a task in figures, `otherwise` for one that has none.

    Those of the six first ones are told apart by people with any of the usual colour-vision deficiencies (Okabe–Ito).
    """
    return (TASKS[task].colour if task in TASKS else None) or otherwise


def semantic_task(tasks: Iterable[str]) -> str | None:
    """Return the task among `tasks` whose classes say what a picture shows, if there is one."""
    return next((task for task in tasks if task in TASKS and TASKS[task].semantic), None)
