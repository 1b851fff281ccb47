"""FedYogi: FedAdam whose v grows and shrinks by no more than the square of the update.

m ← β₁ m + (1 − β₁) Δ̄, v ← v − (1 − β₂) Δ̄² sign(v − Δ̄²), w ← w + η m / (√v + τ). Reddi et al., ICLR 2021,
arXiv:2003.00295. Defaults as FedAdam's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..exchange import Party
from ..exchange.common_rows import Rule
from ._base import ALGORITHMS
from ._server_optimizer import ServerOptimizer
from .fedadam import FedAdam


@ALGORITHMS.register("fedyogi")
class FedYogi(ServerOptimizer):
    """Mean of the updates, given to Yogi."""

    title = "FedYogi"
    paper = "Reddi et al., ICLR 2021, arXiv:2003.00295"

    @dataclass(frozen=True)
    class Params(FedAdam.Params):
        pass

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties, Rule("yogi", params.lr, params.beta1, params.beta2, params.tau))
