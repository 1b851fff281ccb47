"""NYUD-v2 in the two layouts it is distributed in: `NYUDv2/` and the older `NYUD_MT/`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from ...metrics.rmse import MAX_DEPTH
from ...tasks import FAINT
from ._archive import ArchiveDataset, Files
from ._class_names import NYUD_40
from ._files import (
    DamagedFileError,
    Shape,
    fitting,
    nearest_resize,
    read_classes,
    read_colour,
    read_floats,
    read_grey,
    read_npy,
)
from ._info import OfficialList
from ._registry import DATASETS

# The coordinates of a normal that the 256 byte values stand for.
VALUES = np.arange(256, dtype=np.float32) * np.float32(2 / 255) - np.float32(1)

LONGEST = 1.05  # the largest accepted length, since unit vectors were rounded to half precision


class Nyud(ArchiveDataset):
    """795 training and 654 test images of rooms."""

    title = "NYUD-v2"
    description = "NYUD-v2, 795 train / 654 test images of rooms (NYUDv2/ or NYUD_MT/ below --data-root)"
    domain = "nyud"
    tasks = ("semseg", "depth", "normals", "edge")
    class_names: ClassVar = {"semseg": NYUD_40}
    # Label-change detection is applied once more to the boundary maps, as for the published scores.
    metric_options: ClassVar = {"odsf": {"max_dist": 0.011, "gt": "seism"}}
    official: ClassVar = {
        "train": OfficialList(795, "c4e0b26c6b243abddb903ff779dfdfa6f791f6d84e13ce02a84eee4bdf5e73a6"),
        "test": OfficialList(654, "688b6e8adffa10c9a38f0c07c5aac45b968349552d005194a6fca041f40b5a11"),
    }
    twofold = ("edge",)
    lists: ClassVar = {"train": "gt_sets/train.txt", "test": "gt_sets/val.txt"}

    def prepare_workers(self) -> None:
        from ._edges import compile_loops

        compile_loops()


class NyudMtDataset(Nyud):
    """The same images and labels as `NYUDv2/`, in other files.

    A label whose resolution differs from its image's is resampled, as in the public reader, but always to the nearest
    pixel (the public one interpolates normals, which shortens them where surfaces meet).
    """

    archive = "NYUD_MT"
    marks = ("gt_sets", "images/*.jpg")
    distributed = "the older NYUD_MT.tgz of SimonVandenhende/Multi-Task-Learning-PyTorch"
    files: ClassVar = {
        "image": Files(("images",), ".jpg"),
        "semseg": Files(("segmentation",), ".png"),
        "depth": Files(("depth",), ".npy"),
        "normals": Files(("normals",), ".npy"),
        "edge": Files(("edge",), ".npy"),
    }

    def read_semseg(self, index: int, shape: Shape) -> np.ndarray:
        path = self.path(index, "semseg")
        return nearest_resize(path, class_numbers(path, None), shape)

    def read_depth(self, index: int, shape: Shape) -> np.ndarray:
        path = self.path(index, "depth")
        return nearest_resize(path, metres(path), shape)

    def read_normals(self, index: int, shape: Shape) -> np.ndarray:
        path = self.path(index, "normals")
        normals = read_floats(path, channels=3)
        squared = _squared_lengths(normals)
        longest = float(np.sqrt(squared.max(initial=0)))
        if longest > LONGEST:
            raise DamagedFileError(path, f"a normal of length {longest:.4g}, expected unit vectors")
        np.copyto(normals, 0, where=(squared < FAINT**2)[..., None])
        return nearest_resize(path, normals, shape)

    def read_edge(self, index: int, shape: Shape) -> np.ndarray:
        path = self.path(index, "edge")
        edges = read_npy(path)
        if edges.dtype.kind not in "buif":
            raise DamagedFileError(path, f"values of type {edges.dtype}, expected an edge map of 0 and 1")
        wrong = (edges != 0) & (edges != 1)
        if wrong.any():
            raise DamagedFileError(path, f"value {edges[wrong][0]}, expected an edge map of 0 and 1")
        return nearest_resize(path, edges.astype(np.uint8), shape)


@DATASETS.register("nyud")
class NyudDataset(Nyud):
    """The layout of `NYUDv2/`: labels as pictures, depth as .npy."""

    archive = "NYUDv2"
    marks = ("gt_sets", "images/*.png")
    distributed = (
        "NYUDv2.tar.gz, which the GitHub projects brdav/atrc and prismformore/Multi-Task-Transformer distribute"
    )
    other_layouts = (NyudMtDataset,)
    files: ClassVar = {
        "image": Files(("images",), ".png"),
        "semseg": Files(("segmentation",), ".png"),
        "depth": Files(("depth",), ".npy"),
        "normals": Files(("normals",), ".png"),
        "edge": Files(("edge",), ".png"),
    }

    def read_semseg(self, index: int, shape: Shape) -> np.ndarray:
        return class_numbers(self.path(index, "semseg"), shape)

    def read_depth(self, index: int, shape: Shape) -> np.ndarray:
        path = self.path(index, "depth")
        return fitting(path, metres(path), shape)

    def read_normals(self, index: int, shape: Shape) -> np.ndarray:
        return decode_normals(read_colour(self.path(index, "normals"), shape))

    def read_edge(self, index: int, shape: Shape) -> np.ndarray:
        """Read the boundaries as drawn; published scores apply label-change detection to them again."""
        path = self.path(index, "edge")
        edges = read_grey(path, shape)
        wrong = (edges != 0) & (edges != 255)
        if wrong.any():
            raise DamagedFileError(path, f"value {edges[wrong][0]}, expected an edge map of 0 and 255")
        return (edges != 0).astype(np.uint8)


def class_numbers(path: Path, shape: Shape | None) -> np.ndarray:
    """Read class numbers 0 to 39, 255 for unlabelled pixels, from a file that has 1 to 40 and 0."""
    labels = read_classes(path, shape, highest=40, ignore=False)
    return labels - np.uint8(1)  # 0 wraps around to 255, which is IGNORE


def metres(path: Path) -> np.ndarray:
    """Read depth in metres, 0 where the sensor measured nothing."""
    depth = read_floats(path)
    low, high = depth.min(initial=0), depth.max(initial=0)
    if low < 0:
        raise DamagedFileError(path, f"a depth of {low:g} m, expected 0 (unknown) or more")
    if high >= MAX_DEPTH:
        raise DamagedFileError(path, f"a depth of {high:g}, expected metres below {MAX_DEPTH:g}")
    return depth


def decode_normals(pixels: np.ndarray) -> np.ndarray:
    """Return unit vectors, up to rounding, from their 8-bit codes (n + 1) · 127.5."""
    normals = VALUES[pixels]
    normals[_squared_lengths(normals) < FAINT**2] = 0
    return normals


def _squared_lengths(vectors: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(vectors, -1, 0)
    return x * x + y * y + z * z
