"""The colours of labels and predictions, the same in contact sheets, prediction files and panels."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Any

import numpy as np

DEPTH_COLOURS = "viridis_r"
UNLABELLED = "#9aa0a6"
BACKGROUND = (0.86, 0.86, 0.86)  # it should not look like a thing
IGNORED = (0.0, 0.0, 0.0)
VOC_CLASSES, VOC_VOID = 21, (224, 224, 192)


def palette(count: int) -> np.ndarray:
    """Return `count` colours that neighbours in the list tell apart, [count, 3] in [0, 1]."""
    colours = []
    for k in range(count):
        hue = (0.08 + k * 0.61803398875) % 1.0
        colours.append(colorsys.hsv_to_rgb(hue, (0.85, 0.55, 0.7)[k % 3], (0.88, 0.95, 0.62)[k % 3]))
    return np.array(colours)


def voc_palette(count: int) -> np.ndarray:
    """Return PASCAL VOC's colours, [count, 3] in [0, 1]: the bits of the class number in threes, highest first."""
    numbers = np.arange(count)
    colours = np.zeros((count, 3), int)
    for bit in range(8):
        for channel in range(3):
            colours[:, channel] |= (numbers >> (3 * bit + channel) & 1) << (7 - bit)
    return colours / 255


def class_colours(count: int, names: Sequence[str] | None = None) -> np.ndarray:
    """Return a row per class and a last one for ignored pixels, [count + 1, 3] in [0, 1].

    Twenty-one classes are VOC's and get its colours; others get `palette`'s, with a pale background if they have one.
    """
    if count == VOC_CLASSES:
        return np.vstack([voc_palette(count), np.array(VOC_VOID) / 255])
    colours = palette(count)
    if names and names[0] == "background":
        colours[0] = BACKGROUND
    return np.vstack([colours, IGNORED])


def blend_depth(metres: np.ndarray, deepest: float) -> np.ndarray:
    """Return depth in colours, [H, W, 3] uint8."""
    from matplotlib import colormaps

    return colormaps[DEPTH_COLOURS](np.clip(metres / deepest, 0, 1), bytes=True)[..., :3]


def blend(ends: tuple[str, str]) -> Any:
    """Return the colour map between two colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("", ends).with_extremes(bad=UNLABELLED)
