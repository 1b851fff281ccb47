"""FedNova: updates are averaged per local step, so that who takes more steps does not pull harder.

w ← w + τ_eff Σ p_i Δ_i/τ_i with τ_eff = Σ p_i τ_i, in each group of rows. Wang et al., NeurIPS 2020, arXiv:2007.07481.
p_i is a client's share of the images, as theirs; `weighting=equal` counts clients alike. τ_i is the length of client
i's local walk in gradients: its number of steps K (`steps=count`: exact for plain SGD, a rule of thumb for Adam and
AdamW), [K − ρ(1 − ρ^K)/(1 − ρ)]/(1 − ρ) for SGD with momentum ρ (`sgd_momentum`), or (1 − (1 − ημ)^K)/(ημ) with a
proximal term μ and learning rate η (`proximal`, whose `pull` is ημ: 1e-6 is FedProx's μ = 0.01 at a rate of 1e-4). If
all take the same number of steps this is FedAvg, and a note says so. Running statistics, if they travel, are averaged
plainly: they do not grow with steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round
from ..exchange.common_rows import move_mean
from ._base import ALGORITHMS
from ._groups import Group, Grouped
from ._mean import Weighting

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fednova")
class FedNova(Grouped):
    """Normalised averaging of updates."""

    title = "FedNova"
    paper = "Wang et al., NeurIPS 2020, arXiv:2007.07481"
    roles = ("shares", "averages")

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        weighting: Weighting = limits("samples", doc="clients count by their training images, or alike")
        steps: Literal["count", "sgd_momentum", "proximal"] = limits(
            "count", doc="τ: the number of local steps, or their weight under momentum or a proximal term"
        )
        rho: float = limits(0.9, low=0, below=1, doc="ρ, the clients' momentum (sgd_momentum)")
        pull: float = limits(1e-6, above=0, below=1, doc="ημ, learning rate times strength of the term (proximal)")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.lengths: dict[str, float] = {}  # client id → τ of the last round
        self.effective: dict[str, float] = {}  # group → τ_eff of the last round

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        self.lengths, self.effective = {}, {}
        return super().aggregate(rnd)

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        tau = np.array([self._length(owner.client, rnd) for owner in group.rows.owners])
        effective = self.effective[group.name] = float(group.shares @ tau)
        per_step = np.divide(effective, tau, out=np.zeros(len(tau)), where=tau > 0)  # no step, no update
        rows, width = group.rows, group.rows.parameters
        new = move_mean(rows.after[:, :width], rows.before[:, :width], group.shares, group.shares * per_step)
        return group.row_of(new)

    def _length(self, client: int, rnd: Round) -> float:
        """Return τ of a client, and keep it for the diagnostics."""
        name = self.parties[client].id
        if client not in rnd.steps:
            told = ", ".join(self.parties[i].id for i in sorted(rnd.steps)) or "nobody"
            raise ValueError(
                f"client {name} did not tell how many local steps it took in round {rnd.index + 1}, by which FedNova "
                f"divides its update; expected a number from each client that sent rows, got one from {told}"
            )
        p, count = self.params, rnd.steps[client]
        weigh = {
            "count": float,
            "sgd_momentum": lambda k: with_momentum(k, p.rho),
            "proximal": lambda k: pulled(k, p.pull),
        }
        self.lengths[name] = weigh[p.steps](count)
        return self.lengths[name]

    def diagnostics(self) -> dict[str, Any]:
        return {"local_steps": dict(self.lengths), "effective_steps": dict(self.effective)}

    def notes(self) -> list[str]:
        if len(self.lengths) > 1 and len(set(self.lengths.values())) == 1:
            return [
                f"all clients took equally many local steps, so there is nothing to normalise: this is FedAvg with "
                f"weighting={self.params.weighting}"
            ]
        return []


def with_momentum(count: int, rho: float) -> float:
    """Return what `count` steps of SGD with momentum ρ weigh: [K − ρ(1 − ρ^K)/(1 − ρ)]/(1 − ρ)."""
    return (count - rho * (1 - rho**count) / (1 - rho)) / (1 - rho)


def pulled(count: int, pull: float) -> float:
    """Return what `count` steps weigh, each of which takes back the share `pull` of the way: (1 − (1 − x)^K)/x."""
    return -math.expm1(count * math.log1p(-pull)) / pull
