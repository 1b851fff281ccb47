"""IMTL-G: the combination with equal projections onto all gradients; impartial MTL's half for gradients.

g = Σ α_t g_t with Σ α_t = 1 and ⟨g, u_t⟩ the same for all t, where u_t = g_t/‖g_t‖. The paper's closed form is
(α_2, …, α_m) = g_1 Uᵀ (D Uᵀ)⁻¹ with rows g_1 − g_t of D and u_1 − u_t of U. Liu et al., ICLR 2021
(openreview.net/forum?id=IMPnRXEWpvr). Solved here is C x = 1 with the cosines C, and α_t = (x_t/‖g_t‖) / Σ_k x_k/‖g_k‖:
the same, and no length enters the system. An α may be negative; so may all projections be, where a short gradient has a
large negative x. LibMTL's "IMTL" is this together with IMTL-L (`imtl_l`).

Scale-free: the fixed weights of the tasks are left out. A factor of a loss changes the length of g and, if the sum
above changes its sign, which way it points; never its line.

Degenerate systems. Directions in which C is zero to rounding are left out (x = C⁺1): parallel gradients then share
evenly, identical ones have equal weights. Where 1 is not in the range of C (opposite gradients), the only vector with
equal projections is 0, and α is the way to write it. Where Σ x_k/‖g_k‖ vanishes there is no solution, and α_t is
proportional to 1/‖g_t‖. A gradient without direction has α_t = 0, and the others are combined as if it were not there.
"""

from __future__ import annotations

import numpy as np

from ..exchange.algebra import cosines, has_direction
from ..exchange.conflicts import GRAM_ROUNDING
from ._base import WEIGHTINGS
from ._from_gram import FromGram, lengths

OUTSIDE = 0.01  # the share of 1 outside the range of C that is no rounding
VANISHED = 1e-6  # Σ x_t/‖g_t‖ against the sum of its terms' sizes


@WEIGHTINGS.register("imtl_g")
class IMTLG(FromGram):
    """Equal projections onto all gradients."""

    title = "IMTL-G"
    paper = "Liu et al., ICLR 2021"
    scale_free = True

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        part = has_direction(gram)
        inverse = 1 / lengths(gram)[part]
        shares = equal_projections(cosines(gram[np.ix_(part, part)])) * inverse
        if abs(shares.sum()) <= VANISHED * np.abs(shares).sum():
            shares = inverse
        alpha = np.zeros(len(gram))
        alpha[part] = shares / shares.sum()
        return alpha


def equal_projections(cosines: np.ndarray) -> np.ndarray:
    """Return x for which Σ x_t u_t has equal projections onto all u_t, up to a factor. [m]."""
    ones = np.ones(len(cosines))
    values, vectors = np.linalg.eigh(cosines)
    kept = values > GRAM_ROUNDING * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    along = vectors.T @ ones
    outside = ones - vectors @ along
    if np.linalg.norm(outside) > OUTSIDE * np.linalg.norm(ones):
        return outside
    return vectors @ (along / values)
