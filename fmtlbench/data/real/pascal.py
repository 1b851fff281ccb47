"""PASCAL-Context with the distilled labels of the multi-task literature, in the layout of `PASCALContext/`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from ...metrics._pascal import trusted_classes
from .dataset import Files, RealDataset
from .edges import scoring_edges, training_edges
from .files import DamagedFileError, Shape, fitting, read_classes, read_colour, read_grey, read_mat, read_numbers
from .kernels import clear_untrusted
from .nyud import decode_normals
from .people import images_with_people
from .person_parts import read_person_parts

CONTEXT_CLASSES = 459


class PascalDataset(RealDataset):
    """4998 training and 5105 test images."""

    domain, archive = "pascal", "PASCALContext"
    lists: ClassVar = {"train": "ImageSets/Context/train.txt", "test": "ImageSets/Context/val.txt"}
    files: ClassVar = {
        "image": Files(("JPEGImages",), ".jpg"),
        "semseg": Files(("semseg/VOC12", "semseg/pascal-context"), ".png"),
        "human_parts": Files(("human_parts",), ".mat"),
        "sal": Files(("sal_distill",), ".png"),
        "normals": Files(("normals_distill",), ".png"),
        "labelmap": Files(("pascal-context/trainval",), ".mat"),
    }
    tasks_of_archive = ("semseg", "human_parts", "sal", "normals", "edge")
    needs: ClassVar = {"edge": ("labelmap",), "normals": ("normals", "labelmap")}
    extra_files: ClassVar = {"normals": ("json/nyu_classes.json", "json/context_classes.json")}

    _kept: tuple[Path, np.ndarray] | None = None

    def sample(self, index: int, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        try:
            return super().sample(index, keys)
        finally:
            self._kept = None  # the file may be another one the next time

    def read_semseg(self, index: int, shape: Shape) -> np.ndarray:
        return read_classes(self.path(index, "semseg"), shape, highest=20, ignore=True)

    def read_human_parts(self, index: int, shape: Shape) -> np.ndarray:
        return read_person_parts(self.path(index, "human_parts"), shape)

    def read_sal(self, index: int, shape: Shape) -> np.ndarray:
        """Distilled maps may be soft: more than half is salient."""
        return (read_grey(self.path(index, "sal"), shape) > 127).astype(np.uint8)

    def read_edge(self, index: int, shape: Shape) -> np.ndarray:
        draw = scoring_edges if self.edges == "scoring" else training_edges
        return draw(self._segments(index, shape))

    def read_normals(self, index: int, shape: Shape) -> np.ndarray:
        """Distilled from a network that knows rooms: trusted only on the classes that NYUD-v2 has too."""
        normals = decode_normals(read_colour(self.path(index, "normals"), shape))
        clear_untrusted(normals, self._segments(index, shape), self._trusted)
        return normals

    def eligible(self, tasks: tuple[str, ...]) -> np.ndarray | None:
        """A client that does human parts alone uses only images with people, as in the public code."""
        if tuple(tasks) != ("human_parts",):
            return None
        paths = [self.path(index, "human_parts") for index in range(len(self))]
        return images_with_people(paths, self.digest_of("human_parts"), self.cache_dir, self.progress)

    def _segments(self, index: int, shape: Shape) -> np.ndarray:
        """The label map of the context classes, [H, W]; tasks of one sample share it."""
        path = self.path(index, "labelmap")
        kept = self._kept
        if kept is None or kept[0] != path:
            self._kept = kept = path, self._read_segments(path)
        return fitting(path, kept[1], shape)

    def _read_segments(self, path: Path) -> np.ndarray:
        segments = read_mat(path, "LabelMap")
        if segments.ndim != 2 or segments.dtype.kind not in "ui":
            raise DamagedFileError(
                path, f"LabelMap is {segments.dtype} {list(segments.shape)}, expected [H, W] integers"
            )
        low, high = segments.min(initial=0), segments.max(initial=0)
        if low < 0 or high > CONTEXT_CLASSES:
            wrong = low if low < 0 else high
            raise DamagedFileError(path, f"class {wrong} in LabelMap, expected 0 to {CONTEXT_CLASSES}")
        return segments

    @cached_property
    def _trusted(self) -> np.ndarray:
        """Whether normals count, by context class."""
        nyud, context = (read_numbers(self.folder / name) for name in self.extra_files["normals"])
        path: Path = self.folder / self.extra_files["normals"][1]
        try:
            numbers = trusted_classes(nyud, context)
        except KeyError as error:
            raise DamagedFileError(path, f"no class {error}, expected the names of the 459 context classes") from None
        for number in numbers:
            if not 0 <= number <= CONTEXT_CLASSES:
                raise DamagedFileError(path, f"class number {number}, expected 0 to {CONTEXT_CLASSES}")
        table = np.zeros(CONTEXT_CLASSES + 1, bool)
        table[numbers] = True
        return table
