"""Surface normals: where the surface in every pixel faces."""

from __future__ import annotations

from ._kinds import UnitVectors
from ._spec import TASKS, TaskSpec

TASKS.add(
    TaskSpec(
        "normals",
        title="Normals",
        description="surface normals",
        kind=UnitVectors(),
        loss="l1_unit",
        metric="merr",
        weight=10.0,
        column=4,
        layout=3,
        colour="#009E73",
    )
)
