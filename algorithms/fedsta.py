"""FedSTA: encoders are averaged every round, decoders of the same task now and then if asked.

Park et al., NeurIPS 2021, arXiv:2111.01338, whose task-specific parts are unified across the clients of a task only
every so many rounds: `unify_every`. By default they never are: so FedSTA ran in the FedHCA² supplement, and so it is
FedPer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ..exchange import Round
from ..exchange.algebra import mix
from ._base import ALGORITHMS, Kinds
from ._mean import by_task, group_means, row_weights
from .fedper import FedPer

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fedsta")
class FedSTA(FedPer):
    """Mean of the encoders; on request, now and then, the mean of the decoders of each task."""

    title = "FedSTA"
    encoder_only = "unify_every=null"
    paper = "Park et al., NeurIPS 2021, arXiv:2111.01338"

    @dataclass(frozen=True)
    class Params(FedPer.Params):
        unify_every: int | None = limits(None, low=1, doc="rounds between two averagings of decoders; null = never")

    params: Params

    def shared(self, index: int) -> Kinds:
        every = self.params.unify_every
        return ("encoder", "decoder") if every and (index + 1) % every == 0 else ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new = super().aggregate(rnd)
        if rnd.decoder is not None:
            weights = row_weights(rnd.decoder, self.parties, self.params.weighting)
            new["decoder"] = mix(group_means(by_task(rnd.decoder, self.parties), weights), rnd.decoder.after)
        return new
