"""IMTL-L: learned scales that bring all losses to the same size; impartial MTL's half for losses.

Σ_t e^{s_t} L_t − s_t, where the s_t are learned by the client's optimiser, without weight decay, from 0 on. Liu et al.,
ICLR 2021 (openreview.net/forum?id=IMPnRXEWpvr). LibMTL's "IMTL" is this together with IMTL-G (`imtl_g`).

Where s has settled, e^{s_t} L_t = 1 for every task, whatever the loss is multiplied by. Until then it is not so: s
moves by about the learning rate in a step, so 10⁴ steps of 1e-4 change a weight by a factor of e. So the fixed weights
of the tasks are kept, as for UW, which is half of this with s negated. A loss of 0 has no gradient, and its s_t rises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import WEIGHTINGS
from ._learned import Learned

if TYPE_CHECKING:
    from torch import Tensor


@WEIGHTINGS.register("imtl_l")
class IMTLL(Learned):
    """Learned scales of the losses."""

    title = "IMTL-L"
    paper = "Liu et al., ICLR 2021"

    def total(self, losses: Tensor) -> Tensor:
        s = self.s.to(losses.device)
        weights = s.exp()
        self.last = weights.detach()
        return (weights * losses - s).sum()
