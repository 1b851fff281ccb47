"""Saliency: whether a pixel belongs to what one looks at first."""

from __future__ import annotations

from ._kinds import ProbabilityMap
from ._spec import TASKS, TaskSpec

TASKS.add(
    TaskSpec(
        "sal",
        title="Sal",
        description="saliency",
        kind=ProbabilityMap(("#20242c", "#ffc83d")),
        loss="balanced_cross_entropy",
        metric="maxf",
        weight=5.0,
        channels=2,  # no and yes; one logit with model.saliency=one_logit
        column=2,
        layout=2,
        colour="#E69F00",
    )
)
