"""pFedMe: each client's personal model solves its task near a model of its own that travels and follows slowly.

On every batch θ takes K steps on F(θ) + λ/2 ‖θ − w_i‖² from θ = w_i, then w_i ← w_i − ηλ(w_i − θ); the server sends
w ← (1 − β)w + β · mean_S w_i. θ is scored. Dinh et al., NeurIPS 2020, arXiv:2006.08848; K = 5, λ = 15, η = 0.005 and
β = 1 as in its experiments. θ and w_i are whole networks, heads included; only w_i travels, and no optimiser sees it.

The paper solves for θ by plain SGD at a rate of 0.01. Here the client's optimiser does it at the client's rate, and its
moments live on from batch to batch although θ starts anew; `warm_start` lets θ go on from where it was, too. A client
takes K times the steps of other methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ..exchange import Round
from ._base import ALGORITHMS, Evaluation, Local, Workbench
from ._groups import Group, Grouped
from ._server_step import step_along_mean

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("pfedme")
class PFedMe(Grouped):
    """Personal models by Moreau envelopes."""

    title = "pFedMe"
    paper = "Dinh et al., NeurIPS 2020, arXiv:2006.08848"
    roles = ("shares", "personal")
    tracks = ("main", "personal")
    trained_tracks = ("personal",)

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        lam: float = limits(15.0, low=0, doc="λ, the pull of the personal model towards the client's travelling one")
        eta: float = limits(0.005, above=0, doc="η; the travelling model goes ηλ of the way to the personal one")
        inner_steps: int = limits(5, low=1, doc="K, steps of the personal model on each batch")
        beta: float = limits(1.0, above=0, doc="β, how far the server goes towards the clients' mean")
        warm_start: bool = limits(False, doc="whether θ goes on from the batch before instead of from w_i")

    params: Params

    def steps_per_batch(self) -> int:
        return self.params.inner_steps

    def before_step(self, local: Local) -> None:
        # Some networks learn their tasks in several steps on a batch: only the first of them begins it.
        if local.memory.get("batch") == local.batch:
            return
        self._follow(local)
        local.memory["batch"] = local.batch
        if not self.params.warm_start:
            local.vector("personal").copy_(local.vector("main"))

    def _follow(self, local: Local) -> None:
        """Let w_i follow the personal model, once the steps on a batch are done."""
        if "batch" in local.memory:
            local.vector("main").lerp_(local.vector("personal"), self.params.eta * self.params.lam)

    def before_update(self, local: Local) -> None:
        # The gradient of λ/2 ‖θ − w_i‖², for the whole network at once.
        local.gradient().add_(local.vector() - local.vector("main"), alpha=self.params.lam)

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        self._follow(local)
        local.memory.pop("batch", None)
        return {}

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        return step_along_mean(group, self.params.beta)

    def evaluation_model(self) -> Evaluation:
        return Evaluation("personal")

    def notes(self) -> list[str]:
        reach = self.params.eta * self.params.lam
        if not reach:
            return ["algo.lam = 0: what travels never moves, so clients learn nothing from each other"]
        if reach > 1:
            return [f"algo.eta · algo.lam = {reach:g}: what travels overtakes the personal models; 1 reaches them"]
        return []
