"""FedMTL: nobody's parameters are replaced; a regulariser ties each client's to the mean of everybody's.

Local loss + ρ (‖W‖² + tr(W Ω Wᵀ)), W = [θ_1 … θ_R], Ω = (I − 11ᵀ/R)², through the client's own column. That column
sees ‖θ‖² + (R−1)/R ‖θ − m‖² plus a constant, m being the mean of the others' parameters: m is all that is sent.
Smith et al., NeurIPS 2017, arXiv:1705.10467, in FMTL-Bench's form; ρ = 10^−(⌊log10 d⌋ + 2) is its code's, d being the
number of the client's shared parameters. Encoders and decoders have a W each. Clients count alike: Ω has no place for
sample weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Owner, Party, Round, Rows
from ..exchange.algebra import combine_with_extra, empty_like, rows_by_kind
from ._base import ALGORITHMS, Local
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fedmtl")
class FedMTL(Sharing):
    """Mean-regularised multi-task learning."""

    title = "FedMTL"
    paper = "Smith et al., NeurIPS 2017, arXiv:1705.10467"
    roles = ("shares", "personal")
    installs = False

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        rho: float | None = limits(None, low=0, doc="ρ; null = 10^-(⌊log10 d⌋+2); 0 gives local training")
        # whole: everybody's parameters W travel both ways, as FMTL-Bench's Table 8 counts; the numbers are the same.
        protocol: Literal["mean", "whole"] = limits("mean", doc="what is billed: the mean that is needed, or all of W")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.rows = {"encoder": len(parties), "decoder": sum(party.decoders for party in parties)}
        # The sum over everybody's last parameters, and who is in it. What an absent client last sent is what it will
        # start from (nothing is installed), so a returning one adds its update: the sum is all the server keeps.
        self.sums: dict[str, Tensor] = {}  # kind → [d]
        self.known: dict[str, set[Owner]] = {}

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {kind: self._means_of_others(kind, rows) for kind, rows in rows_by_kind(rnd)}

    def _means_of_others(self, kind: str, rows: Rows) -> Tensor:
        import torch

        known, count = self.known.setdefault(kind, set()), len(rows.owners)
        if known <= set(rows.owners) and count > 1:  # all that are known are here: sum and replies in one pass
            known.update(rows.owners)
            others = (np.ones((count, count)) - np.eye(count)) / (count - 1)
            new, total = combine_with_extra(np.vstack([others, np.ones(count)]), rows.after)
            self.sums[kind] = total
            return new
        if known <= set(rows.owners):
            self.sums[kind] = rows.after.sum(0)
        else:
            total = self.sums[kind].clone()
            for owner, before, after in zip(rows.owners, rows.before, rows.after):
                total += after
                if owner in known:
                    total -= before
            self.sums[kind] = total
        known.update(rows.owners)
        if len(known) == 1:
            return rows.after.clone()  # nobody else: the distance is 0
        share = 1 / (len(known) - 1)
        return torch.add(self.sums[kind] * share, rows.after, alpha=-share, out=empty_like(rows.after))

    def billed_copies(self) -> int:
        return 1 if self.params.protocol == "mean" else len(self.parties)

    def local_objective(self, local: Local) -> Tensor | None:
        if self.params.rho == 0:
            return None
        kinds = self.shared(0)
        rho = self.params.rho
        if rho is None:
            rho = default_rho(sum(local.size(kind) for kind in kinds))
        total = reduce(add, map(local.squared_norm, kinds))
        for kind in local.anchored:  # from the first reply on: before, everybody stands where the others do
            total = total + (1 - 1 / self.rows[kind]) * local.squared_distance(kind)
        return rho * total

    def state_dict(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "known": {k: [list(o) for o in sorted(v)] for k, v in self.known.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums = dict(state["sums"])
        self.known = {kind: {Owner(*owner) for owner in owners} for kind, owners in state["known"].items()}


def default_rho(size: int) -> float:
    """Return the public code's ρ for `size` shared parameters: 2 more decimals than `size` has powers of ten."""
    return 10.0 ** -(math.floor(math.log10(size)) + 2)
