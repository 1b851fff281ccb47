"""Judging other clients' encoders: each in turn takes the place of a client's own, before its decoders and heads.

This is defined for any task sets, since encoders are congruent and nothing else is exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ._base import Batch, Workbench

if TYPE_CHECKING:
    from torch import Tensor


def encoder_losses(local: Workbench, encoders: Sequence[Tensor], batches: Iterable[Batch]) -> np.ndarray:
    """Return the unweighted losses of a client's tasks with each encoder, mean over images; its own stays. [n, m]."""
    import torch

    row = local.rows("encoder")[0]
    own = row.clone()
    total, images = np.zeros((len(encoders), len(local.party.tasks))), 0
    with torch.no_grad():
        for batch in batches:  # loaded once for all of them
            found = []
            for encoder in encoders:
                row.copy_(encoder)
                found.append(local.losses(batch))
            count = len(batch["image"])
            total += count * torch.stack(found).cpu().numpy().astype(float)
            images += count
        row.copy_(own)
    if not images:
        raise ValueError(f"client {local.party.id} has no images to judge encoders by, expected at least one")
    return total / images
