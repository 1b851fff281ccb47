"""CAGrad on updates: everybody moves by the update near the mean that serves the worst-off client best.

The conflict-averse update of all Δ (see `row_algebra.conflicts`), divided by 1 + c² if `rescale`; encoders and decoders
apart. Liu et al., NeurIPS 2021, arXiv:2110.14048. c = 0.4 and the division are their code's defaults, taken over by
FMTL-Bench and FedHCA². Weights come from the optimum, so weighting by samples has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.schema import limits
from ..exchange import Round, Rows
from ..exchange.algebra import gram, move, rows_by_kind
from ..exchange.conflicts import conflict_averse_coefficients
from ._base import ALGORITHMS
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("cagrad")
class CAGrad(Sharing):
    """Conflict-averse common update."""

    title = "CAGrad"
    paper = "Liu et al., NeurIPS 2021, arXiv:2110.14048"
    roles = ("shares", "conflict_averse")
    common = ("encoder", "decoder")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        c: float = limits(0.4, low=0, doc="radius of the search around the mean update, as a share of it")
        rescale: bool = limits(True, doc="divide the common update by 1 + c²")

    params: Params

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {kind: move(rows, self._coefficients(rows)) for kind, rows in rows_by_kind(rnd)}

    def _coefficients(self, rows: Rows) -> np.ndarray:
        c = self.params.c
        u = conflict_averse_coefficients(gram(rows.after, rows.before), c)
        return u / (1 + c * c) if self.params.rescale else u
