"""odsF: behaviour under shifts, padding, workers; kernels against independent implementations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from skimage.morphology import thin

from fmtlbench.metrics import MetricError, OdsF
from fmtlbench.metrics.edges import curve, image
from fmtlbench.metrics.edges import sweeps as kernels


def lines(rows=90, cols=110):
    """Thin, well separated lines: what thinning leaves as it is."""
    edges = np.zeros((rows, cols), np.uint8)
    edges[30, 20:90] = edges[60, 20:90] = 1
    return edges


def soft(rng, shape, sigma=1.5):
    field = ndimage.gaussian_filter(rng.random(shape), sigma)
    return ((field - field.min()) / np.ptp(field)).astype(np.float32)


def score(prediction, target, **options):
    meter = OdsF(**options)
    meter.update(np.asarray(prediction, np.float32)[None], np.asarray(target)[None])
    return meter


@pytest.mark.parametrize("shift", [(0, 0), (1, 0), (0, 1), (1, 1), (-1, 1), (0, -2), (2, 0)])
def test_a_shift_within_the_tolerance_costs_nothing_and_a_larger_one_does(shift):
    edges = lines()
    moved = np.roll(edges, shift, (0, 1))
    diagonal, length = np.hypot(*edges.shape), np.hypot(*shift)
    near = score(moved, edges, gt="plain", nms=False, max_dist=(length + 0.01) / diagonal).compute()
    assert near.value == near.extras["oisF"] == 100
    if length:
        tight = score(moved, edges, gt="plain", nms=False, max_dist=(length - 0.01) / diagonal).compute()
        assert tight.value < 100


def test_a_shift_beyond_the_tolerance_of_everything_gives_zero():
    assert score(np.roll(lines(), 10, 0), lines(), gt="plain", nms=False).compute().value == 0


def test_ridges_along_the_edges_score_full_marks_through_nms():
    edges = lines()
    blurred = ndimage.gaussian_filter(edges.astype(float), 1.5)
    result = score(blurred / blurred.max(), edges, gt="plain", max_dist=0.03).compute()
    assert result.value > 95


def test_the_seism_label_route_shifts_by_half_a_pixel_only():
    edges = lines()
    assert score(edges, edges, gt="seism", nms=False, max_dist=0.011).compute().value > 95


def test_the_number_of_workers_changes_nothing():
    rng = np.random.default_rng(0)
    predictions = np.stack([soft(rng, (40, 48)) for _ in range(5)])
    targets = (rng.random((5, 40, 48)) < 0.08).astype(np.int64)
    results, states = [], []
    for jobs in (1, 2):
        meter = OdsF(jobs=jobs, max_dist=0.03)
        meter.update(predictions[:3], targets[:3])
        meter.update(predictions[3:], targets[3:])
        results.append(meter.compute())
        states.append({key: value.tolist() for key, value in meter.state().items()})
        meter.close()
    assert results[0] == results[1] and results[0].value > 0
    assert states[0] == states[1]


def test_padding_with_ignore_scores_as_the_image_itself():
    rng = np.random.default_rng(1)
    prediction, target = soft(rng, (50, 60)), (rng.random((50, 60)) < 0.05).astype(np.int64)
    padded = np.pad(prediction, ((3, 11), (0, 7)), constant_values=0.9)
    labels = np.pad(target, ((3, 11), (0, 7)), constant_values=255)
    assert score(padded, labels).compute() == score(prediction, target).compute()


def test_ignored_pixels_inside_count_neither_as_predicted_nor_as_labelled():
    edges = lines().astype(np.int64)
    target = edges.copy()
    target[50:70, 10:100] = 255  # hides the second line, which is predicted
    meter = score(edges, target, gt="plain", nms=False)
    assert meter.compute().value == 100
    assert meter.state()["actual"] == edges[30].sum()


def test_a_single_edge_pixel_is_found_and_an_empty_prediction_scores_zero():
    target = np.zeros((20, 20), np.int64)
    target[10, 10] = 1
    assert score(target, target, gt="plain", nms=False).compute().value == 100
    empty = score(np.zeros((20, 20)), target, gt="plain")
    assert empty.compute().value == 0
    assert empty.curve()["precision"].tolist() == [1.0] * 99


def test_curve_agrees_with_the_result():
    rng = np.random.default_rng(2)
    meter = score(soft(rng, (40, 40)), rng.random((40, 40)) < 0.1, max_dist=0.03)
    curve_, result = meter.curve(), meter.compute()
    assert [len(curve_[key]) for key in ("threshold", "precision", "recall", "F")] == [99] * 4
    best = curve_["F"].argmax()
    assert result.value == pytest.approx(100 * curve_["F"][best])
    assert result.extras["threshold"] == curve_["threshold"][best]
    assert curve_["threshold"][[0, -1]].tolist() == [0.01, 0.99]


def test_too_small_an_image_is_refused():
    with pytest.raises(MetricError, match="1×5 pixels"):
        score(np.zeros((1, 5)), np.zeros((1, 5), int))


def test_half_precision_probabilities_are_accepted():
    meter = OdsF(gt="plain", nms=False)
    meter.update(torch.eye(16).half()[None], torch.eye(16)[None])
    assert meter.compute().value == 100


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), density=st.floats(0.05, 0.98), rows=st.integers(1, 40), cols=st.integers(1, 40))
def test_thinning_equals_scikit_image(seed, density, rows, cols):
    rng = np.random.default_rng(seed)
    noise = rng.random((rows, cols))
    for field in (noise, ndimage.gaussian_filter(noise, 1.5)):
        binary = field <= np.quantile(field, density)
        np.testing.assert_array_equal(image.thin(binary.astype(np.uint8)), thin(binary))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    radius=st.sampled_from([0.0, 0.7, 1.0, 1.5, 2.3, 4.0, 90.0]),
    truth=st.floats(0, 0.3),
)
def test_the_sweep_equals_thin_and_match_at_every_threshold(seed, radius, truth):
    """Against scikit-image and scipy, one threshold at a time, although ours carries matches over."""
    rng = np.random.default_rng(seed)
    strength = (soft(rng, (18, 23), 1.0) * 255).astype(np.uint8)
    edges = image.thin((rng.random(strength.shape) < truth).astype(np.uint8))
    matched, predicted = kernels.sweep(strength, edges, curve.levels(20), curve.chord(radius), thinning=True)
    for k in range(20):
        binary = thin(strength / 255 >= (k + 1) / 21)
        assert predicted[k] == binary.sum()
        a, b = np.argwhere(binary), np.argwhere(edges)
        near = np.linalg.norm(a[:, None] - b[None], axis=2) <= radius
        expected = (maximum_bipartite_matching(csr_matrix(near)) >= 0).sum() if near.size else 0
        assert matched[k] == expected


@pytest.mark.parametrize("radius", [0, 1, 2**0.5, 5**0.5, 13**0.5, 4.99, 5, 7.73, 100.2])
def test_the_disc_holds_exactly_the_pixels_within_the_radius(radius):
    half = curve.chord(radius)
    for dy in range(len(half) + 1):
        widths = [dx for dx in range(int(radius) + 2) if np.sqrt(dx * dx + dy * dy) <= radius]
        assert widths == (list(range(half[dy] + 1)) if dy < len(half) else [])


def test_matching_finds_long_alternating_paths():
    """Every greedy choice but one has to be undone along the whole line."""
    truth, guess = np.zeros((2, 3, 400), np.uint8)
    truth[1, 10:390], guess[1, 12:392] = 1, 1
    for axis in (0, 1):
        for flip in (False, True):
            p, g = (np.flip(a, 1) if flip else a for a in (guess, truth))
            p, g = (np.ascontiguousarray(a.T if axis else a) for a in (p, g))
            assert kernels.sweep(p, g, np.ones(1, np.int32), curve.chord(2.0), thinning=False)[0] == [380]
            assert kernels.sweep(p, g, np.ones(1, np.int32), curve.chord(1.0), thinning=False)[0] == [379]


def test_levels_are_the_smallest_8_bit_values_that_pass():
    for n in (1, 9, 99, 255):
        for level, t in zip(curve.levels(n), np.arange(1, n + 1) / (n + 1)):
            assert level / 255 >= t > (level - 1) / 255


def test_a_ridge_with_no_slope_across_is_upright_not_a_division_by_zero():
    from fmtlbench.metrics.edges.nms import angle_of

    zero, one = np.float32(0), np.float32(1)
    assert angle_of(one, zero) == angle_of(-one, zero) == np.float32(np.pi / 2)
    assert angle_of(zero, zero) == 0
    assert angle_of(one, one) == np.float32(np.pi / 4)
    assert angle_of(-one, one) == pytest.approx(3 * np.pi / 4, rel=1e-6)
