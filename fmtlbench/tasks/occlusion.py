"""Occlusion edges: where something near hides something far, whatever the things are.

Edges between things that touch, such as a table and the floor it stands on, are none; those between two parts of one
person are, where an arm passes in front of the body.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ._kinds import ProbabilityMap
from ._spec import TASKS, TaskSpec

GAP = 0.05  # of the nearer depth: a jump by more than this is not one surface, and not two that touch


def find_jumps(scene: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return 1 on the nearer side of every jump in depth between neighbours that show different solids.

    A solid is convex, so the depth of what is seen of it has no jumps: between pixels of one solid there are none.
    """
    solid, depth = scene["solid"], np.where(scene["solid"] < 0, np.inf, scene["depth"])
    jumps = np.zeros(solid.shape, bool)
    for a, b in (((slice(None), slice(1, None)), (slice(None), slice(-1))), ((slice(1, None),), (slice(-1),))):
        other = solid[a] != solid[b]
        jumps[a] |= other & (depth[b] > (1 + GAP) * depth[a])
        jumps[b] |= other & (depth[a] > (1 + GAP) * depth[b])
    return jumps.astype(np.uint8)


TASKS.add(
    TaskSpec(
        "occlusion",
        title="Occl",
        description="occlusion edges",
        kind=ProbabilityMap(("#ffffff", "#7a1f3d"), lines=True),
        loss="weighted_bce",
        loss_options={"positive": 0.95},
        metric="odsf",
        weight=50.0,  # as for edges
        from_scene=find_jumps,
    )
)
