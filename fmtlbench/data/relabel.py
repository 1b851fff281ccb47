"""Labels that are not the dataset's: clients of one world and of another disagree about the same images.

Every rule is its own world's truth: training and scoring see it alike. It commutes with mirroring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ..tasks import IGNORE


def relabel(batch: dict[str, Tensor], rules: Mapping[str, str], classes: Mapping[str, int]) -> dict[str, Tensor]:
    """Return the batch with the labels changed as `rules` say, task → rule; `classes` counts those of a task."""
    changed = {task: RULES[rule](batch[task], classes.get(task)) for task, rule in rules.items() if task in batch}
    return {**batch, **changed}


def _rotate(labels: Tensor, classes: int) -> Tensor:
    """Class c is called c + half the number of classes, round and round."""
    return torch.where(labels == IGNORE, labels, (labels + classes // 2) % classes)


def _negate(labels: Tensor, classes: int | None) -> Tensor:
    """Normals point into the surface."""
    return torch.where(labels == IGNORE, labels, -labels)


def _invert(labels: Tensor, classes: int | None) -> Tensor:
    """Foreground and background change places."""
    return torch.where(labels == IGNORE, labels, 1 - labels)


RULES: dict[str, Callable[[Tensor, int | None], Tensor]] = {"rotate": _rotate, "negate": _negate, "invert": _invert}
