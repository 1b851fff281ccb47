"""RLW: random weights, drawn anew in every step.

Σ_t w_t L_t with w = softmax of m draws from N(0, 1). Lin et al., TMLR 2022, arXiv:2111.10603. The weights sum to 1, as
in LibMTL: on average the gradient is 1/m of the sum's, of which an adaptive optimiser sees nothing. The fixed weights
of the tasks are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import WEIGHTINGS, Weighting

if TYPE_CHECKING:
    from torch import Tensor


@WEIGHTINGS.register("rlw")
class RLW(Weighting):
    """Random loss weights."""

    title = "RLW"
    paper = "Lin et al., TMLR 2022, arXiv:2111.10603"

    def total(self, losses: Tensor) -> Tensor:
        import torch

        self.last = torch.randn(len(losses)).softmax(0).to(losses)  # drawn on the CPU: the same on every device
        return (self.last * losses).sum()
