"""The tasks: one file and one record each. A package brings its own by an entry point of group `fmtlbench.tasks`."""

from ..metrics import IGNORE
from ._kinds import (
    FAINT,
    Classes,
    Doubts,
    LabelError,
    LabelKind,
    Metres,
    Positive,
    ProbabilityMap,
    UnitVectors,
    draw_image,
)
from ._spec import TASKS, TaskSpec, colour_of, column_of, in_columns, in_order, semantic_task, title_of

__all__ = [
    "FAINT",
    "IGNORE",
    "TASKS",
    "Classes",
    "Doubts",
    "LabelError",
    "LabelKind",
    "Metres",
    "Positive",
    "ProbabilityMap",
    "TaskSpec",
    "UnitVectors",
    "colour_of",
    "column_of",
    "draw_image",
    "in_columns",
    "in_order",
    "semantic_task",
    "title_of",
]
