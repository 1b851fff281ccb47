"""The conflict-averse direction (CAGrad) of a set of updates, from their Gram matrix alone."""

from __future__ import annotations

import numpy as np


def conflict_averse_coefficients(gram: np.ndarray, c: float) -> np.ndarray:
    """U such that Ũ = Σ u_i Δ_i = Δ̄ + √φ U_w/‖U_w‖, with φ = c²‖Δ̄‖² and w from `simplex_weights`. [N]."""
    n = len(gram)
    mean = np.full(n, 1 / n)
    w = simplex_weights(gram, c)
    norm = np.sqrt(max(w @ gram @ w, 0.0))
    radius = c * np.sqrt(max(mean @ gram @ mean, 0.0))
    # U_w = 0 has no direction (a client that did not move, or exactly opposite ones): the mean alone is left.
    if norm <= 1e-7 * np.sqrt(max(np.trace(gram) / n, 0.0)):
        return mean
    return mean + radius / norm * w


def simplex_weights(gram: np.ndarray, c: float) -> np.ndarray:
    """The w on the simplex that minimises w·(GN⁻¹1) + c‖Δ̄‖·√(wᵀGw), to an optimality gap near rounding.

    The Gram matrix is scaled first, so that the answer does not depend on the size of the updates.
    """
    n = len(gram)
    start = np.full(n, 1 / n)
    scale = np.trace(gram) / n
    if n == 1 or not scale > 0:
        return start
    g = (gram + gram.T) / (2 * scale)
    linear = g @ start
    radius = c * np.sqrt(max(start @ linear, 0.0))

    def value(w):
        return linear @ w + radius * np.sqrt(max(w @ g @ w, 0.0))

    def slope(w):
        gw = g @ w
        return linear + radius * gw / max(np.sqrt(max(w @ gw, 0.0)), 1e-12)

    best = _slsqp(value, slope, start)
    return _polish(value, slope, best)


def _slsqp(value, slope, start: np.ndarray) -> np.ndarray:
    from scipy.optimize import minimize

    result = minimize(
        value, start, jac=slope, method="SLSQP", bounds=[(0, 1)] * len(start),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 200},
    )  # fmt: skip
    w = _project(result.x) if np.isfinite(result.x).all() else start
    return w if value(w) <= value(start) else start


def _polish(value, slope, w: np.ndarray, gap: float = 1e-12, steps: int = 2000) -> np.ndarray:
    """Projected gradient with backtracking, until the Frank–Wolfe gap certifies the optimum."""
    step = 1.0
    for _ in range(steps):
        gradient = slope(w)
        if gradient @ w - gradient.min() <= gap:
            break
        here = value(w)
        while step > 1e-14:
            new = _project(w - step * gradient)
            if value(new) <= here - 1e-4 / step * ((new - w) @ (new - w)) and not np.array_equal(new, w):
                break
            step /= 2
        else:
            break
        w, step = new, min(step * 2, 1e3)
    return w


def _project(v: np.ndarray) -> np.ndarray:
    """Euclidean projection onto the probability simplex."""
    ordered = np.sort(v)[::-1]
    excess = np.cumsum(ordered) - 1
    ranks = np.arange(1, len(v) + 1)
    last = ranks[ordered - excess / ranks > 0][-1]
    return np.maximum(v - excess[last - 1] / last, 0.0)
