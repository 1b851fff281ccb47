"""DB-MTL: smoothed gradients of the logarithms of the losses, all brought to the length of the longest.

b_t ← β b_t + (1 − β) ∇log L_t with ∇log L_t = g_t / L_t; g = Σ_t (max_k ‖b_k‖ / ‖b_t‖) b_t. Lin et al. 2023,
arXiv:2308.12029. β = 0.9, and b_t starts at zero without a correction, as in LibMTL: the gradient of step k is short by
the factor 1 − βᵏ. LibMTL adds 1e-8 to losses and lengths, here nothing is. There decoders and heads get the gradient of
the logarithm too, here that of their task's loss. The b_t are as large as m encoders, on the client's device.

Scale-free: the fixed weights of the tasks are left out, since a factor of a loss leaves ∇log L_t as it is. A loss of 0,
or one over 10¹⁵ times smaller than its largest derivative, adds nothing to b_t; a b_t without direction adds nothing to
g. A step whose gradients or losses are not finite leaves the b_t alone and sums the gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.schema import limits
from ..exchange.algebra import gram, has_direction
from ._base import WEIGHTINGS, Weighting
from ._from_gram import lengths, to_array
from ._state import check_keys, check_tensor

if TYPE_CHECKING:
    from torch import Tensor

STEEPEST = 1e15  # of ∂log L: squares of more may leave float32


@WEIGHTINGS.register("db")
class DB(Weighting):
    """Dual balancing of losses and gradients."""

    title = "DB-MTL"
    paper = "Lin et al. 2023, arXiv:2308.12029"
    scale_free = True
    needs_gradients = True

    @dataclass(frozen=True)
    class Params:
        beta: float = limits(0.9, low=0, below=1, doc="β, how much of the smoothed gradients a step keeps; 0: nothing")

    params: Params

    def __init__(self, params: Params, tasks: Sequence[str]) -> None:
        super().__init__(params, tasks)
        self.smoothed: Tensor | None = None  # b_t, [m, d]

    def combine(self, gradients: Tensor, losses: Tensor) -> Tensor:
        import torch

        values = to_array(losses)
        steepest = to_array(torch.linalg.vector_norm(gradients, float("inf"), dim=1))
        self.last = np.ones(len(values))  # the factor of each smoothed gradient
        if not (np.isfinite(values).all() and np.isfinite(steepest).all()):
            return gradients.sum(0)
        smoothed = self._smooth(gradients, values, steepest)
        products = gram(smoothed)
        alive, length = has_direction(products), lengths(products)
        if alive.any():
            self.last = np.divide(length.max(), length, out=np.zeros(len(length)), where=alive)
        return gradients.new_tensor(self.last) @ smoothed

    def _smooth(self, gradients: Tensor, losses: np.ndarray, steepest: np.ndarray) -> Tensor:
        """Bring b up to date, row by row: nothing of its size exists beside it."""
        if self.smoothed is None:
            self.smoothed = gradients.new_zeros(gradients.shape)
        self.smoothed = self.smoothed.to(gradients)
        if self.smoothed.shape != gradients.shape:
            was, now = (" × ".join(map(str, each.shape)) for each in (self.smoothed, gradients))
            raise ValueError(f"{self.name}: the gradients are {now}, those smoothed so far {was}")
        beta = self.params.beta
        for row, gradient, loss, top in zip(self.smoothed, gradients, losses.tolist(), steepest.tolist()):
            row *= beta
            if loss > 0 and top <= STEEPEST * loss:
                row.add_(gradient, alpha=(1 - beta) / loss)
        return self.smoothed

    def state_dict(self) -> dict[str, Any]:
        return {"smoothed": self.smoothed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_keys(self.name, state, ["smoothed"])
        kept = state["smoothed"]
        if kept is not None:
            kept = check_tensor(self.name, "smoothed", kept, (len(self.tasks), None)).clone()
        self.smoothed = kept
