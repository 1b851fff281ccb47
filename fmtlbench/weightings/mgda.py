"""MGDA: the shortest convex combination of the gradients, along which no task's loss grows.

g = Σ_t λ_t g_t with λ = argmin ‖Σ λ_t g_t‖² over λ ≥ 0, Σ λ_t = 1. Sener and Koltun, NeurIPS 2018, arXiv:1810.04650.
`normalization` first divides every g_t: by its length (l2), by its loss (loss), by both (loss+), or not (none, LibMTL's
default). What is combined are the divided gradients, as in LibMTL, since the promise above is about them; the authors'
code then applies λ to the gradients as they were. The optimum is found to rounding, where both stop Frank–Wolfe at
1e-5.

The fixed weights of the tasks are kept. The λ sum to 1: of identical gradients the result is 1/m of their sum. A
gradient without direction (a task of weight 0, a batch without its labels) is left out, since with it the shortest
combination is 0 and nothing would move; so is one whose divisor is too small for float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..base.schema import limits
from ..exchange.algebra import has_direction
from ..exchange.conflicts import shortest_weights
from ._base import WEIGHTINGS
from ._from_gram import FromGram, lengths

LARGEST = 1e36  # factor of a gradient, and length of a divided one: float32 ends at 3e38


@WEIGHTINGS.register("mgda")
class MGDA(FromGram):
    """Multiple-gradient descent."""

    title = "MGDA"
    paper = "Sener and Koltun, NeurIPS 2018, arXiv:1810.04650"

    @dataclass(frozen=True)
    class Params:
        normalization: Literal["none", "l2", "loss", "loss+"] = limits(
            "none", doc="by what every gradient is divided first"
        )

    params: Params

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        length = lengths(gram)
        divisor = {"none": np.ones(len(gram)), "l2": length, "loss": losses, "loss+": losses * length}[
            self.params.normalization
        ]
        part = has_direction(gram) & (np.maximum(length, 1) < LARGEST * divisor)
        u = np.zeros(len(gram))
        if part.any():
            inverse = 1 / divisor[part]
            u[part] = inverse * shortest_weights(gram[np.ix_(part, part)] * inverse * inverse[:, None])
        return u
