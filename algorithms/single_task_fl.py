"""Single-task FL: clients average their encoder only with those who have the same dataset and the same task set.

The baseline of Cai et al., CVPR Workshops 2023 (MaT-FL), for hetero-client federations: a client unlike all others
trains alone. Equal weights as there; `weighting=samples` weights clients by their training images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..exchange import Round
from ..exchange.algebra import encoders_of, mix
from ._base import ALGORITHMS
from ._mean import alike, group_means, row_weights
from .fedper import FedPer

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("single_task_fl")
class SingleTaskFL(FedPer):
    """Mean of the encoders of alike clients."""

    title = "Single-task FL"
    paper = "baseline of Cai et al., CVPR Workshops 2023"
    common = ()

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        rows = encoders_of(rnd)
        weights = row_weights(rows, self.parties, self.params.weighting)
        return {"encoder": mix(group_means(alike(rows, self.parties), weights), rows.after)}
