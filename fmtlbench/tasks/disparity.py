"""Disparity: how near every pixel is. The embedded scenes give the inverse of depth, per metre."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ._kinds import Positive
from ._spec import TASKS, TaskSpec


def invert_depth(scene: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return 1 / depth, and 0 where there is none."""
    depth = scene["depth"]
    return np.divide(1.0, depth, out=np.zeros_like(depth), where=depth > 0)


TASKS.add(
    TaskSpec(
        "disparity",
        title="Disparity",
        description="disparity",
        kind=Positive("disparity", highest=1.0, nearer="grows"),
        loss="l1",
        metric="rmse",
        unit="",  # per metre of the embedded scenes, pixels elsewhere
        from_scene=invert_depth,
    )
)
