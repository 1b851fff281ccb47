"""Ditto: FedAvg runs as ever, and beside it each client trains a personal model that is pulled towards it.

The personal track v adds λ/2 ‖v − w_received‖² over what travels and is the one scored. Li et al., ICML 2021,
arXiv:2012.04221. λ = 0.1 as in the FedHCA² supplement; λ = 0 leaves v to plain local training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ._base import ALGORITHMS, Evaluation, Local
from .fedavg import FedAvg
from .fedprox import proximal

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("ditto")
class Ditto(FedAvg):
    """FedAvg plus a personal model per client that never travels."""

    title = "Ditto"
    paper = "Li et al., ICML 2021, arXiv:2012.04221"
    roles = ("shares", "personal")
    tracks = ("main", "personal")

    @dataclass(frozen=True)
    class Params(FedAvg.Params):
        lam: float = limits(0.1, low=0, doc="λ, the pull of the personal model towards the received one")

    params: Params

    def local_objective(self, local: Local) -> Tensor | None:
        return proximal(local, self.params.lam) if local.track == "personal" else None

    def evaluation_model(self) -> Evaluation:
        return Evaluation("personal")
