"""GLS: the geometric mean of the losses.

(Π_t L_t)^{1/m}, whose gradient is Σ_t w_t ∇L_t with w_t = (Π L)^{1/m} / (m L_t). Chennupati et al., CVPR Workshops
2019, arXiv:1904.08492. Computed as exp(mean log L_t), since a product of losses may leave the range of float32. LibMTL
reports L_t / (m Π L) as weights, which is not what it trains with.

Scale-free: the fixed weights of the tasks are left out, since a factor of a loss changes the length of the gradient and
nothing else. A loss below 1e-30 counts as 1e-30 and has no gradient; everybody's gradient is small then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import WEIGHTINGS, Weighting

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 1e-30


@WEIGHTINGS.register("gls")
class GLS(Weighting):
    """Geometric mean of the losses."""

    title = "GLS"
    paper = "Chennupati et al., CVPR Workshops 2019, arXiv:1904.08492"
    scale_free = True

    def total(self, losses: Tensor) -> Tensor:
        positive = losses.clamp(min=SMALLEST)
        mean = positive.log().mean().exp()
        self.last = (mean / (len(losses) * positive)).detach()
        return mean
