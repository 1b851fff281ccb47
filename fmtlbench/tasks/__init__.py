"""The tasks: one file and one record each. A package brings its own by an entry point of group `fmtlbench.tasks`."""

from ..metrics import IGNORE
from ._spec import TASKS, TaskSpec, colour_of, column_of, in_columns, in_order, semantic_task, title_of

__all__ = [
    "IGNORE",
    "TASKS",
    "TaskSpec",
    "colour_of",
    "column_of",
    "in_columns",
    "in_order",
    "semantic_task",
    "title_of",
]
