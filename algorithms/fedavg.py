"""FedAvg: everybody's encoder becomes the mean encoder, every decoder the mean over all decoders.

McMahan et al., AISTATS 2017, arXiv:1602.05629, with the decoupling of FedHCA² (encoders and decoders averaged apart,
decoders across tasks). Equal weights are the default, as in the HC-FMTL papers' tables; `weighting=samples` weights a
client, and each of its decoders, by its training images, as McMahan et al. do. `shared=encoder` gives FedAvg-E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ..exchange import Round
from ..exchange.algebra import rows_by_kind
from ._base import ALGORITHMS
from ._mean import Weighting, mean_row
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fedavg")
class FedAvg(Sharing):
    """Mean of the encoders, mean of the decoders."""

    title = "FedAvg"
    paper = "McMahan et al., AISTATS 2017, arXiv:1602.05629"
    roles = ("shares", "averages")
    common = ("encoder", "decoder")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        weighting: Weighting = limits("equal", doc="clients count alike, or by their training images")

    params: Params

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        return {kind: mean_row(rows, self.parties, self.params.weighting) for kind, rows in rows_by_kind(rnd)}
