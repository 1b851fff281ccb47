"""PCGrad on updates: each client's update loses what points against another's, and everybody moves by the mean.

For each i, over the others j in random order: if ⟨p_i, Δ_j⟩ < 0, then p_i −= ⟨p_i, Δ_j⟩/‖Δ_j‖² Δ_j; encoders and
decoders apart. Yu et al., NeurIPS 2020, arXiv:2001.06782. `normalize=true` first scales every Δ to length one, as the
FMTL-Bench code does, so that the step no longer depends on training. All updates count alike: no sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.schema import limits
from ..base.seeds import stream
from ..exchange import Round, Rows
from ..exchange.algebra import gram, has_direction, move, rows_by_kind
from ..exchange.conflicts import project
from ._base import ALGORITHMS
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("pcgrad")
class PCGrad(Sharing):
    """Projecting conflicting updates."""

    title = "PCGrad"
    paper = "Yu et al., NeurIPS 2020, arXiv:2001.06782"
    roles = ("shares", "conflict_averse")
    common = ("encoder", "decoder")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        normalize: bool = limits(False, doc="true: unit-length updates, as in the FMTL-Bench code")
        order_seed: int = limits(0, low=0, doc="seed of the orders of projection")

    params: Params

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {kind: move(rows, self._coefficients(rnd.index, kind, rows)) for kind, rows in rows_by_kind(rnd)}

    def _coefficients(self, index: int, kind: str, rows: Rows) -> np.ndarray:
        """Return the mean of the projected updates, as coefficients of the updates. [R]."""
        g = gram(rows.after, rows.before)
        length = np.where(has_direction(g), np.sqrt(np.diag(g).clip(0)), np.inf)
        if self.params.normalize:
            g = g / length / length[:, None]
        # Orders are drawn over sorted owners: who stands where in the matrix makes no difference.
        ranks = sorted(range(len(g)), key=lambda k: (rows.owners[k].client, rows.owners[k].task or ""))
        orders = np.array([self._order(index, kind, i, len(g)) for i in range(len(g))])
        u = np.empty(len(g))
        u[ranks] = project(g[np.ix_(ranks, ranks)], orders).mean(0)
        return u / length if self.params.normalize else u

    def _order(self, index: int, kind: str, i: int, n: int) -> np.ndarray:
        """Draw the order in which update i meets the other n − 1."""
        others = np.delete(np.arange(n), i)
        return stream(self.params.order_seed, "pcgrad", index, kind, i).permutation(others)
