"""The colours of labels and predictions, the same in contact sheets, prediction files and panels."""

from __future__ import annotations

import colorsys

import numpy as np

from ..tasks import IGNORE

EDGE_COLOURS = ("#ffffff", "#16324f")
SALIENCY_COLOURS = ("#20242c", "#ffc83d")
DEPTH_COLOURS = "viridis_r"
UNLABELLED = "#9aa0a6"
BACKGROUND = (0.86, 0.86, 0.86)  # it should not look like a thing
IGNORED = (0.0, 0.0, 0.0)
VOC_CLASSES, VOC_VOID = 21, (224, 224, 192)
TITLES = {
    "image": "image",
    "semseg": "semantic segmentation",
    "human_parts": "human parts",
    "sal": "saliency",
    "normals": "surface normals",
    "edge": "edges",
    "depth": "depth (m)",
}


def palette(count: int) -> np.ndarray:
    """`count` colours that neighbours in the list tell apart, [count, 3] in [0, 1]."""
    colours = []
    for k in range(count):
        hue = (0.08 + k * 0.61803398875) % 1.0
        colours.append(colorsys.hsv_to_rgb(hue, (0.85, 0.55, 0.7)[k % 3], (0.88, 0.95, 0.62)[k % 3]))
    return np.array(colours)


def voc_palette(count: int) -> np.ndarray:
    """PASCAL VOC's colours, [count, 3] in [0, 1]: the bits of the class number in threes, highest first."""
    numbers = np.arange(count)
    colours = np.zeros((count, 3), int)
    for bit in range(8):
        for channel in range(3):
            colours[:, channel] |= (numbers >> (3 * bit + channel) & 1) << (7 - bit)
    return colours / 255


def class_colours(count: int, names: tuple[str, ...] | None = None) -> np.ndarray:
    """A row per class and a last one for ignored pixels, [count + 1, 3] in [0, 1].

    Twenty-one classes are VOC's and get its colours; others get `palette`'s, with a pale background if they have one.
    """
    if count == VOC_CLASSES:
        return np.vstack([voc_palette(count), np.array(VOC_VOID) / 255])
    colours = palette(count)
    if names and names[0] == "background":
        colours[0] = BACKGROUND
    return np.vstack([colours, IGNORED])


def draw(axis, key: str, value: np.ndarray, tables: dict[str, np.ndarray], deepest: float) -> None:
    """One image, label or prediction on matplotlib axes.

    Args:
        axis: where.
        key: 'image' or a task.
        value: as a dataset's item; of sal and edge also probabilities.
        tables: `class_colours` of the tasks that have classes.
        deepest: the far end of the colours of depth, in metres.
    """
    if key in tables:
        axis.imshow(tables[key][np.minimum(value, len(tables[key]) - 1)], interpolation="nearest")
    elif key == "normals":
        axis.imshow(np.clip((value + 1) / 2, 0, 1), interpolation="nearest")
    elif key == "depth":
        shown = np.ma.masked_equal(value, 0.0)
        axis.imshow(shown, cmap=DEPTH_COLOURS, vmin=0.0, vmax=deepest, interpolation="nearest")
    elif key in ("edge", "sal"):
        shown = _thicker(value) if key == "edge" else value
        colours = _between(EDGE_COLOURS if key == "edge" else SALIENCY_COLOURS)
        axis.imshow(np.ma.masked_equal(shown, IGNORE), cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    else:
        axis.imshow(value, interpolation="nearest")


def depth_picture(metres: np.ndarray, deepest: float) -> np.ndarray:
    """Depth in colours, [H, W, 3] uint8."""
    from matplotlib import colormaps

    return colormaps[DEPTH_COLOURS](np.clip(metres / deepest, 0, 1), bytes=True)[..., :3]


def _thicker(edges: np.ndarray) -> np.ndarray:
    """One-pixel lines of labels would be lost where a figure shows fewer pixels than there are."""
    if edges.shape[1] <= 128 or edges.dtype.kind == "f":
        return edges
    shown = edges.copy()
    shown[:, 1:] |= edges[:, :-1]
    shown[1:] |= shown[:-1]
    return shown


def _between(ends: tuple[str, str]):
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("", ends).with_extremes(bad=UNLABELLED)
