"""LG-FedAvg: encoders stay home, decoders are averaged with those of the same task.

Local representations and global heads, the mirror image of FedPer. Liang et al., 2020, arXiv:2001.01523. Each task's
decoder becomes the mean over the clients that have the task, by their training images as in the paper
(`weighting=equal`: alike); what a task is scored with (the head) stays home, but for whole models of alike clients.
Two clients without a common task exchange nothing. The paper starts from a model that FedAvg trained: in the first
`warmup_rounds` (none by default) encoders are averaged over everybody too; a client that misses the last of these keeps
the encoder it has. FL-bench counts layers from the end (`num_global_layers=1`) where decoders are meant here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base.schema import limits
from ..exchange import Round
from ..exchange.algebra import rows_by_kind
from ._base import ALGORITHMS, Algorithm, Kinds
from ._mean import Weighting, by_task, mean_row, means_by_label

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("lg_fedavg")
class LGFedAvg(Algorithm):
    """Mean of the decoders of each task."""

    title = "LG-FedAvg"
    paper = "Liang et al., 2020, arXiv:2001.01523"
    roles = ("shares", "personal")

    @dataclass(frozen=True)
    class Params:
        weighting: Weighting = limits("samples", doc="clients count by their training images, or alike")
        warmup_rounds: int = limits(0, low=0, doc="first rounds in which encoders are averaged too")

    params: Params

    def shared(self, index: int) -> Kinds:
        return ("encoder", "decoder") if index < self.params.warmup_rounds else ("decoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new: dict[str, Tensor] = {}
        for kind, rows in rows_by_kind(rnd):
            if kind == "encoder":
                new[kind] = mean_row(rows, self.parties, self.params.weighting)
                continue
            new[kind] = means_by_label(rows, by_task(rows, self.parties), self.parties, self.params.weighting)
        return new

    def notes(self) -> list[str]:
        everybody = [
            task
            for party in self.parties
            for task in (["+".join(sorted(party.tasks))] if party.merged else party.tasks)
        ]
        if len(set(everybody)) < len(everybody):
            return []
        return ["no two clients have a task in common, so no decoder meets another: this is local training"]
