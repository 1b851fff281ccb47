"""Depth: how far away every pixel is, in metres along the view axis."""

from __future__ import annotations

from ._kinds import Metres
from ._spec import TASKS, TaskSpec

TASKS.add(
    TaskSpec(
        "depth",
        title="Depth",
        description="depth (m)",
        kind=Metres(),
        loss="l1",
        metric="rmse",
        weight=1.0,
        column=3,
        layout=5,
        colour="#56B4E9",
    )
)
