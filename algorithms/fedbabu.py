"""FedBABU: only the encoder is trained and averaged; decoders and heads wait for a fine-tuning before scoring.

Oh et al., ICLR 2022, arXiv:2106.06042. Here everything above the encoder is fine-tuned, by default for one epoch, on a
copy: the federation never sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.schema import limits
from ._base import ALGORITHMS, Evaluation, Schedule
from .fedper import FedPer


@ALGORITHMS.register("fedbabu")
class FedBABU(FedPer):
    """Body aggregation, body-only update, head fine-tuning for evaluation."""

    title = "FedBABU"
    paper = "Oh et al., ICLR 2022, arXiv:2106.06042"

    @dataclass(frozen=True)
    class Params(FedPer.Params):
        finetune_epochs: int = limits(1, low=0, doc="epochs of decoders and heads before scoring, on a copy")

    params: Params

    def local_schedule(self, epochs: int) -> Schedule:
        return [("encoder",)] * epochs

    def evaluation_model(self) -> Evaluation:
        return Evaluation(finetune=(("decoder", "head"),) * self.params.finetune_epochs)
