"""FedAvgM: FedAvg whose common model keeps moving the way it went.

m ← β m + Δ̄, w ← w + η m, Δ̄ being the mean update of the clients that came; encoders and decoders have an m each. Hsu,
Qi, Brown, 2019, arXiv:1909.06335. β = 0.9 and η = 1 are theirs, which make steps up to ten times as long as FedAvg's;
β = 0 and η = 1 give FedAvg. Flower's class has β = 0 unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.schema import limits
from ..exchange import Party
from ..exchange.common_rows import Rule
from ._base import ALGORITHMS
from ._groups import Grouped
from ._server_optimizer import ServerOptimizer


@ALGORITHMS.register("fedavgm")
class FedAvgM(ServerOptimizer):
    """Mean of the updates, with momentum on the server."""

    title = "FedAvgM"
    paper = "Hsu et al., 2019, arXiv:1909.06335"

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        lr: float = limits(1.0, above=0, doc="η, the server's learning rate")
        momentum: float = limits(0.9, low=0, below=1, doc="β, what is left of last round's step; 0 with lr=1: FedAvg")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties, Rule("momentum", params.lr, params.momentum))
