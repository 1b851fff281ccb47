"""MaT-FL's transforms: images turned, magnified in their frame and stretched to a size, and labels with them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from fake_real import FakeReal, position_sample

from fmtlbench.data import batches
from fmtlbench.data.amounts import Amounts
from fmtlbench.data.cache import build_cache, open_cached
from fmtlbench.data.transforms import COLOUR, test_transform, train_transform
from fmtlbench.data.transforms.geometry import Turn, centred, draw_scale, resized
from fmtlbench.data.views import View

scored = test_transform
del test_transform  # pytest would take it for a test
CPU = torch.device("cpu")
MATFL = ("flip", "rotate", "scale")
PASCAL, NYUD = Amounts((0.75, 1.25), 20.0), Amounts((1.0, 1.2, 1.5))
LABELS = ("semseg", "human_parts", "sal", "edge", "normals", "depth")


def rng(seed=0):
    return np.random.default_rng(seed)


def turned(shape, degrees, zoom=1.0):
    """A window that turns images of this shape in their own frame."""
    return replace(resized(shape, shape), turn=Turn(degrees, zoom))


# -- stretching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(11, 20), (30, 17), (8, 40)])
def test_stretched_labels_are_an_index_formula(size):
    sample = position_sample(15, 17)
    result = scored(sample, size, "fixed")
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, (15, 17)))
    for key in LABELS:
        assert np.array_equal(result[key], sample[key][rows[:, None], columns])
        assert result[key].dtype == sample[key].dtype


def test_an_image_of_the_size_is_left_as_it_is():
    sample = position_sample(14, 18)
    still = Amounts((1.0, 1.0, 1.0), 0.0)
    for result in (
        scored(sample, (14, 18), "fixed"),
        train_transform(sample, (14, 18), ("rotate", "scale"), rng(), still, "fixed"),
        train_transform(sample, (14, 18), ("rotate", "scale"), rng(), still),
    ):
        assert all(np.array_equal(result[key], sample[key]) for key in sample)


def test_nothing_is_padded_and_nothing_cut():
    result = scored(position_sample(15, 40), (16, 16), "fixed")
    assert not (result["semseg"] == 255).any() and (result["depth"] > 0).all()
    assert result["human_parts"].max() >= 37


def keys_cubic(values, where):
    """One axis of bicubic interpolation, by the textbook: beyond the border the last value goes on."""

    def weight(d, a=-0.75):
        d = abs(d)
        return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else a * (((d - 5) * d + 8) * d - 4) if d < 2 else 0.0

    out = []
    for x in where:
        taps = range(math.floor(x) - 1, math.floor(x) + 3)
        out.append(sum(weight(x - t) * values[min(max(t, 0), len(values) - 1)] for t in taps))
    return np.array(out)


def test_stretched_images_are_bicubic():
    image = rng(3).integers(0, 256, (9, 13, 3)).astype(np.uint8)
    result = scored({"image": image}, (16, 8), "fixed")["image"]
    rows, columns = ((np.arange(new) + 0.5) * old / new - 0.5 for new, old in ((16, 9), (8, 13)))
    expected = np.apply_along_axis(
        keys_cubic, 1, np.apply_along_axis(keys_cubic, 0, image.astype(float), rows), columns
    )
    np.testing.assert_allclose(result, np.clip(expected, 0, 255), atol=1e-3)
    assert (expected < 0).any() and result.min() >= 0 and result.max() <= 255  # bytes would wrap around


# -- turning -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quarters", [1, 2, 3, -1])
def test_quarter_turns_are_numpys(quarters):
    sample = position_sample(16, 16)
    window = turned((16, 16), 90.0 * quarters)
    for key in ("semseg", "human_parts", "sal", "edge", "depth"):
        assert np.array_equal(window.label(sample[key], 255), np.rot90(sample[key], quarters))
    np.testing.assert_allclose(
        window.image(sample["image"], np.float32), np.rot90(sample["image"], quarters), atol=1e-2
    )


def test_a_turn_without_angle_is_none():
    sample = position_sample(16, 21)
    assert turned((16, 21), 0.0).straight
    for window in (turned((16, 21), 0.0), turned((16, 21), 1e-12)):
        for key in LABELS:
            assert np.array_equal(window.label(sample[key], 255), sample[key])


def bump(centre, shape, radius=30.0):
    """The normals of a ball: x to the right, y down."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    vectors = np.stack([x - centre[1], y - centre[0], np.full(shape, radius)], -1)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("degrees", [-20.0, 7.5, 90.0, 133.0])
