"""FedAvg: everybody's encoder becomes the mean encoder, every decoder the mean over all decoders.

McMahan et al., AISTATS 2017, arXiv:1602.05629, with the decoupling of FedHCA² (encoders and decoders averaged apart,
decoders across tasks). Equal weights are the default, as in the HC-FMTL papers' tables; `weighting=samples` weights a
client, and each of its decoders, by its training images, as McMahan et al. do. `shared=encoder` gives FedAvg-E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ._base import ALGORITHMS, Algorithm
from ._linear import parts
from ._mean import mean_row


@ALGORITHMS.register("fedavg")
class FedAvg(Algorithm):
    """Mean of the encoders, mean of the decoders."""

    title = "FedAvg"
    paper = "McMahan et al., AISTATS 2017, arXiv:1602.05629"

    @dataclass(frozen=True)
    class Params:
        shared: Literal["all", "encoder"] = "all"
        weighting: Literal["equal", "samples"] = "equal"

    def shared(self, index):
        return ("encoder", "decoder") if self.params.shared == "all" else ("encoder",)

    def aggregate(self, rnd):
        return {kind: mean_row(rows, self.parties, self.params.weighting) for kind, rows in parts(rnd)}
