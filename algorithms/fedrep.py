"""FedRep: the encoder is averaged; a client first fits decoders and heads to it, then the encoder to them.

Collins et al., ICML 2021, arXiv:2102.07078. `head_epochs` with the encoder frozen come before the local epochs, in
which decoders and heads are frozen; by default there are as many of them as local epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..schema import limits
from ._base import ALGORITHMS
from .fedper import FedPer


@ALGORITHMS.register("fedrep")
class FedRep(FedPer):
    """FedPer with alternating local training."""

    title = "FedRep"
    paper = "Collins et al., ICML 2021, arXiv:2102.07078"

    @dataclass(frozen=True)
    class Params(FedPer.Params):
        head_epochs: int | None = limits(None, low=0, doc="epochs of decoders and heads; null = local epochs")

    def local_schedule(self, epochs):
        first = epochs if self.params.head_epochs is None else self.params.head_epochs
        return [("decoder", "head")] * first + [("encoder",)] * epochs
