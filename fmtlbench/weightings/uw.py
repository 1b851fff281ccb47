"""UW: weights by learned uncertainty, so that a task with a large loss counts less.

Σ_t L_t / (2 e^{s_t}) + s_t / 2, where the s_t are learned by the client's optimiser, without weight decay, from −0.5 on
(LibMTL's start). Kendall, Gal and Cipolla, CVPR 2018, arXiv:1705.07115. All tasks have the factor 1/2, as in LibMTL;
the paper leaves it out for classification.

Where s has settled, e^{s_t} = L_t and every weight is 1 / (2 L_t); but s moves by about the learning rate in a step, so
that the fixed weights of the tasks matter for long: they are kept. A loss of 0 has no gradient, and its s_t falls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import WEIGHTINGS
from ._learned import Learned

if TYPE_CHECKING:
    from torch import Tensor


@WEIGHTINGS.register("uw")
class UW(Learned):
    """Uncertainty weights."""

    title = "UW"
    paper = "Kendall et al., CVPR 2018, arXiv:1705.07115"
    start = -0.5

    def total(self, losses: Tensor) -> Tensor:
        s = self.s.to(losses.device)
        weights = (-s).exp() / 2
        self.last = weights.detach()
        return (weights * losses + s / 2).sum()
