"""CAGrad on updates: everybody moves by the update near the mean that serves the worst-off client best.

The conflict-averse update of all Δ (see `_conflict_averse`), divided by 1 + c² if `rescale`; encoders and decoders
apart. Liu et al., NeurIPS 2021, arXiv:2110.14048. c = 0.4 and the division are their code's defaults, taken over by
FMTL-Bench and FedHCA². Weights come from the optimum, so weighting by samples has no place here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..schema import limits
from ._base import ALGORITHMS, Algorithm
from ._conflict_averse import conflict_averse_coefficients
from ._linear import gram, move, parts


@ALGORITHMS.register("cagrad")
class CAGrad(Algorithm):
    """Conflict-averse common update."""

    title = "CAGrad"
    paper = "Liu et al., NeurIPS 2021, arXiv:2110.14048"

    @dataclass(frozen=True)
    class Params:
        shared: Literal["all", "encoder"] = "all"
        c: float = limits(0.4, low=0, doc="radius of the search around the mean update, as a share of it")
        rescale: bool = True  # divide by 1 + c²

    def shared(self, index):
        return ("encoder", "decoder") if self.params.shared == "all" else ("encoder",)

    def aggregate(self, rnd):
        return {kind: move(rows, self._coefficients(rows)) for kind, rows in parts(rnd)}

    def _coefficients(self, rows):
        c = self.params.c
        u = conflict_averse_coefficients(gram(rows.after, rows.before), c)
        return u / (1 + c * c) if self.params.rescale else u
