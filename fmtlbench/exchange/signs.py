"""Merging vectors by the signs that most of their weight votes for (EMR merging: elect, mask, rescale).

Vectors are the rows less a common base. The elected vector has, in each column, the sign of their sum and the largest
size among those that have it. A row is rebuilt from it where the row itself has the elected sign, times a factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .algebra import _is_for_kernels, _sources, empty_like

if TYPE_CHECKING:
    from torch import Tensor


def elect(after: Tensor, base: Tensor) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Return the elected vector, [d], and sums of sizes by row: its own, and the elected where it agrees. [R], [R]."""
    import torch

    elected = empty_like(base)
    if _is_for_kernels(after, base[None]):
        from .step_passes import elect as compiled

        own, agreed = compiled(after, base, elected)
        return elected, own, agreed
    wide = torch.float32 if after.device.type == "mps" else torch.float64
    sums = np.zeros((2, len(after)))
    for columns, vectors in _sources(after, base.expand_as(after)):
        positive = vectors.sum(0, dtype=wide) > 0
        elected[columns] = torch.where(positive, vectors.amax(0).clamp(min=0), vectors.amin(0).clamp(max=0))
        same = _agree(vectors, elected[columns])
        sums[0] += vectors.abs().sum(1, dtype=wide).cpu().numpy()
        sums[1] += (same * elected[columns].abs()).sum(1, dtype=wide).cpu().numpy()
    return elected, sums[0], sums[1]


def rebuild(after: Tensor, base: Tensor, elected: Tensor, factors: np.ndarray) -> Tensor:
    """Return `base` plus, where a row's sign is the elected one, its factor times the elected vector. [R, d]."""
    new = empty_like(after)
    if _is_for_kernels(after, base[None], elected[None]):
        from .step_passes import rebuild as compiled

        compiled(after, base, elected, factors, new)
        return new
    scale = after.new_tensor(factors)[:, None]
    for columns, vectors in _sources(after, base.expand_as(after)):
        part = elected[columns]
        new[:, columns] = base[columns] + _agree(vectors, part) * (scale * part)
    return new


def _agree(vectors: Tensor, elected: Tensor) -> Tensor:
    return ((vectors > 0) == (elected > 0)) & (vectors != 0)
