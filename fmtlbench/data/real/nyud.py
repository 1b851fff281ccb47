"""NYUD-v2 in the layout of `NYUDv2/`: labels as pictures, depth as .npy."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from ...metrics._folders import FAINT
from ...metrics.rmse import MAX_DEPTH
from .dataset import Files, RealDataset
from .files import DamagedFileError, Shape, fitting, read_classes, read_colour, read_floats, read_grey
from .kernels import vectors

# What the 256 codes of a normal's coordinate mean.
VALUES = np.arange(256, dtype=np.float32) * np.float32(2 / 255) - np.float32(1)


class NyudDataset(RealDataset):
    """795 training and 654 test images of rooms."""

    domain, archive = "nyud", "NYUDv2"
    lists: ClassVar = {"train": "gt_sets/train.txt", "test": "gt_sets/val.txt"}
    files: ClassVar = {
        "image": Files(("images",), ".png"),
        "semseg": Files(("segmentation",), ".png"),
        "depth": Files(("depth",), ".npy"),
        "normals": Files(("normals",), ".png"),
        "edge": Files(("edge",), ".png"),
    }
    tasks_of_archive = ("semseg", "depth", "normals", "edge")

    def read_semseg(self, index: int, shape: Shape) -> np.ndarray:
        return class_numbers(self.path(index, "semseg"), shape)

    def read_depth(self, index: int, shape: Shape) -> np.ndarray:
        path = self.path(index, "depth")
        return fitting(path, metres(path), shape)

    def read_normals(self, index: int, shape: Shape) -> np.ndarray:
        return decode_normals(read_colour(self.path(index, "normals"), shape))

    def read_edge(self, index: int, shape: Shape) -> np.ndarray:
        """Boundaries as drawn. Scoring sends them through label-change detection again, as the published route does."""
        path = self.path(index, "edge")
        edges = read_grey(path, shape)
        wrong = (edges != 0) & (edges != 255)
        if wrong.any():
            raise DamagedFileError(path, f"value {edges[wrong][0]}, expected an edge map of 0 and 255")
        return (edges != 0).astype(np.uint8)


def class_numbers(path: Path, shape: Shape | None) -> np.ndarray:
    """The archive numbers its classes from 1 and leaves 0 for pixels nobody labelled."""
    labels = read_classes(path, shape, highest=40, ignore=False)
    return labels - np.uint8(1)  # and 0 becomes 255, which is IGNORE


def metres(path: Path) -> np.ndarray:
    """Depth in metres, 0 where the sensor saw nothing."""
    depth = read_floats(path)
    low, high = depth.min(initial=0), depth.max(initial=0)
    if low < 0:
        raise DamagedFileError(path, f"a depth of {low:g} m, expected 0 (unknown) or more")
    if high >= MAX_DEPTH:
        raise DamagedFileError(path, f"a depth of {high:g}, expected metres below {MAX_DEPTH:g}")
    return depth


def decode_normals(pixels: np.ndarray) -> np.ndarray:
    """8-bit (n + 1) · 127.5 → vectors of length 1, to within their rounding."""
    normals = np.empty(pixels.shape, np.float32)
    vectors(pixels, VALUES, np.float32(FAINT**2), normals)
    return normals
