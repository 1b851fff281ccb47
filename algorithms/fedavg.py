"""FedAvg: everybody's encoder becomes the mean encoder, every decoder the mean over all decoders.

McMahan et al., AISTATS 2017, arXiv:1602.05629, with the decoupling of FedHCA² (encoders and decoders averaged apart,
decoders across tasks). Equal weights, as in the HC-FMTL papers' tables.
"""

from __future__ import annotations

from ._base import ALGORITHMS, Algorithm


@ALGORITHMS.register("fedavg")
class FedAvg(Algorithm):
    """Mean of the encoders, mean of the decoders."""

    title = "FedAvg"
    paper = "McMahan et al., AISTATS 2017, arXiv:1602.05629"

    def shared(self, index):
        return ("encoder", "decoder")

    def aggregate(self, rnd):
        return {
            kind: rows.after.mean(0, keepdim=True).expand_as(rows.after)
            for kind, rows in (("encoder", rnd.encoder), ("decoder", rnd.decoder))
            if rows is not None
        }
