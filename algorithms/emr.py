"""EMR aggregation: one vector speaks for all clients; each takes the part that agrees with its own, at its own size.

τ_i = a_i − θ_0, how far client i is from the common start θ_0. Elect: u has in each place the sign of the mean of all
τ_i and the largest size among those with that sign. Mask: M_i is 1 where τ_i has the sign of u. Rescale: λ_i is
mean|τ_i| / mean|M_i u|. Client i gets θ_0 + λ_i M_i u. Huang et al., NeurIPS 2024, arXiv:2405.17461, merge trained
models once by this; here it is the server's step in every round, and there is no number to choose. It is a building
block of MaTU (Tsouvalas et al., arXiv:2502.06376), whose other parts are not public; hence its own name. Masks are
applied at the server, so one row travels each way.

Encoders alone by default; `shared=all` treats all decoders likewise, as one group. θ_0 is what clients had when the
first round began, and stays for ever. A client that joins later comes from the same start, and what it learnt alone is
compared with what others learnt over many rounds: it takes their vector where its signs agree, scaled to its own, still
small size. A client with which u agrees nowhere gets θ_0, as its part of u is empty. Clients count alike: the largest
wins, so weighting by samples has no place here. Running statistics, if they travel, are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round, Rows
from ..exchange.algebra import mean, rows_by_kind
from ..exchange.common_rows import move_mean
from ..exchange.signs import elect, rebuild
from ._base import ALGORITHMS
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("emr")
class EMR(Sharing):
    """Elect, mask and rescale what clients have learnt since the start."""

    title = "EMR"
    paper = "Huang et al., NeurIPS 2024, arXiv:2405.17461"
    roles = ("shares", "personal")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        shared: Literal["all", "encoder"] = limits("encoder", doc="what travels: encoders alone, or all but the heads")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.starts: dict[str, Tensor] = {}  # kind → θ_0, [d]
        self.factors: dict[str, dict[str, float]] = {}  # kind → λ by client, or by client and task, of the last round

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {kind: self._merge(kind, rows) for kind, rows in rows_by_kind(rnd)}

    def _merge(self, kind: str, rows: Rows) -> Tensor:
        import torch

        width = rows.parameters
        after, before = rows.after[:, :width], rows.before[:, :width]
        if kind not in self.starts:
            self.starts[kind] = move_mean(before, before, np.full(len(before), 1 / len(before)), np.zeros(len(before)))
        start = self.starts[kind]
        elected, own, agreed = elect(after, start)
        factors = np.divide(own, agreed, out=np.zeros(len(own)), where=agreed > 0)
        self.factors[kind] = dict(zip(rows.names(self.parties), factors.tolist()))
        new = rebuild(after, start, elected, factors)
        if width == rows.after.shape[1]:
            return new
        statistics = mean(rows.after[:, width:])
        return torch.cat([new, statistics.expand(len(new), -1)], 1)

    def diagnostics(self) -> dict[str, Any]:
        return {"factors": {kind: dict(by_row) for kind, by_row in self.factors.items()}}

    def state_dict(self) -> dict[str, Any]:
        return {"starts": dict(self.starts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.starts = dict(state["starts"])
