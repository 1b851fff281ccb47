"""Aligned-MTL: gradients are made orthogonal and equally long before they are summed.

g = Σ α_t g_t with α = B·1 and B = √λ_r V Λ^{−1/2} Vᵀ, where M = G Gᵀ = V Λ Vᵀ has rank r and λ_r is the smallest
eigenvalue that is not zero: the rows of B G have the singular values √λ_r, all of them. Senushkin et al., CVPR 2023,
arXiv:2305.19000. Eigenvalues below λ_1 · m · 2⁻²³ count as zero, as in the public codes: a task whose gradients are
over a thousand times shorter than another's has no say. LibMTL calls torch.symeig, which torch 2 does not have.

The fixed weights of the tasks are kept: the weakest component decides the length of g, and how long the gradients are
its direction too. A gradient of zero has α_t = 0. Of identical gradients the result is their sum.
"""

from __future__ import annotations

import numpy as np

from ._base import WEIGHTINGS
from ._from_gram import FromGram

ROUNDING = 2.0**-23  # of float32


@WEIGHTINGS.register("aligned")
class Aligned(FromGram):
    """Independent component alignment."""

    title = "Aligned-MTL"
    paper = "Senushkin et al., CVPR 2023, arXiv:2305.19000"

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(gram)  # from the smallest on
        kept = values > values[-1] * len(gram) * ROUNDING
        values, vectors = values[kept], vectors[:, kept]
        return vectors @ (np.sqrt(values[0] / values) * vectors.sum(0))
