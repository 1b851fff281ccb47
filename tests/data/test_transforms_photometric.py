"""Photometric distortion against the standard library's colour arithmetic."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

from fmtlbench.data.transforms.photometric import photometric
from fmtlbench.data.transforms.pixel_passes import HUES, distort

BYTES = np.arange(256, dtype=np.uint8)


def colours():
    """Every combination of eighteen levels, greys and primaries among them."""
    levels = np.arange(0, 256, 15, dtype=np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(18, -1, 3).copy()


def distorted(image, before=BYTES, saturation=BYTES, shift=0, after=BYTES):
    hue = ((np.arange(HUES + 1) + shift) % HUES).astype(np.uint8)
    result = image.copy()
    distort(result, before, saturation, hue, after)
    return result


def by_hand(image, factor=1.0, shift=0):
    """The same in floating point, with hue and saturation on whole steps; and where a step is a matter of rounding."""
    result, unsure = np.empty(image.shape), np.zeros(image.shape[:2], bool)
    for spot in np.ndindex(image.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*(image[spot] / 255))
        unsure[spot] = any(abs(step % 1 - 0.5) < 1e-3 for step in (hue * HUES, saturation * 255))
        hue = ((np.floor(hue * HUES + 0.5) % HUES + shift) % HUES) / HUES
        saturation = min(255, int(np.floor(saturation * 255 + 0.5) * factor)) / 255
        result[spot] = colorsys.hsv_to_rgb(hue, saturation, value)
    return result * 255, unsure


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0), (0.5, 0), (1.5, 0), (1.0, 17), (1.0, -18), (1.3, 90)])
def test_hue_and_saturation(factor, shift):
    image = colours()
    table = np.clip(BYTES * np.float64(factor), 0, 255).astype(np.uint8)
    expected, unsure = by_hand(image, factor, shift)
    away = np.abs(distorted(image, saturation=table, shift=shift) - expected)
    assert unsure.mean() < 0.2 and away[~unsure].max() <= 0.51  # nothing but the last rounding


def test_identity_tables_change_little_and_greys_not_at_all():
    image = colours()
    assert np.abs(distorted(image).astype(int) - image).max() <= 4  # hue has only 180 steps
    greys = np.repeat(BYTES[None, :, None], 3, 2).copy()
    assert np.array_equal(distorted(greys), greys)
    assert np.array_equal(distorted(greys, shift=50), greys)


def test_tables_before_and_after():
    greys = np.repeat(BYTES[None, :, None], 3, 2).copy()
    darker, inverse = BYTES // 2, BYTES[::-1].copy()
    assert np.array_equal(distorted(greys, before=darker)[0, :, 0], BYTES // 2)
    assert np.array_equal(distorted(greys, before=darker, after=inverse)[0, :, 1], 255 - BYTES // 2)


def test_every_step_happens_in_about_half_of_the_images():
    greys = np.repeat(BYTES[None, :, None], 3, 2).copy()
    red = np.zeros((1, 1, 3), np.uint8)
    red[..., 0] = 200
    red[..., 1:] = 100
    changed = {"value": 0, "hue": 0}
    for seed in range(400):
        one, two = greys.copy(), red.copy()
        photometric(one, np.random.default_rng(seed))
        photometric(two, np.random.default_rng(seed))
        changed["value"] += not np.array_equal(one, greys)
        _, low, high = sorted(two[0, 0].tolist(), reverse=True)
        changed["hue"] += low != high
    # neither brightness nor contrast: a quarter; a shift of zero or clipped to black or white: a little
    assert 260 < changed["value"] < 340
    assert 150 < changed["hue"] < 230


def test_brightness_and_contrast_stay_in_range():
    middle = np.full((1, 1, 3), 128, np.uint8)
    seen = []
    for seed in range(500):
        image = middle.copy()
        photometric(image, np.random.default_rng(seed))
        seen.append(int(image[0, 0, 0]))
    assert min(seen) >= (128 - 33) * 0.5 - 1 and max(seen) <= (128 + 32) * 1.5
    assert min(seen) < 70 and max(seen) > 190