def test_a_turned_scene_has_turned_normals(degrees):
    shape, centre = (61, 81), (18.0, 55.0)
    middle = np.array([30.0, 40.0])
    angle = math.radians(degrees)
    y, x = np.array(centre) - middle
    new = middle + np.array([y * math.cos(angle) - x * math.sin(angle), x * math.cos(angle) + y * math.sin(angle)])
    window = turned(shape, degrees)
    result = window.label(bump(centre, shape), 0.0)
    window.turn.vectors(result)
    there = window.pixels >= 0
    drawn = bump(new, shape)
    assert there.mean() > 0.4 and np.abs(result - drawn)[there].max() < 1.01 * math.hypot(0.5, 0.5) / 30.0
    assert (result[~there] == 0).all()
    assert np.abs(window.label(bump(centre, shape), 0.0) - drawn)[there].max() > 0.1  # positions alone will not do


def test_the_normals_of_a_plane_turn_exactly_and_keep_their_length():
    plane = np.array([0.48, -0.6, 0.64], np.float32)
    normals = np.tile(plane, (20, 30, 1))
    for seed in range(8):
        sample = {"image": np.zeros((20, 30, 3), np.uint8), "normals": normals}
        result = train_transform(sample, (24, 24), ("rotate",), rng(seed), PASCAL, "fixed")["normals"]
        known = (result != 0).any(-1)
        angle = math.radians(rng(seed).uniform(-20, 20))
        expected = [
            0.48 * math.cos(angle) - 0.6 * math.sin(angle), -0.6 * math.cos(angle) - 0.48 * math.sin(angle), 0.64
        ]  # fmt: skip
        np.testing.assert_allclose(result[known], np.tile(expected, (known.sum(), 1)), atol=1e-6)
    assert (normals == plane).all()  # the given arrays are left alone


def test_what_a_turn_brings_in_from_outside_is_ignored():
    result = train_transform(position_sample(40, 40), (40, 40), ("rotate",), rng(5), PASCAL, "fixed")
    outside = result["depth"] == 0
    assert 0.02 < outside.mean() < 0.3 and outside[0, 0] and not outside[20, 20]
    for key in ("semseg", "human_parts", "sal", "edge"):
        assert (result[key][outside] == 255).all() and not (result[key][~outside] == 255).any()
    assert (result["normals"][outside] == 0).all() and (result["image"][outside] == COLOUR).all()


@pytest.mark.parametrize("resize", ["fixed", "none"])
@pytest.mark.parametrize("amounts", [PASCAL, NYUD])
def test_image_and_labels_stay_together(amounts, resize):
    """All labels of a pixel come from one source pixel, and the image shows that pixel there."""
    sample = position_sample(60, 80)
    turns = set()
    for seed in range(20):
        result = train_transform(sample, (64, 64), MATFL, rng(seed), amounts, resize)
        kept = result["depth"] > 0
        source = result["semseg"][kept], result["human_parts"][kept]
        for key in ("sal", "edge"):
            assert np.array_equal(result[key][kept], sample[key][source])
        ratio = result["depth"][kept] / sample["depth"][source]
        assert np.ptp(ratio) < 1e-5
        scale = 1 / ratio[0]
        assert 0.74 < scale < 1.26 if amounts is PASCAL else np.abs(np.array(NYUD.scales) - scale).min() < 1e-3
        away = np.abs(result["image"][kept][:, :2] / 2 - np.stack(source, -1))
        # labels are taken at corners, not centres; near the border the image overshoots
        assert np.median(away) < 0.8 and np.quantile(away, 0.99) < 1.6
        lengths = np.linalg.norm(result["normals"][kept], axis=-1)
        np.testing.assert_allclose(lengths, np.linalg.norm(sample["normals"][source], axis=-1), atol=1e-5)
        turns.add(float(np.round(np.abs(result["normals"][kept] - sample["normals"][source]).max(), 4)))
    assert len(turns) > (15 if amounts is PASCAL else 1)


