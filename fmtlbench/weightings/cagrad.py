"""CAGrad: the gradient near the mean that serves the worst-off task best.

(ḡ + λ g_w) / (1 + c²) with the mean ḡ, λ = c‖ḡ‖/‖g_w‖, and g_w = Σ w_t g_t for the w on the simplex that minimises
⟨g_w, ḡ⟩ + c‖ḡ‖‖g_w‖. Liu et al., NeurIPS 2021, arXiv:2110.14048. c = 0.5 as in LibMTL, 0.4 in the paper for NYUv2; the
division is both codes' default and not the paper's (`rescale=false`). The server-side method of this name is the same
on clients' updates; both find the optimum to rounding.

It starts from the mean, where `equal` sums: with m tasks the encoder's gradient is about m times shorter, while
decoders and heads keep theirs. An adaptive optimiser sees nothing of that, plain SGD trains the encoder more slowly,
and train.clip_norm bites later. We follow the public codes.

The fixed weights of the tasks are kept. Where g_w has no direction (a gradient of zero, exactly opposite ones, and
nothing else points against the mean) the result is ḡ / (1 + c²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.schema import limits
from ..exchange.conflicts import conflict_averse_coefficients
from ._base import WEIGHTINGS
from ._from_gram import FromGram


@WEIGHTINGS.register("cagrad")
class CAGrad(FromGram):
    """Conflict-averse gradient."""

    title = "CAGrad"
    paper = "Liu et al., NeurIPS 2021, arXiv:2110.14048"

    @dataclass(frozen=True)
    class Params:
        c: float = limits(0.5, low=0, doc="radius of the search around the mean gradient, as a share of it")
        rescale: bool = limits(True, doc="divide the gradient by 1 + c²")

    params: Params

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        c = self.params.c
        u = conflict_averse_coefficients(gram, c)
        return u / (1 + c * c) if self.params.rescale else u
