"""GradNorm: weights that are learned until every task's gradient has a length that fits its progress.

The gradient is Σ_t w_t g_t with w = m · softmax(s). After the first local epoch, s is learned by the client's
optimiser, without weight decay, to make Σ_t | ‖w_t g_t‖ − G r_t^α | small. G, the mean of ‖w_t g_t‖, and r_t, which is
L_t / L_t(0) divided by its mean over the tasks, are constants there. Chen et al., ICML 2018, arXiv:1711.02257; α = 1.5
as in LibMTL.

L_t(0) is the loss of the client's very first step, as in the paper; LibMTL takes the mean of the first epoch. The
softmax, which keeps the sum of the weights at m, is LibMTL's; the paper renormalises. Decoders and heads get their own
task's gradient without the weight, as in LibMTL; the paper weighs these too.

The fixed weights of the tasks are kept: s moves by about the learning rate in a step, so they matter for long. A task
without a gradient changes s only through the others' mean. Where L_t(0) is 0, r_t counts as 1 before the mean is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.schema import limits
from ._base import WEIGHTINGS
from ._from_gram import FromGram, lengths, to_array
from ._learned import Learned
from ._state import check_count, check_keys, check_numbers

if TYPE_CHECKING:
    from torch import Tensor


@WEIGHTINGS.register("gradnorm")
class GradNorm(Learned, FromGram):
    """Gradient normalisation."""

    title = "GradNorm"
    paper = "Chen et al., ICML 2018, arXiv:1711.02257"

    @dataclass(frozen=True)
    class Params:
        alpha: float = limits(1.5, low=0, doc="α, how strongly tasks are drawn to a common rate of progress")

    params: Params

    def __init__(self, params: Params, tasks: Sequence[str]) -> None:
        super().__init__(params, tasks)
        self.epochs = 0
        self.first: list[float] | None = None  # L_t(0)

    def combine(self, gradients: Tensor, losses: Tensor) -> Tensor:
        import torch

        self.s.grad = torch.zeros_like(self.s)
        values = to_array(losses)
        if self.first is None and np.isfinite(values).all():
            self.first = values.tolist()
        return super().combine(gradients, losses)

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        s = to_array(self.s)
        powers = np.exp(s - s.max())
        w = len(s) * powers / powers.sum()
        if self.epochs:
            self._learn(w, lengths(gram), losses)
        return w

    def _learn(self, w: np.ndarray, length: np.ndarray, losses: np.ndarray) -> None:
        """Set the gradient of s: only the signs of the differences depend on the losses."""
        norms = w * length
        sign = np.sign(norms - norms.mean() * self._rates(losses) ** self.params.alpha)
        slope = norms * sign  # w_t ∂/∂w_t of the sum
        assert self.s.grad is not None, "combine sets it"
        self.s.grad.copy_(self.s.new_tensor(slope - w / len(w) * slope.sum()))

    def _rates(self, losses: np.ndarray) -> np.ndarray:
        """Return r_t, [m]."""
        first = np.array(self.first)
        ratio = np.divide(losses, first, out=np.ones(len(first)), where=first > 0).clip(0)
        mean = ratio.mean()
        return ratio / mean if 0 < mean < np.inf else np.ones(len(first))

    def end_epoch(self, means: Tensor) -> None:
        self.epochs += 1

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "epochs": self.epochs, "first": self.first}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_keys(self.name, state, ["s", "epochs", "first"])
        epochs, first = check_count(self.name, "epochs", state["epochs"]), state["first"]
        if first is not None:
            first = check_numbers(self.name, "first", first, len(self.tasks))
        self.load_s(state["s"])
        self.epochs, self.first = epochs, first
