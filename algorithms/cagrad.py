"""CAGrad on updates: everybody moves by the update near the mean that serves the worst-off client best.

The conflict-averse update of all Δ (see `_conflict_averse`), divided by 1 + c² if `rescale`; encoders and decoders
apart. Liu et al., NeurIPS 2021, arXiv:2110.14048. c = 0.4 and the division are their code's defaults, taken over by
FMTL-Bench and FedHCA². Weights come from the optimum, so weighting by samples has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..row_algebra import gram, move, parts
from ..schema import limits
from ._base import ALGORITHMS
from ._conflict_averse import conflict_averse_coefficients
from ._sharing import Sharing


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

    def aggregate(self, rnd):
        return {kind: move(rows, self._coefficients(rows)) for kind, rows in parts(rnd)}

    def _coefficients(self, rows):
        c = self.params.c
        u = conflict_averse_coefficients(gram(rows.after, rows.before), c)
        return u / (1 + c * c) if self.params.rescale else u
