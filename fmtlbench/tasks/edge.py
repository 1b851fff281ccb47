"""Edges: the boundaries between things."""

from __future__ import annotations

from ._kinds import ProbabilityMap
from ._spec import TASKS, TaskSpec

TASKS.add(
    TaskSpec(
        "edge",
        title="Edge",
        description="edges",
        kind=ProbabilityMap(("#ffffff", "#16324f"), lines=True),
        loss="weighted_bce",
        loss_options={"positive": 0.95},
        metric="odsf",
        weight=50.0,
        column=5,
        layout=4,
        colour="#CC79A7",
    )
)
