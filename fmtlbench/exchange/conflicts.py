"""Directions for updates or gradients that conflict, from their Gram matrix alone.

The conflict-averse one (CAGrad), the shortest vector of the convex hull (MGDA), and projections (PCGrad). Methods use
them on clients' updates, weightings of local losses on tasks' gradients.
"""

from __future__ import annotations

import numpy as np

from .algebra import has_direction

# The objective is of size one.
FAINTEST = 1e-14  # the barrier's last weight
GAP = 1e-12
ROUNDING = 1e-14
TINY = 1e-9  # a step not worth taking

# An inner product of two rows of float32 is off by up to this share of their lengths' product (measured: 5e-7), so the
# length of Σ w_i Δ_i is told from 0 only above RESOLUTION · Σ w_i ‖Δ_i‖.
GRAM_ROUNDING = 2.0**-20
RESOLUTION = GRAM_ROUNDING**0.5


def conflict_averse_coefficients(gram: np.ndarray, c: float) -> np.ndarray:
    """Return u such that Ũ = Σ u_i Δ_i = Δ̄ + √φ U_w/‖U_w‖, with φ = c²‖Δ̄‖² and w from `simplex_weights`. [N]."""
    n = len(gram)
    mean = np.full(n, 1 / n)
    w = simplex_weights(gram, c)
    norm = np.sqrt(max(w @ gram @ w, 0.0))
    radius = c * np.sqrt(max(mean @ gram @ mean, 0.0))
    if norm == 0 or _has_no_direction(gram, c, w):
        return mean
    return mean + radius / norm * w


def _has_no_direction(gram: np.ndarray, c: float, w: np.ndarray) -> bool:
    """Say whether the optimum is U_w = 0, as far as rounding tells; Ũ is the mean alone then.

    F(w) = ⟨U_w, Δ̄⟩ + c‖Δ̄‖‖U_w‖ depends on U = U_w alone, is 0 at U = 0, and F(tU) = t F(U). So 0 is the optimum if and
    only if the convex hull of the updates contains it (a client that did not move, exactly opposite ones) and F ≥ 0 on
    the hull: always for c ≥ 1, else unless some U meets Δ̄ at a cosine below −c. How small the solver left ‖U_w‖ says
    nothing, as a flat F leaves it anywhere. Rounding moves F by RESOLUTION · (1 + c)‖Δ̄‖ Σ w_i ‖Δ_i‖ at most.
    """
    n = len(gram)
    mean, lengths = np.full(n, 1 / n), np.sqrt(np.diag(gram).clip(0))
    mean_length = np.sqrt(max(mean @ gram @ mean, 0.0))
    if c <= 0 or mean_length <= RESOLUTION * (mean @ lengths):  # no radius: any direction will do
        return True
    value = w @ gram @ mean + c * mean_length * np.sqrt(max(w @ gram @ w, 0.0))
    margin = RESOLUTION * (1 + c) * mean_length
    if not np.isfinite(value) or abs(value) > margin * lengths.max():
        return False
    if not has_direction(gram).all():  # a client did not move: 0 itself is among the updates
        return value >= -margin * (w @ lengths)
    # In terms of unit vectors: v_i = w_i‖Δ_i‖ / Σ w_j‖Δ_j‖ makes ‖U_w‖ / Σ w_j‖Δ_j‖ the length of Σ v_i Δ_i/‖Δ_i‖.
    cosines = _positive((gram + gram.T) / (2 * lengths * lengths[:, None]))
    v = _interior_point(cosines, np.zeros(n), 1.0)
    spread = max(w @ lengths, 1 / (v / lengths).sum())  # of the optimum, and of the way to write 0
    return v @ cosines @ v <= GRAM_ROUNDING and value >= -margin * spread


def simplex_weights(gram: np.ndarray, c: float) -> np.ndarray:
    """Return the w on the simplex that minimises w·(GN⁻¹1) + c‖Δ̄‖·√(wᵀGw), to a gap near rounding.

    The Gram matrix is scaled first, so that the answer does not depend on the size of the updates.
    """
    n = len(gram)
    start = np.full(n, 1 / n)
    scale = np.trace(gram) / n
    if n == 1 or not 0 < scale < np.inf:
        return start
    g = _positive((gram + gram.T) / (2 * scale))
    linear = g @ start
    mean_square = start @ linear  # ‖Δ̄‖², where the updates have a mean square length of one
    if mean_square <= 1e-14:  # they cancel out as far as single precision tells: no point is better than another
        return start
    if c <= 0:
        return np.eye(n)[linear.argmin()]
    radius = c * np.sqrt(mean_square)
    size = max(np.abs(linear).max(), radius)
    return _interior_point(g, linear / size, radius / size)


