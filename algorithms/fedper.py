"""FedPer: the encoder is averaged, decoders and heads are personal.

Arivazhagan et al., 2019, arXiv:1912.00818, with everything above the encoder as the personal layers. No options of its
own; equal weights as in the HC-FMTL papers' tables, `weighting=samples` weights clients by their training images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ..exchange import Round
from ..exchange.algebra import encoders_of
from ._base import ALGORITHMS, Algorithm, Kinds
from ._mean import Weighting, mean_row

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fedper")
class FedPer(Algorithm):
    """Mean of the encoders; nothing else travels."""

    title = "FedPer"
    paper = "Arivazhagan et al., 2019, arXiv:1912.00818"
    roles = ("shares", "personal")
    common: Kinds = ("encoder",)

    @dataclass(frozen=True)
    class Params:
        weighting: Weighting = limits("equal", doc="clients count alike, or by their training images")

    params: Params

    def shared(self, index: int) -> Kinds:
        return ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {"encoder": mean_row(encoders_of(rnd), self.parties, self.params.weighting)}
