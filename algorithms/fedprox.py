"""FedProx: FedAvg whose clients are held near the model they received.

Local loss + μ/2 ‖θ − θ_received‖² over what travels. Li et al., MLSys 2020, arXiv:1812.06127. μ = 0.01 as in the
FedHCA² supplement; μ = 0 is FedAvg, which is what FMTL-Bench's FedProx rows trained (docs/deviations.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..schema import limits
from ._base import ALGORITHMS
from .fedavg import FedAvg


def proximal(local, strength):
    """`strength`/2 · ‖θ − anchor‖² over every anchored kind; None where that is nothing at all."""
    if not strength or not local.anchored:
        return None
    return strength / 2 * sum(local.squared_distance(kind) for kind in local.anchored)


@ALGORITHMS.register("fedprox")
class FedProx(FedAvg):
    """FedAvg with a proximal term on the client."""

    title = "FedProx"
    paper = "Li et al., MLSys 2020, arXiv:1812.06127"

    @dataclass(frozen=True)
    class Params(FedAvg.Params):
        mu: float = limits(0.01, low=0, doc="strength of the pull towards the received model; 0 gives FedAvg")

    def local_objective(self, local):
        return proximal(local, self.params.mu)
