"""FedProx: FedAvg whose clients are held near the model they received.

Local loss + μ/2 ‖θ − θ_received‖² over what travels. Li et al., MLSys 2020, arXiv:1812.06127. μ = 0.01 as in the
FedHCA² supplement; μ = 0 is FedAvg, which is what FMTL-Bench's FedProx rows trained (docs/deviations.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from ..base.schema import limits
from ._base import ALGORITHMS, Local
from .fedavg import FedAvg

if TYPE_CHECKING:
    from torch import Tensor


def proximal(local: Local, strength: float) -> Tensor | None:
    """Return `strength`/2 · ‖θ − anchor‖² over every anchored kind; None where that is nothing at all."""
    if not strength or not local.anchored:
        return None
    return strength / 2 * reduce(add, map(local.squared_distance, local.anchored))


@ALGORITHMS.register("fedprox")
class FedProx(FedAvg):
    """FedAvg with a proximal term on the client."""

    title = "FedProx"
    paper = "Li et al., MLSys 2020, arXiv:1812.06127"

    @dataclass(frozen=True)
    class Params(FedAvg.Params):
        mu: float = limits(0.01, low=0, doc="strength of the pull towards the received model; 0 gives FedAvg")

    params: Params

    def local_objective(self, local: Local) -> Tensor | None:
        return proximal(local, self.params.mu)
