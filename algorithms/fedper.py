"""FedPer: the encoder is averaged, decoders and heads are personal.

Arivazhagan et al., 2019, arXiv:1912.00818, with everything above the encoder as the personal layers. No options of its
own; equal weights as in the HC-FMTL papers' tables, `weighting=samples` weights clients by their training images.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..schema import limits
from ._base import ALGORITHMS, Algorithm
from ._mean import Weighting, mean_row


@ALGORITHMS.register("fedper")
class FedPer(Algorithm):
    """Mean of the encoders; nothing else travels."""

    title = "FedPer"
    paper = "Arivazhagan et al., 2019, arXiv:1912.00818"
    roles = ("shares", "personal")
    common = ("encoder",)

    @dataclass(frozen=True)
    class Params:
        weighting: Weighting = limits("equal", doc="clients count alike, or by their training images")

    def shared(self, index):
        return ("encoder",)

    def aggregate(self, rnd):
        return {"encoder": mean_row(rnd.encoder, self.parties, self.params.weighting)}
