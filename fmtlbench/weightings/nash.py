"""Nash-MTL: the tasks bargain for the step; any other loses larger shares of their gains than it adds.

g = Σ α_t g_t with α > 0 and M α = 1/α (elementwise), where M = G Gᵀ is divided by its Frobenius norm, as in LibMTL and
the authors' code. Navon et al., ICML 2022, arXiv:2202.01017. Both codes solve a sequence of at most 20 convex programs
with cvxpy; the condition is the stationarity of −Σ log α_t + ½ αᵀMα, which is convex, so a damped Newton method finds α
to rounding. The length of g is clipped at `max_norm` = 1, as there, for the encoder alone. LibMTL multiplies the losses
of decoders and heads by α_t too, here these get their own task's gradient. With `every` > 1 the last α is used in
between; that saves the solver's fraction of a millisecond, not the backward passes.

Scale-free: the fixed weights of the tasks are left out, since a factor of a loss divides its α_t; only the norm of M,
so the length of g before clipping, depends on it. A gradient without direction has α_t = 0, and the others bargain
without it. Where gradients cancel out (opposite ones) there is no solution: eigenvalues of the cosines below 2⁻²⁰,
which rounding may leave of zero, count as that, and g is nearly 0. Of identical gradients the result is their sum,
clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.schema import limits
from ..exchange.algebra import cosines, has_direction
from ..exchange.conflicts import GRAM_ROUNDING
from ._base import WEIGHTINGS
from ._from_gram import FromGram, lengths
from ._state import check_count, check_keys, check_numbers

STEPS = 200  # of Newton; about ten are taken
PRECISE = 1e-12  # the decrement at which rounding decides


@WEIGHTINGS.register("nash")
class Nash(FromGram):
    """Nash bargaining between the tasks."""

    title = "Nash-MTL"
    paper = "Navon et al., ICML 2022, arXiv:2202.01017"
    scale_free = True

    @dataclass(frozen=True)
    class Params:
        max_norm: float | None = limits(1.0, above=0, doc="clip the encoder's gradient at this length; null does not")
        every: int = limits(1, low=1, doc="bargain anew in every so many steps")

    params: Params

    def __init__(self, params: Params, tasks: Sequence[str]) -> None:
        super().__init__(params, tasks)
        self.steps = 0
        self.alpha: np.ndarray | None = None  # of the last bargain, before clipping

    def coefficients(self, gram: np.ndarray, losses: np.ndarray) -> np.ndarray:
        if self.alpha is None or self.steps % self.params.every == 0:
            self.alpha = bargain(gram)
        self.steps += 1
        limit, length = self.params.max_norm, np.sqrt(max(self.alpha @ gram @ self.alpha, 0.0))
        return self.alpha if limit is None or length <= limit else self.alpha * (limit / length)

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "alpha": None if self.alpha is None else self.alpha.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        check_keys(self.name, state, ["steps", "alpha"])
        steps, alpha = check_count(self.name, "steps", state["steps"]), state["alpha"]
        if alpha is not None:
            alpha = np.array(check_numbers(self.name, "alpha", alpha, len(self.tasks)))
        self.steps, self.alpha = steps, alpha


def bargain(gram: np.ndarray) -> np.ndarray:
    """Return α with M α = 1/α for M = gram / ‖gram‖, among the rows that have a direction. [m].

    With α_t = √‖gram‖ y_t/‖g_t‖ that is C y = 1/y for the cosines C: no length enters the system.
    """
    part = has_direction(gram)
    y = solve(cosines(gram[np.ix_(part, part)]))
    alpha = np.zeros(len(gram))
    alpha[part] = np.sqrt(np.linalg.norm(gram)) / lengths(gram)[part] * y
    return alpha


def solve(cosines: np.ndarray) -> np.ndarray:
    """Return the y > 0 with C y = 1/y, the minimum of −Σ log y_t + ½ yᵀCy. [m].

    The function is self-concordant: steps damped by the decrement δ as 1/(1 + δ) keep y positive and converge.
    """
    values, vectors = np.linalg.eigh(cosines)
    c = vectors * values.clip(GRAM_ROUNDING) @ vectors.T
    y = np.full(len(c), np.sqrt(len(c) / c.sum()))  # the best with all alike
    for _ in range(STEPS):
        slope = c @ y - 1 / y
        # In units of y, in which the system is well conditioned: d = y e, (Y C Y + I) e = −Y slope.
        e = np.linalg.solve(c * y * y[:, None] + np.eye(len(y)), -y * slope)
        decrement = np.sqrt(max(-(y * slope) @ e, 0.0))
        y = y * (1 + (e if decrement < 0.25 else e / (1 + decrement)))
        if decrement < PRECISE:
            break
    return y
