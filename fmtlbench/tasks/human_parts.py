"""Human parts: which part of a person every pixel shows, 0 for everything else."""

from __future__ import annotations

from ._kinds import Classes
from ._spec import TASKS, TaskSpec

TASKS.add(
    TaskSpec(
        "human_parts",
        title="Parts",
        description="human parts",
        kind=Classes(),
        loss="cross_entropy",
        metric="miou",
        weight=2.0,
        column=1,
        layout=1,
        colour="#D55E00",
        needs_foreground=True,  # the papers do not train or score background alone
    )
)
