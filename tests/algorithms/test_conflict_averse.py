"""The simplex solver against certified optima, and at the edges where the public solver fails."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fmtlbench.algorithms._conflict_averse import conflict_averse_coefficients, simplex_weights


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
