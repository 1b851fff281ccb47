"""FedBone's aggregation: updates like last round's count more, and each loses what points against another's.

With h the last common update: a_i = N softmax_i(cos(Δ_i, h)), all 1 in the first round, and ĝ_i = a_i Δ_i. For each i,
over the others j: if ⟨v_i, ĝ_j⟩ < 0, then v_i −= ⟨v_i, ĝ_j⟩/‖ĝ_j‖² ĝ_j, from v_i = ĝ_i on. Everybody moves by
h = Σ p_i v_i, p_i being a client's share of the images (`weighting=equal`: alike). Chen et al., JCST 39(5), 2024,
arXiv:2306.17465. Unlike PCGrad it attends to the past, counts images and projects on the scaled updates in a fixed
order: that of the clients' names, so that nothing depends on how they are numbered. The softmax runs over all clients;
over a single client's score, as the paper can be read, it would always be 1.

The paper's encoder is at the server and its clients send features (split learning); decoders stay with the clients, as
by default here. `shared=all` treats all decoders likewise, as one group. This is its aggregation for clients that train
encoders themselves: what split learning sends in each step (features up, gradients down) is not in the bill, which
counts rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round, Rows
from ..exchange.algebra import combine_with_extra, gram, gram_and_products, has_direction, rows_by_kind
from ..exchange.conflicts import project
from ._base import ALGORITHMS
from ._mean import Weighting, row_weights
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fedbone")
class FedBone(Sharing):
    """Projected updates, with attention to the last common one."""

    title = "FedBone"
    paper = "Chen et al., JCST 2024, arXiv:2306.17465"
    roles = ("shares", "conflict_averse")
    common = ("encoder", "decoder")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        shared: Literal["all", "encoder"] = limits("encoder", doc="what travels: encoders alone, or all but the heads")
        weighting: Weighting = limits("samples", doc="clients count by their training images, or alike")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.history: dict[str, Tensor] = {}  # kind → h, the last common update, [d]
        self.attention: dict[str, dict[str, float]] = {}  # kind → a by client, or by client and task

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {kind: self._move(kind, rows) for kind, rows in rows_by_kind(rnd)}

    def _move(self, kind: str, rows: Rows) -> Tensor:
        last = self.history.get(kind)
        if last is None:
            products, attention = gram(rows.after, rows.before), np.ones(len(rows.owners))
        else:
            products, along = gram_and_products(rows.after, rows.before, last)
            attention = attend(products, along, float(np.sqrt(gram(last[None])[0, 0])))
        names = rows.names(self.parties)
        self.attention[kind] = dict(zip(names, attention.tolist()))
        weights = row_weights(rows, self.parties, self.params.weighting)
        order = sorted(range(len(names)), key=names.__getitem__)
        u = common_coefficients(products, attention, weights / weights.sum(), order)
        new, self.history[kind] = combine_with_extra(np.vstack([u, u]), rows.after, rows.before, own="before")
        return new

    def diagnostics(self) -> dict[str, Any]:
        return {"attention": {kind: dict(by_row) for kind, by_row in self.attention.items()}}

    def state_dict(self) -> dict[str, Any]:
        return {"history": dict(self.history)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.history = dict(state["history"])


def attend(products: np.ndarray, along: np.ndarray, length: float) -> np.ndarray:
    """Return what each update is scaled by: N softmax of its cosine with the last one; 0 where one has no direction.

    Args:
        products: ⟨Δ_i, Δ_j⟩. [N, N].
        along: ⟨Δ_i, h⟩. [N].
        length: ‖h‖.
    """
    sizes = np.sqrt(np.diag(products).clip(0)) * length
    cosine = np.divide(along, sizes, out=np.zeros(len(along)), where=has_direction(products) & (sizes > 0))
    weights = np.exp(cosine.clip(-1, 1))
    scaled: np.ndarray = len(along) * weights / weights.sum()
    return scaled


def common_coefficients(
    products: np.ndarray, attention: np.ndarray, shares: np.ndarray, order: Sequence[int]
) -> np.ndarray:
    """Return Σ p_i v_i as coefficients of the updates; each update meets the others in `order`. [N]."""
    scaled = (products * attention * attention[:, None])[np.ix_(order, order)]
    meets = np.array([np.delete(np.arange(len(order)), i) for i in range(len(order))])
    u = np.empty(len(order))
    u[list(order)] = shares[list(order)] @ project(scaled, meets)
    return u * attention
