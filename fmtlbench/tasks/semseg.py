"""Semantic segmentation: the class of the thing that every pixel shows."""

from __future__ import annotations

from ._kinds import Classes
from ._spec import TASKS, TaskSpec

TASKS.add(
    TaskSpec(
        "semseg",
        title="SemSeg",
        description="semantic segmentation",
        kind=Classes(),
        loss="cross_entropy",
        metric="miou",
        weight=1.0,
        column=0,
        layout=0,
        colour="#0072B2",
        semantic=True,
    )
)
