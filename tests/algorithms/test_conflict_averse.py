"""The simplex solver against certified optima, and at the edges where the public solver fails."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, minimize_scalar, nnls

from fmtlbench.exchange.algebra import gram
from fmtlbench.exchange.conflicts import GRAM_ROUNDING, RESOLUTION, conflict_averse_coefficients, simplex_weights


def objective(gram, c, w):
    n = len(gram)
    mean = np.full(n, 1 / n)
    return w @ gram @ mean + c * np.sqrt(mean @ gram @ mean) * np.sqrt(max(w @ gram @ w, 0))


def test_reaches_the_certified_optimum(reference):
    index = json.loads((reference / "A_aggregation" / "cagrad_solver.json").read_text())
    data = np.load(reference / "A_aggregation" / "cagrad_solver.npz")
    names = [case["id"] for case in index]
    assert len(names) >= 30
    for name in names:
        gram = data[f"{name}_GG"].astype(np.float64)
        n = len(gram)
        c = float((data[f"{name}_c_abs"] - 1e-8) / np.sqrt(gram.mean() + 1e-8))
        scale = np.trace(gram) / n
        if scale == 0:
            continue
        w = simplex_weights(gram, c)
        assert w.min() >= 0 and abs(w.sum() - 1) < 1e-9
        best = objective(gram, c, data[f"{name}_w_opt"].astype(np.float64))
        assert objective(gram, c, w) <= best + 1e-7 * scale, name


@pytest.mark.parametrize("size", [1e-12, 1e-4, 1.0, 1e6, 1e12])
def test_does_not_depend_on_the_scale_of_the_updates(size):
    deltas = np.random.default_rng(0).normal(size=(6, 40))
    reference = simplex_weights(deltas @ deltas.T, 0.4)
    assert np.abs(simplex_weights(size * deltas @ deltas.T, 0.4) - reference).max() < 1e-5


@pytest.mark.parametrize("n", [1, 2, 3, 64])
def test_edges_are_finite(n):
    rng = np.random.default_rng(n)
    deltas = rng.normal(size=(n, 8))
    zero_one = deltas.copy()
    zero_one[0] = 0
    opposite = np.concatenate([deltas, -deltas])
    for rows in (np.zeros((n, 8)), deltas, zero_one, opposite, np.repeat(deltas[:1], n, 0)):
        u = conflict_averse_coefficients(rows @ rows.T, 0.4)
        assert np.isfinite(u).all() and np.isfinite(u @ rows).all()


def test_identical_updates_keep_their_direction():
    delta = np.random.default_rng(1).normal(size=16)
    rows = np.repeat(delta[None], 5, 0)
    u = conflict_averse_coefficients(rows @ rows.T, 0.4) @ rows
    np.testing.assert_allclose(u, 1.4 * delta, rtol=1e-6)


def engine_gram(rows):
    """As a run makes it: of float32 rows, in single precision."""
    return gram(torch.from_numpy(rows))


def cancelled(rows, w):
    """How much longer the updates are than Σ w_i Δ_i: the factor by which rounding of the Gram matrix grows."""
    return (w @ np.linalg.norm(rows, axis=1)) / np.linalg.norm(w @ rows)


def cases(count):
    """Updates of many shapes and sizes; in half of the sets 0 is in the hull, exactly or but for rounding."""
    for k in range(count):
        rng = np.random.default_rng(k)
        n, d = int(rng.integers(2, 25)), int(rng.choice([3, 8, 40, 300]))
        rows = rng.normal(size=(n, d)) + rng.choice([0, 0, 0.5, 2]) * rng.normal(size=d)
        rows *= 10 ** rng.uniform(-6, 6)
        if k % 5 == 0:
            rows *= 10 ** rng.uniform(-2, 2, size=(n, 1))
        rows = rows.astype(np.float32)
        kind = ("plain", "opposite", "near", "zero", "plain", "rounded")[k % 6]
        if kind == "opposite":
            rows[1] = -rows[0]
        elif kind == "near":
            rows[1] = -rows[0] * (1 + 1e-2 * rng.normal(size=d))
        elif kind == "rounded":
            rows[1] = np.nextafter(-rows[0], rng.choice([-np.inf, np.inf], size=d).astype(np.float32))
        elif kind == "zero":
            rows[int(rng.integers(n))] = 0
        yield kind, float(rng.choice([0.2, 0.4, 0.8, 1.5])), rows


def test_the_mean_alone_where_the_optimum_has_no_direction_and_the_optimum_everywhere_else():
    """Against an active-set solver for "is 0 the optimum", and by a duality gap where it is not."""
    seen = {}
    for kind, c, rows in cases(960):
        n, g = len(rows), engine_gram(rows)
        u, w = conflict_averse_coefficients(g, c), simplex_weights(g, c)
        alone = np.array_equal(u, np.full(n, 1 / n))
        seen[kind, alone] = seen.get((kind, alone), 0) + 1
        x = rows.astype(np.float64)
        mean, longest = x.mean(0), np.linalg.norm(x, axis=1).max()
        length = np.linalg.norm(mean)
        value = w @ x @ mean + c * length * np.linalg.norm(w @ x)
        moved = RESOLUTION * (1 + c) * length * longest  # by rounding
        no_radius = length <= RESOLUTION * np.linalg.norm(x, axis=1).mean()
        if kind in ("opposite", "zero", "rounded"):
            # F < 0 somewhere ⇔ the projection of −Δ̄ on the cone of the updates is longer than c‖Δ̄‖.
            cone = x / longest
            if kind == "rounded":
                cone[1] = -cone[0]
            against = 0 if no_radius else np.linalg.norm(nnls(cone.T, -mean / longest)[0] @ cone) * longest / length
            if abs(against - c) > 1e-2:
                assert alone == (against < c), (kind, c, n, against)
        if alone:
            assert abs(value) <= moved or no_radius, (kind, c, n)
        else:  # weak duality: min_i ⟨Δ_i, Ũ⟩ ≤ optimum ≤ F(w), for any Ũ in the ball and any weights
            slack = 1e-5 + GRAM_ROUNDING * (cancelled(x, w) ** 2 + cancelled(x, np.full(n, 1 / n)) ** 2)
            assert np.linalg.norm(u @ x - mean) == pytest.approx(c * length, rel=slack)
            assert value - (x @ (u @ x)).min() <= moved, (kind, c, n)
    assert all(seen.get((kind, alone), 0) >= 20 for kind in ("opposite", "zero", "rounded") for alone in (True, False))
    assert seen["plain", False] >= 250 and seen["near", False] >= 120


def test_agrees_with_a_general_solver():
    compared = 0
    for _, c, rows in cases(480):
        n = len(rows)
        u = conflict_averse_coefficients(engine_gram(rows), c)
        if n > 8 or np.array_equal(u, np.full(n, 1 / n)):
            continue
        x = rows.astype(np.float64)
        x /= np.sqrt((x * x).sum() / n)
        w, mean = general_solver(x, c), x.mean(0)
        if max(cancelled(x, w), cancelled(x, np.full(n, 1 / n))) > 20:
            continue  # rounding of the Gram matrix moves it too far to compare
        compared += 1
        radius = c * np.linalg.norm(mean)
        expected = mean + radius * (w @ x) / np.linalg.norm(w @ x)
        np.testing.assert_allclose(u @ x, expected, atol=2e-4 * radius)
    assert compared >= 40


def general_solver(x, c):
    """The weights by scipy, on the updates themselves in double precision."""
    n, mean = len(x), x.mean(0)
    radius = c * np.linalg.norm(mean)

    def value(w):
        return w @ x @ mean + radius * np.linalg.norm(w @ x)

    def slope(w):
        return x @ (mean + radius * (w @ x) / np.linalg.norm(w @ x))

    if n == 2:
        inside = minimize_scalar(lambda t: value(np.array([t, 1 - t])), bounds=(0, 1), options={"xatol": 1e-13}).x
        return min((np.array([t, 1 - t]) for t in (inside, 0.0, 1.0)), key=value)
    w, one = np.full(n, 1 / n), {"type": "eq", "fun": lambda w: w.sum() - 1}
    for _ in range(3):  # started again where it stopped
        exactly = {"ftol": 1e-16, "maxiter": 300}
        w = minimize(value, w, jac=slope, bounds=[(0, 1)] * n, constraints=one, method="SLSQP", options=exactly).x
        w = w.clip(0) / w.clip(0).sum()
    return w


@pytest.mark.parametrize("seed, d", [(16, 50), (107, 64), (10, 100), (72, 128), (100, 256), (109, 256), (86, 300)])
def test_exactly_opposite_updates_leave_the_mean_and_no_noise(seed, d):
    """Twelve clients, two of them exactly opposite, and nothing points against the mean."""
    rows = np.random.default_rng(seed).normal(size=(12, d)).astype(np.float32)
    rows[1] = -rows[0]
    assert conflict_averse_coefficients(engine_gram(rows), 0.4).tolist() == [1 / 12] * 12


def test_a_direction_stays_where_the_optimum_is_zero_by_chance():
    """F = 0 does not say U = 0: somewhere between agreeing and opposite updates F passes through 0."""
    values = []
    for angle in np.linspace(0.05, np.pi - 0.05, 400):
        rows = np.array([[np.cos(angle), np.sin(angle)], [1.0, 0.0], [1.0, 0.0]], dtype=np.float32)
        u, mean = conflict_averse_coefficients(engine_gram(rows), 0.4) @ rows, rows.mean(0)
        assert np.linalg.norm(u - mean) == pytest.approx(0.4 * np.linalg.norm(mean), rel=1e-3)
        values.append((rows @ u).min())
    assert min(values) < 0 < max(values) and np.abs(values).min() < 1e-2


def test_long_updates_do_not_hide_a_short_one():
    rows = np.random.default_rng(3).normal(size=(5, 300)).astype(np.float32)
    rows[0] *= 1e-4
    u = conflict_averse_coefficients(engine_gram(rows), 0.4) @ rows
    assert (rows @ u).min() > 0 and np.linalg.norm(u - rows.mean(0)) > 0.39 * np.linalg.norm(rows.mean(0))