def test_magnified_in_its_frame():
    sample = position_sample(40, 60)
    twice = train_transform(sample, (40, 60), ("scale",), rng(), Amounts((2.0,)), "fixed")
    middle = sample["semseg"][10:30, 15:45]
    assert np.array_equal(twice["semseg"], middle.repeat(2, 0).repeat(2, 1))
    np.testing.assert_allclose(twice["depth"], sample["depth"][10:30, 15:45].repeat(2, 0).repeat(2, 1) / 2)
    half = train_transform(sample, (40, 60), ("scale",), rng(), Amounts((0.5,)), "fixed")
    assert (half["semseg"] != 255).sum() == 20 * 30 and half["image"][0, 0] == pytest.approx(COLOUR)


def test_scales_are_a_range_or_a_choice():
    drawn = [draw_scale(rng(seed), (0.75, 1.25)) for seed in range(200)]
    assert 0.75 <= min(drawn) < 0.77 and 1.23 < max(drawn) <= 1.25
    assert {draw_scale(rng(seed), (1.0, 1.2, 1.5)) for seed in range(50)} == {1.0, 1.2, 1.5}
    assert draw_scale(rng(), (0.5,)) == 0.5


def test_turned_crops_are_judged_by_what_they_show():
    sample = position_sample(60, 80)
    result = train_transform(sample, (24, 24), ("rotate", "crop", "photometric"), rng(2), Amounts(degrees=45.0))
    kept = result["depth"] > 0
    assert result["semseg"].shape == (24, 24) and kept.any()
    assert np.array_equal(result["sal"][kept], sample["sal"][result["semseg"][kept], result["human_parts"][kept]])


def test_nothing_new_is_drawn_where_it_is_not_asked_for():
    sample = position_sample(40, 50)
    for augment in (("scale", "crop", "flip", "photometric"), ("flip",)):
        usual = train_transform(sample, (32, 32), augment, rng(4))
        same = train_transform(sample, (32, 32), augment, rng(4), Amounts(degrees=20.0))
        assert all(np.array_equal(usual[key], same[key]) for key in usual)


def test_a_window_that_pads_is_the_old_one():
    assert centred((5, 8), (8, 13)).turn is None and resized((5, 8), (8, 13)).turn == Turn()


# -- archive, cache and workers ----------------------------------------------------------------------------------------


def test_cache_and_workers_move_no_number(tmp_path):
    dataset = FakeReal(8)
    dataset.resize = "fixed"
    build_cache(dataset, tmp_path)
    cached = open_cached(dataset, tmp_path)
    assert cached is not None and cached.resize == "fixed"

    def epoch(source, workers):
        view = View(source, np.arange(8))
        trained = batches.train_batches(view, LABELS, 3, rng(1), MATFL, CPU, workers, PASCAL)
        return [*trained, *batches.test_batches(view, LABELS, 3, CPU, workers)]

    one = epoch(dataset, 0)
    assert len(one) == 5 and one[0]["image"].shape == (3, 3, 24, 32)
    for other in (epoch(cached, 0), epoch(cached, 2), epoch(dataset, 1)):
        assert all(torch.equal(a[key], b[key]) for a, b in zip(one, other, strict=True) for key in a)
