"""FedAdam: the mean update is a gradient for Adam on the server.

m ← β₁ m + (1 − β₁) Δ̄, v ← β₂ v + (1 − β₂) Δ̄², w ← w + η m / (√v + τ), without bias correction; encoders and decoders
have an m and a v each. Reddi et al., ICLR 2021, arXiv:2003.00295. β₁ = 0.9, β₂ = 0.99, τ = 1e-3 and v from τ² are
theirs (Flower and FL-bench start v at 0, FL-bench has β₂ = 0.999). A parameter moves by about η in a round, whatever
the clients did, so η = 0.1, which frameworks offer, throws a pretrained encoder away: 200 local steps at a rate of 1e-4
move it by 0.02 or so at most. η = 1e-3 is this suite's choice, as no paper on such federations has one; 1e-4 to 1e-2 is
the range worth searching.
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


@ALGORITHMS.register("fedadam")
class FedAdam(ServerOptimizer):
    """Mean of the updates, given to Adam."""

    title = "FedAdam"
    paper = "Reddi et al., ICLR 2021, arXiv:2003.00295"

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        lr: float = limits(1e-3, above=0, doc="η, about what a parameter moves in a round")
        beta1: float = limits(0.9, low=0, below=1, doc="β₁, decay of the mean update")
        beta2: float = limits(0.99, low=0, below=1, doc="β₂, decay of its square")
        tau: float = limits(1e-3, above=0, doc="τ, size of an update below which steps shrink with it")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties, Rule("adam", params.lr, params.beta1, params.beta2, params.tau))
