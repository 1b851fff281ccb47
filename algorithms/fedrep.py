"""FedRep: the encoder is averaged; a client first fits decoders and heads to it, then the encoder to them.

Collins et al., ICML 2021, arXiv:2102.07078. Of a client's local epochs the first `head_epochs` train decoders and heads
with the encoder frozen, the others the encoder with the rest frozen: as many steps as any other method takes. By
default half of the epochs, rounded down; a single local epoch is halved instead, by its batches.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.schema import limits
from ._base import ALGORITHMS, Schedule
from .fedper import FedPer


@ALGORITHMS.register("fedrep")
class FedRep(FedPer):
    """FedPer with alternating local training."""

    title = "FedRep"
    paper = "Collins et al., ICML 2021, arXiv:2102.07078"

    @dataclass(frozen=True)
    class Params(FedPer.Params):
        head_epochs: int | None = limits(None, low=0, doc="local epochs for decoders and heads; null = half of them")

    params: Params

    def local_schedule(self, epochs: int) -> Schedule:
        head, body = ("decoder", "head"), ("encoder",)
        first = self.params.head_epochs
        if first is None:
            if epochs == 1:
                return [(head, body)]
            first = epochs // 2
        if first > epochs:
            raise ValueError(f"algo.head_epochs={first} is more than there are; expected {epochs} at most")
        return [head] * first + [body] * (epochs - first)
