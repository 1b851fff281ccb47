"""Task means: each task has a mean encoder, and a client gets the mean of its tasks' ones.

E_t = mean of a_i over the clients that have task t; client i's encoder becomes the mean of E_t over its own tasks; a
decoder becomes the mean over the decoders of its task. So FedAvg looks where task sets overlap: clients count for each
other by the tasks they share, and strangers not at all. It is what remains of FedPMT (Xin et al., JPDC 205, 2025)
without its attenuation factors, which its public abstract does not define; hence a name of its own. Clients count alike
by default, `weighting=samples` by their training images. If all have the same one task this is FedAvg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.schema import limits
from ..exchange import Round, Rows
from ..exchange.algebra import mix, rows_by_kind
from ._base import ALGORITHMS
from ._mean import Weighting, by_task, means_by_label, row_weights
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("task_means")
class TaskMeans(Sharing):
    """Mean encoder and mean decoder of each task."""

    title = "Task means"
    paper = "per-task FedAvg, after Xin et al., JPDC 2025"
    roles = ("shares", "personal")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        weighting: Weighting = limits("equal", doc="clients count alike, or by their training images")

    params: Params

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        new: dict[str, Tensor] = {}
        for kind, rows in rows_by_kind(rnd):
            if kind == "encoder":
                weights = row_weights(rows, self.parties, self.params.weighting)
                new[kind] = mix(self._encoder_weights(rows, weights), rows.after)
            else:
                new[kind] = means_by_label(rows, by_task(rows, self.parties), self.parties, self.params.weighting)
        return new

    def _encoder_weights(self, rows: Rows, weights: np.ndarray) -> np.ndarray:
        """Return what every client counts for every client's encoder. [N, N]."""
        members = [self.parties[owner.client] for owner in rows.owners]
        tasks = sorted({task for party in members for task in party.tasks})
        has = np.array([[task in party.tasks for task in tasks] for party in members], dtype=float)  # [N, T]
        of_client, of_task = has / has.sum(1, keepdims=True), has * weights[:, None]
        coefficients: np.ndarray = of_client @ (of_task / of_task.sum(0)).T
        return coefficients
