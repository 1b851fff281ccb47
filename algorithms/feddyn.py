"""FedDyn: each client's loss gets a term of its own that makes clients and server agree where everybody is best off.

Local loss − ⟨h_i, θ⟩ + α/2 ‖θ − w‖² over what travels, w being what was received; afterwards h_i ← h_i − α (a_i − w).
Server: h ← h − α/N Σ_S (a_i − w), then w ← mean_S a_i − h/α. Acar et al., ICLR 2021, arXiv:2111.04263. α = 0.01 is one
of the paper's two values (0.1 the other). h_i stays with the client: nothing travels but models.

The server keeps h/α, from which α cancels: however small α is, every step adds all earlier mean updates once more, and
only the local terms hold against it. So α → 0 is not FedAvg but undamped momentum; α = 0 is taken as FedAvg. The paper
counts clients alike; with `weighting=samples` the shares of all images take the place of 1/N and of the plain mean, and
a common fixed point is where the gradients, so weighted, cancel. Public code departs: PFLlib's distance is not squared,
and FL-bench leaves out α/2 ‖θ‖², which the authors' code hands to the optimiser as weight decay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.schema import limits
from ..exchange import Round
from ..exchange.algebra import gram
from ..exchange.common_rows import Rule
from ._base import ALGORITHMS, Local, Workbench
from ._groups import Group, GroupedWithState
from ._server_step import everybody_shares
from .fedprox import proximal

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("feddyn")
class FedDyn(GroupedWithState):
    """FedAvg with dynamic regularisation."""

    title = "FedDyn"
    paper = "Acar et al., ICLR 2021, arXiv:2111.04263"
    roles = ("shares", "averages")
    state = "drifts"  # −h/α, [1, d]

    @dataclass(frozen=True)
    class Params(GroupedWithState.Params):
        alpha: float = limits(0.01, low=0, doc="α, strength of the clients' own terms; 0 gives FedAvg")

    params: Params

    def local_objective(self, local: Local) -> Tensor | None:
        term = proximal(local, self.params.alpha)
        if term is None:
            return None
        duals: dict[str, Tensor] = local.memory.get("duals", {})
        for kind, rows in duals.items():
            term = term - local.inner(kind, rows.unbind())
        return term

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        import torch

        if not self.params.alpha:
            return {}
        duals = local.memory.setdefault("duals", {})  # h_i by kind, [the client's rows, d]
        for kind in local.anchored:
            with torch.enable_grad():  # a_i − w is the gradient of half its square
                moved = torch.stack(local.row_gradients(local.squared_distance(kind) / 2, kind))
            step = moved.mul_(-self.params.alpha)
            duals[kind] = duals[kind] + step if kind in duals else step
        return {}

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        if not self.params.alpha:
            return group.mean_after
        return self.move(group, Rule("drift", float(everybody_shares(self, group).sum())))

    def diagnostics(self) -> dict[str, Any]:
        return {"drift_norm": {name: math.sqrt(gram(row)[0, 0]) for name, row in self.kept.items()}}
