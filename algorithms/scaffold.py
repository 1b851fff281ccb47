"""SCAFFOLD: FedAvg whose clients correct their gradients by how their own differs from everybody's.

Every local step follows ∇F_i + c − c_i, which is the loss plus ⟨c − c_i, θ⟩ over what travels. Afterwards the control
variate c_i becomes the mean over the round's steps of the gradient without that correction, and the server takes
w ← w + η_g · mean_S Δ_i and c ← c + 1/N Σ_S (c_i⁺ − c_i). Karimireddy et al., ICML 2020, arXiv:1910.06378; η_g = 1.

The paper's option II, c_i⁺ = c_i − c + (b − a_i)/(K_i η), is that mean gradient where clients run plain SGD at a
constant rate; with AdamW, momentum or a schedule only the mean is one, so it is what is used here. With AdamW the
correction also passes through the optimiser's moments: a step is no longer ∇F_i + c − c_i, but AdamW of it.

Variates travel beside the model, so both directions carry twice as much as FedAvg's, but for the first round's download
(c = 0 is known). The paper counts clients alike; with `weighting=samples` each counts by its share of all images in
both means. Public code departs: FL-bench never stores the new c_i, so that c_i = 0 for ever.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from ..base.schema import limits
from ..exchange import Owner, Round
from ..exchange.algebra import gram
from ._base import ALGORITHMS, Local, Workbench
from ._groups import Group, GroupedWithState
from ._server_step import add_weighted, everybody_shares, step_along_mean

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("scaffold")
class Scaffold(GroupedWithState):
    """FedAvg with control variates against client drift."""

    title = "SCAFFOLD"
    paper = "Karimireddy et al., ICML 2020, arXiv:1910.06378"
    roles = ("shares", "averages")
    averages_gradients = True
    state = "variates"  # c, [d]; zero until somebody of the group has told

    @dataclass(frozen=True)
    class Params(GroupedWithState.Params):
        server_lr: float = limits(1.0, above=0, doc="η_g, how far the server goes along the mean update")

    params: Params

    def parcel(self, client: int) -> dict[str, Tensor]:
        import torch

        known, party, sent = self.kept, self.parties[client], {}
        for kind in self.shared(0):
            names = self.group_of(kind, party)
            here = [known[name] for name in names if name in known]
            if not here:  # all are zero, which the client knows
                continue
            if len(set(names)) == 1:
                sent[kind] = here[0].expand(len(names), -1)  # one row in memory
            else:
                sent[kind] = torch.stack([known.get(name, torch.zeros_like(here[0])) for name in names])
        return sent

    def _corrections(self, local: Local) -> dict[str, Tensor]:
        """Return c − c_i by kind, made once a round; what is not in it is zero."""
        if "corrections" not in local.memory:  # `measure` takes it away again
            own = local.memory.get("variates", {})
            local.memory["corrections"] = {
                kind: common - own[kind] if kind in own else common for kind, common in local.received.items()
            }
        corrections: dict[str, Tensor] = local.memory["corrections"]
        return corrections

    def local_objective(self, local: Local) -> Tensor | None:
        corrections = self._corrections(local)
        if not corrections:
            return None
        return reduce(add, (local.inner(kind, rows.unbind()) for kind, rows in corrections.items()))

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        import torch

        corrections, told = self._corrections(local), {}
        del local.memory["corrections"]
        own = local.memory.setdefault("variates", {})
        for kind in self.shared(local.round):
            renewed = torch.stack(local.mean_gradient(kind))  # [the client's rows, d]
            if kind in corrections:
                renewed -= corrections[kind]
            told[kind] = renewed - own[kind] if kind in own else renewed.clone()
            own[kind] = renewed
        return told

    def common_row(self, group: Group, rnd: Round) -> Tensor:
        kind = group.name.partition("/")[0]
        news = [
            (rnd.measured[owner.client][kind][self._place(owner)], share)
            for owner, share in zip(group.rows.owners, everybody_shares(self, group))
            if kind in rnd.measured.get(owner.client, {})
        ]
        if news:
            rows, shares = zip(*news)
            self.kept[group.name] = add_weighted(self.kept.get(group.name), rows, shares)
        return step_along_mean(group, self.params.server_lr)

    def _place(self, owner: Owner) -> int:
        """Return which of its client's rows of its kind a row is."""
        return 0 if owner.task is None else self.parties[owner.client].tasks.index(owner.task)

    def diagnostics(self) -> dict[str, Any]:
        return {"variate_norm": {name: math.sqrt(gram(row[None])[0, 0]) for name, row in self.kept.items()}}
