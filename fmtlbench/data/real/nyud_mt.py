"""NYUD-v2 in the older layout of `NYUD_MT/`: JPEG images; edges, normals and depth as .npy."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...metrics._folders import FAINT
from .dataset import Files
from .files import DamagedFileError, Shape, nearest_resize, read_floats, read_npy
from .nyud import NyudDataset, class_numbers, metres

LONGEST = 1.05  # a unit vector in half precision, and some rounding on the way there


class NyudMtDataset(NyudDataset):
    """The same images and labels as `NYUDv2/`, in other files.

    Its public reader resamples a label whose resolution differs from its image's; so does this one, always to the
    nearest pixel (the public one interpolates normals, which shortens them where surfaces meet).
    """

    archive = "NYUD_MT"
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
        x, y, z = np.moveaxis(normals, -1, 0)
        squared = x * x + y * y + z * z
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
