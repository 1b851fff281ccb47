"""FedAMP: each client is pulled towards a cloud model of its own, in which near clients weigh more.

u_i = Σ_j ξ_ij θ_j with ξ_ij = α·exp(−‖θ_i − θ_j‖²/σ)/σ for j ≠ i and ξ_ii = 1 − Σ_{j≠i} ξ_ij, for encoders and for
decoders; the client keeps its θ_i and adds λ/(2α) ‖θ_i − u_i‖². Huang et al., AAAI 2021, arXiv:2007.03797.
λ = α = σ = 1 as in the FedHCA² supplement, although real networks lie so far apart that ξ vanishes: a note says when.
The distances decide the weights, so weighting by samples has no place here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round
from ..exchange.algebra import centred_gram, mix, rows_by_kind, squared_distances
from ._base import ALGORITHMS, Local
from ._sharing import Sharing
from .fedprox import proximal

if TYPE_CHECKING:
    from torch import Tensor

VANISHED = 1e-6


@ALGORITHMS.register("fedamp")
class FedAMP(Sharing):
    """Attentive message passing between clients."""

    title = "FedAMP"
    paper = "Huang et al., AAAI 2021, arXiv:2007.03797"
    roles = ("shares", "personal", "clusters")
    installs = False

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        lam: float = limits(1.0, low=0, doc="λ, the pull towards the cloud model; 0 gives local training")
        alpha: float = limits(1.0, above=0, doc="α, step length of the message passing")
        sigma: float = limits(1.0, above=0, doc="σ, squared distance at which attention has fallen to 1/e")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.attention: dict[str, np.ndarray] = {}  # kind → ξ of the last round, [R, R]

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new = {}
        for kind, rows in rows_by_kind(rnd):
            xi = self.attention[kind] = self._attention(squared_distances(centred_gram(rows.after)))
            new[kind] = mix(xi, rows.after)
        return new

    def _attention(self, distances: np.ndarray) -> np.ndarray:
        p = self.params
        xi = p.alpha * np.exp(-distances / p.sigma) / p.sigma
        np.fill_diagonal(xi, 0)
        np.fill_diagonal(xi, 1 - xi.sum(1))  # not normalised: negative where many clients are near
        return xi

    def local_objective(self, local: Local) -> Tensor | None:
        return proximal(local, self.params.lam / self.params.alpha)

    def _strongest(self) -> dict[str, float]:
        """Return the largest ξ between two different rows, by kind; a kind with one row has none."""
        return {
            kind: float(xi[~np.eye(len(xi), dtype=bool)].max()) for kind, xi in self.attention.items() if len(xi) > 1
        }

    def diagnostics(self) -> dict[str, Any]:
        return {"strongest_attention": self._strongest()}

    def notes(self) -> list[str]:
        return [
            f"every {kind} is so far from the others that no attention reaches {VANISHED:g}: this is local "
            "training with a pull towards itself; a larger algo.sigma brings clients together"
            for kind, xi in self._strongest().items()
            if xi < VANISHED
        ]
