"""FedBN: FedAvg, but each client keeps its own normalisation layers.

Everything that travels is averaged except scales and shifts of batch norms, and their running statistics where these
would travel: they stay home, and nobody is billed for them. Li et al., ICLR 2021, arXiv:2102.07623. Transformers have
layer norms instead: `norms=all` keeps these home, too, and group and instance norms. With `norms=batch`, the paper's,
and a network without batch norms this is FedAvg (FedPer with `shared=encoder`), and a note says so. A client that
missed rounds is brought up to date with everything but the norms that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..base.schema import limits
from ..exchange import Party, Round, TensorSlice
from ..exchange.algebra import empty_like, rows_by_kind
from ._base import ALGORITHMS
from ._groups import Grouped

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("fedbn")
class FedBN(Grouped):
    """Mean of everything but the normalisation layers."""

    title = "FedBN"
    paper = "Li et al., ICLR 2021, arXiv:2102.07623"

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        norms: Literal["batch", "all"] = limits("batch", doc="which normalisation layers stay home")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.kept: dict[str, int] = {}  # kind → how many values of each row stayed home in the last round

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new = super().aggregate(rnd)
        self.kept = {}
        for kind, rows in rows_by_kind(rnd):
            home = self.kept_home(kind, rows.tensors)
            self.kept[kind] = sum(t.stop - t.start for t in home)
            if not home:
                continue
            if new[kind].stride(0) == 0:  # one row in memory, seen by all: now they differ
                new[kind] = empty_like(rows.after).copy_(new[kind])
            for t in home:
                new[kind][:, t.start : t.stop] = rows.after[:, t.start : t.stop]
        return new

    def kept_home(self, kind: str, tensors: Sequence[TensorSlice]) -> Sequence[TensorSlice]:
        chosen = ("batch",) if self.params.norms == "batch" else ("batch", "other")
        return [t for t in tensors if t.norm in chosen or t.statistic]

    def newcomer_encoder(self, encoders: Tensor) -> Tensor:
        return encoders.mean(0)  # of the norms, which differ; all else is the same in all of them

    def diagnostics(self) -> dict[str, Any]:
        return {"kept_home": dict(self.kept)}

    def notes(self) -> list[str]:
        if not self.kept or any(self.kept.values()):
            return []
        advice = "; --set algo.norms=all keeps layer norms home" if self.params.norms == "batch" else ""
        named = "batch norm" if self.params.norms == "batch" else "normalisation layer"
        return [f"what travels has no {named}, so nothing stayed home: this is FedAvg{advice}"]
