"""Change labels by a rule, so that two groups of clients have conflicting labels for the same images.

Training and scoring use the changed labels. Applying a rule before or after mirroring gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ..tasks import IGNORE


def relabel(batch: dict[str, Tensor], rules: Mapping[str, str], classes: Mapping[str, int]) -> dict[str, Tensor]:
    """Return the batch with labels changed by `rules` (task → rule); `classes` maps a task to its number of classes."""
    changed = {task: RULES[rule](batch[task], classes.get(task)) for task, rule in rules.items() if task in batch}
    return {**batch, **changed}


def _rotate(labels: Tensor, classes: int) -> Tensor:
    """Rename class c to (c + classes // 2) modulo the number of classes."""
    return torch.where(labels == IGNORE, labels, (labels + classes // 2) % classes)


def _negate(labels: Tensor, classes: int | None) -> Tensor:
    """Reverse the normals, so that they point into the surface."""
    return torch.where(labels == IGNORE, labels, -labels)


def _invert(labels: Tensor, classes: int | None) -> Tensor:
    """Swap foreground and background."""
    return torch.where(labels == IGNORE, labels, 1 - labels)


RULES: dict[str, Callable[[Tensor, int | None], Tensor]] = {"rotate": _rotate, "negate": _negate, "invert": _invert}
