"""PCGrad: each task's gradient loses what points against another's; the sum of what is left.

For each t, over the others k in random order: if ⟨p_t, g_k⟩ < 0, then p_t −= ⟨p_t, g_k⟩/‖g_k‖² g_k, from p_t = g_t; the
gradient is Σ p_t. Yu et al., NeurIPS 2020, arXiv:2001.06782. LibMTL lets a task meet itself as well, the paper does
not.

The fixed weights of the tasks are kept. A gradient without direction is not projected upon. Without a conflict this is
the sum of the gradients.
"""

from __future__ import annotations

import numpy as np

from ..exchange.conflicts import project
from ._base import WEIGHTINGS
from ._from_gram import FromGram


@WEIGHTINGS.register("pcgrad")
class PCGrad(FromGram):
    """Projecting conflicting gradients."""

    title = "PCGrad"
    paper = "Yu et al., NeurIPS 2020, arXiv:2001.06782"

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        return project(gram, draw_orders(len(gram))).sum(0)


def draw_orders(count: int) -> np.ndarray:
    """Draw for each task the order in which it meets the others, from torch's global generator. [m, m − 1]."""
    import torch

    everyone = np.arange(count)
    return np.array([np.delete(everyone, t)[torch.randperm(count - 1).numpy()] for t in everyone])
