"""FAMO: all losses are to fall at the same relative rate, learned from what each step did to them.

With z = softmax(w) and D_t = L_t + ε: the step is on Σ_t z_t log D_t / c, where c = Σ_t z_t / D_t is a constant, so
that ∇L_t has the weight z_t / (c D_t) and the weights sum to 1. Then the losses L' of the same batch after the step,
one more pass forward, give w the gradient Jᵀ (log D − log D'), J being the derivative of the softmax. Liu et al.,
NeurIPS 2023, arXiv:2306.03792. w starts at 0 and has an Adam of its own, rate 0.025 and decay 1e-3; these, ε = 1e-8
and 0 as the least possible loss are LibMTL's; the authors' code has 0.01 for the decay and clips the gradient at 1.

Scale-free: the fixed weights of the tasks are left out, since a factor of a loss cancels in log D − log D', and in
the direction of Σ z_t ∇L_t / D_t (ε aside). A loss below 0 counts as 0 and has no gradient; w is left alone by a
step with a loss that is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.schema import limits
from ._base import WEIGHTINGS, Weighting
from ._state import check_keys, check_tensor

if TYPE_CHECKING:
    from torch import Tensor

EPSILON = 1e-8
ADAM = ("exp_avg", "exp_avg_sq")  # what Adam keeps per parameter, beside the number of its steps


@WEIGHTINGS.register("famo")
class FAMO(Weighting):
    """Fast adaptive multi-task optimisation."""

    title = "FAMO"
    paper = "Liu et al., NeurIPS 2023, arXiv:2306.03792"
    scale_free = True
    needs_losses_again = True

    @dataclass(frozen=True)
    class Params:
        lr: float = limits(0.025, above=0, doc="learning rate of the weights' own Adam")
        decay: float = limits(1e-3, low=0, doc="its weight decay, which draws the weights together")

    params: Params

    def __init__(self, params: Params, tasks: Sequence[str]) -> None:
        import torch

        super().__init__(params, tasks)
        self.w = torch.nn.Parameter(torch.zeros(len(self.tasks)))
        self.adam = torch.optim.Adam([self.w], lr=params.lr, weight_decay=params.decay)

    def total(self, losses: Tensor) -> Tensor:
        d = losses.clamp(min=0) + EPSILON
        z = self.w.detach().softmax(0).to(losses)
        share = z / d.detach()
        c = share.sum()
        self.last = share / c
        return (z * d.log()).sum() / c

    def after_step(self, losses: Tensor, losses_again: Callable[[], Tensor]) -> None:
        if not losses.isfinite().all():
            return
        before, after = ((each.cpu().double().clamp(min=0) + EPSILON).log() for each in (losses, losses_again()))
        change = before - after
        if not change.isfinite().all():
            return
        z = self.w.detach().double().softmax(0)
        self.w.grad = (z * (change - z @ change)).to(self.w.dtype)
        self.adam.step()

    def state_dict(self) -> dict[str, Any]:
        return {"w": self.w.detach(), "adam": dict(self.adam.state.get(self.w, {}))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        shape = (len(self.tasks),)
        check_keys(self.name, state, ["w", "adam"])
        w, kept = check_tensor(self.name, "w", state["w"], shape), state["adam"]
        if kept:
            check_keys(self.name, kept, ["step", *ADAM])
            check_tensor(self.name, "step", kept["step"], ())
            for key in ADAM:
                check_tensor(self.name, key, kept[key], shape)
        self.w.data.copy_(w)
        self.adam.state.clear()
        if kept:
            self.adam.state[self.w] = {key: value.to("cpu", copy=True) for key, value in kept.items()}
