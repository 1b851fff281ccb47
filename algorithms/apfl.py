"""APFL: FedAvg runs as ever, and each client is scored by a mixture of the common model and a personal one.

v̄ = αv + (1 − α)w. On every batch v ← v − ηα∇F(v̄) and w ← w − η∇F(w), both from where they stood before it; w travels
and is averaged. Once a round, on its first batch, α ← clip(α − η⟨∇F(v̄), v − w⟩, 0, 1), for each client its own; it and
v never travel. Deng et al. 2020, arXiv:2003.13461. α starts at 0.5 (the paper also has 0.25 and 0.75) and η is the
client's learning rate. v, w and v̄ are whole networks, heads included.

The paper's clients run plain SGD. AdamW divides a gradient by its size, so the factor α in front of v's has next to no
effect with it, and at its rates α hardly moves: `alpha_lr` gives α a step length of its own. Public code departs:
PFLlib takes the gradient at v instead of v̄, adapts α on every batch with a decay of its own, and overwrites v by the
mixture each round; FL-bench mixes outputs instead of parameters and moves w twice per batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ..exchange import Party
from ._base import ALGORITHMS, Evaluation, Local
from ._groups import Grouped

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("apfl")
class APFL(Grouped):
    """FedAvg plus a personal model per client, scored as a mixture of both."""

    title = "APFL"
    paper = "Deng et al. 2020, arXiv:2003.13461"
    roles = ("shares", "personal")
    tracks = ("personal", "main")  # on each batch the mixture looks at w first, then w moves
    side_by_side = True

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        alpha: float = limits(0.5, low=0, high=1, doc="α at the start: the personal model's share of what is scored")
        adaptive: bool = limits(True, doc="whether each client learns its own α")
        alpha_lr: float | None = limits(None, above=0, doc="step length of α; null = the client's learning rate")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self._aside: dict[str, Tensor] = {}  # v by client, while a step has v̄ in its place

    def _alpha(self, local: Local) -> float:
        alpha: float = local.memory.get("alpha", self.params.alpha)
        return alpha

    def _mix(self, local: Local) -> None:
        """Put v̄ where v is."""
        local.vector("personal").lerp_(local.vector("main"), 1 - self._alpha(local))  # exact for α = 0 and 1

    def before_step(self, local: Local) -> None:
        if local.track == "personal":
            self._aside[local.party.id] = local.vector().clone()
            self._mix(local)

    def before_update(self, local: Local) -> None:
        if local.track != "personal":
            return
        v, alpha = self._aside.pop(local.party.id), self._alpha(local)
        local.vector().copy_(v)
        if self.params.adaptive and local.batch == 0 and local.repeat == 0:
            slope = float(local.gradient().dot(v.sub_(local.vector("main"))))
            if math.isfinite(slope):  # else a step that a loss scaler is about to skip
                rate = local.lr if self.params.alpha_lr is None else self.params.alpha_lr
                local.memory["alpha"] = min(max(alpha - rate * slope, 0.0), 1.0)
        local.gradient().mul_(alpha)

    def evaluation_model(self) -> Evaluation:
        return Evaluation("personal")

    def before_scoring(self, local: Local) -> None:
        self._mix(local)

    def notes(self) -> list[str]:
        fixed = None if self.params.adaptive else self.params.alpha
        if fixed == 0:
            return ["algo.alpha = 0 for ever: what is scored is FedAvg's model, and the personal ones have no effect"]
        if fixed == 1:
            return ["algo.alpha = 1 for ever: what is scored is local training; nothing received has an effect on it"]
        return []
