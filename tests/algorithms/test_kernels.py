"""Compiled and plain linear algebra on rows, against double precision: any shape, any cut, any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from fmtlbench.exchange import Rows
from fmtlbench.exchange import algebra as row_algebra
from fmtlbench.exchange import row_passes as kernels

ROWS = (1, 2, 5, 8, 9, 64)  # from 9 on, torch's path


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(kernels, "CHUNK", 64)


@pytest.fixture(params=["compiled", "torch"])
def path(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(row_algebra, "COMPILED_ROWS", 0)
    return request.param


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def all_results(after, before, probe):
    """Every function of `row_algebra` on rows: name → (what it gives, what double precision gives)."""
    n = len(after)
    m, base = (np.random.default_rng(k).normal(size=(n, n)) for k in (0, 1))
    a, b, p = (x.double().numpy() for x in (after, before, probe))
    delta, centred = a - b, a - a.mean(0)
    rows = Rows((), before, after, ())
    products, along = row_algebra.gram_and_products(after, before, probe)
    moved, extra = row_algebra.combine_with_extra(np.vstack([m, base[:1]]), after, before, own="after")
    return {
        "gram": (row_algebra.gram(after), a @ a.T),
        "gram of updates": (row_algebra.gram(after, before), delta @ delta.T),
        "gram beside a probe": (products, delta @ delta.T),
        "products": (along, delta @ p),
        "centred": (row_algebra.centred_gram(after), centred @ centred.T),
        "mean": (row_algebra.mean(after), a.mean(0)),
        "mix": (row_algebra.mix(m, after), m @ a),
        "move": (row_algebra.move(rows, m), b + m @ delta),
        "move alike": (row_algebra.move(rows, m[0]), b + m[0] @ delta),
        "move from a base": (row_algebra.move(rows, m, base), base @ b + m @ delta),
        "move and extra": (moved, a + m @ delta),
        "extra": (extra, base[0] @ delta),
    }


def check(results, scale=1.0):
    for name, (got, want) in results.items():
        assert got.shape == want.shape, name
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=2e-5 * scale, err_msg=name)


@pytest.mark.parametrize("width", [0, 1, 7, 64, 201])
@pytest.mark.parametrize("rows", ROWS)
def test_any_number_of_rows_and_columns(rows, width):
    after, before = noise(rows, width), noise(rows, width, seed=1)
    check(all_results(after, before, noise(width, seed=2)), scale=max(rows, width) ** 0.5)


def test_any_cut_of_rows(path):
    wide, tall = noise(5, 300), noise(300, 5, seed=1)
    apart, one = noise(10, 300)[::2], noise(1, 300)
    for after, before in (
        (wide[:, 17:218], wide[:, 40:241]),  # columns
        (apart, apart.flip(0)),  # every other row
        (wide, one.expand(5, -1)),  # one row, seen five times
        (tall.T, wide),  # columns that do not lie side by side
    ):
        check(all_results(after, before, before[0]), scale=20)


def test_compiled_sums_are_those_of_double_precision():
    after, before = noise(6, 5000), noise(6, 5000, seed=1)
    delta = after.double() - before.double()
    np.testing.assert_allclose(row_algebra.gram(after, before), (delta @ delta.T).numpy(), rtol=1e-12, atol=1e-11)


def test_near_rows_keep_their_differences(path):
    base = 100 * noise(1, 4000)
    rows = base + 1e-3 * noise(5, 4000, seed=1)
    exact = rows.double() - rows.double().mean(0)
    want = (exact @ exact.T).numpy()
    np.testing.assert_allclose(row_algebra.centred_gram(rows), want, rtol=1e-9, atol=1e-9 * want.max())


def test_a_row_on_the_mean_has_no_direction(path):
    rows = torch.stack([noise(500), torch.zeros(500), -noise(500)])
    assert row_algebra.has_direction(row_algebra.centred_gram(rows)).tolist() == [True, False, True]


def test_threads_make_no_difference(path):
    after, before, probe = noise(5, 1000), noise(5, 1000, seed=1), noise(1000, seed=2)
    count = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = all_results(after, before, probe)
        torch.set_num_threads(3)
        together = all_results(after, before, probe)
    finally:
        torch.set_num_threads(count)
    for name in alone:
        np.testing.assert_array_equal(np.asarray(together[name][0]), np.asarray(alone[name][0]), err_msg=name)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_a_number_shows(path, bad):
    after, before, probe = noise(5, 200), noise(5, 200, seed=1), noise(200, seed=2)
    after[2, 70] = bad
    with np.errstate(invalid="ignore"):
        results = all_results(after, before, probe)
    for name, (got, _) in results.items():
        got = np.asarray(got)
        if name in ("gram", "gram of updates", "gram beside a probe", "centred"):
            assert not np.isfinite(got[2]).any(), name
        elif name == "products":
            assert not np.isfinite(got[2]) and np.isfinite(np.delete(got, 2)).all()
        else:
            assert not np.isfinite(got[..., 70]).any(), name
            assert np.isfinite(np.delete(got, 70, axis=-1)).all(), name


def test_inputs_stay_as_they_are(path):
    after, before, probe = noise(5, 200), noise(5, 200, seed=1), noise(200, seed=2)
    copies = after.clone(), before.clone(), probe.clone()
    all_results(after, before, probe)
    assert all(torch.equal(x, y) for x, y in zip((after, before, probe), copies))


def test_compiled_code_is_kept_for_the_next_process(tmp_path):
    code = (
        "import torch\n"
        "from fmtlbench.exchange import algebra\n"
        "print(algebra.gram(torch.ones(2, 3), torch.zeros(2, 3)).tolist())"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    stored = []
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert run.stdout.strip() == "[[3.0, 3.0], [3.0, 3.0]]"
        stored.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")})
    assert stored[0] and stored[0] == stored[1]