def _positive(gram: np.ndarray) -> np.ndarray:
    """Return the nearest positive semidefinite matrix: rounding may have left it indefinite."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * values.clip(0) @ vectors.T


def _interior_point(g: np.ndarray, linear: np.ndarray, radius: float, steps: int = 60) -> np.ndarray:
    """Minimise linear·w + radius·√(wᵀgw) on the simplex: primal-dual Newton steps while the barrier h fades.

    The barriers −h Σ log w_i and, for the cone ‖U_w‖ ≤ t, −h log(t² − ‖U_w‖²) with the best t put in, make every
    stage smooth, also where U_w vanishes. About ten steps of an N×N system, whatever the updates.
    """
    n = len(g)
    w, h = np.full(n, 1 / n), 0.1
    z = h / w  # multipliers of w ≥ 0
    system = np.ones((n + 1, n + 1))
    system[n, n] = 0
    for _ in range(steps):
        value, gw, root, t = _stage(g, linear, radius, w, h)
        slope = linear + radius * gw / t
        if h <= FAINTEST and slope @ w - slope.min() <= GAP:  # the Frank–Wolfe gap bounds what is left to gain
            break
        system[:n, :n] = radius / t * (g - np.outer(gw, gw) / (root * t)) + np.diag(z / w)
        try:
            dw = np.linalg.solve(system, np.append(h / w - slope, 1 - w.sum()))[:n]
        except np.linalg.LinAlgError:  # many w have U_w = 0, and this one is of them as far as numbers tell
            break
        dz = h / w - z - z / w * dw
        step, dual_step = (min(1.0, 0.99 / max((-d / x).max(), 0.1)) for d, x in ((dw, w), (dz, z)))
        decrease = 1e-4 * (slope - h / w) @ dw
        while step > TINY and _stage(g, linear, radius, w + step * dw, h)[0] > value + step * decrease + ROUNDING:
            step /= 2
        if not step > TINY:  # rounding decides from here on
            break
        w, z = w + step * dw, z + dual_step * dz
        w /= w.sum()
        if step > 0.5:
            h = max(h * (0.03 if min(step, dual_step) > 0.9 else 0.2), FAINTEST)
    return w


def _stage(
    g: np.ndarray, linear: np.ndarray, radius: float, w: np.ndarray, h: float
) -> tuple[float, np.ndarray, float, float]:
    """Return (value, gw, √(δ² + wᵀgw), t) with δ = h/radius and t the best for w; the gradient uses gw / t."""
    delta, gw = h / radius, g @ w
    root = np.sqrt(delta * delta + max(w @ gw, 0.0))
    t = delta + root
    return linear @ w + radius * (t - delta * np.log(t)) - h * np.log(w).sum(), gw, root, t


def shortest_weights(gram: np.ndarray) -> np.ndarray:
    """Return the w on the simplex that makes Σ w_i Δ_i as short as possible (MGDA's min-norm point). [N]."""
    n = len(gram)
    scale = np.trace(gram) / n
    if n == 1 or not 0 < scale < np.inf:
        return np.full(n, 1 / n)
    return _interior_point(_positive((gram + gram.T) / (2 * scale)), np.zeros(n), 1.0)


def project(gram: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Project every row away from those it conflicts with, in the given orders; on coefficients alone. [R, R].

    Row i of the answer has p_i = Σ_k p[i, k] Δ_k: Δ_i after it met the rows that row i of `orders` [R, R − 1] names.
    """
    n = len(gram)
    p = np.eye(n)  # p_i = Σ_k p[i, k] Δ_k
    alive, everyone = has_direction(gram), np.arange(n)
    for j in orders.T if n > 1 else ():  # every i meets its next j at once
        inner = (p * gram[j]).sum(1)
        conflict = (inner < 0) & alive[j]
        p[everyone[conflict], j[conflict]] -= inner[conflict] / gram[j, j][conflict]
    return p
