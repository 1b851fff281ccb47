"""Read PASCAL-Context with the distilled labels of the multi-task literature, in the layout of `PASCALContext/`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from ._archive import ArchiveDataset, Files
from ._class_names import PERSON_PARTS, VOC_21
from ._files import DamagedFileError, Shape, fitting, read_classes, read_colour, read_grey, read_mat, read_numbers
from ._info import OfficialList
from ._people import images_with_people
from ._person_parts import read_person_parts
from ._registry import DATASETS
from .nyud import decode_normals

CONTEXT_CLASSES = 459
SCREEN = "tvmonitor"  # what NYUD-v2 calls television


@DATASETS.register("pascal")
class PascalDataset(ArchiveDataset):
    """4998 training and 5105 test images."""

    title = "PASCAL-Context"
    description = "PASCAL-Context, 4998 train / 5105 test images (PASCALContext/ below --data-root)"
    tasks = ("semseg", "human_parts", "sal", "normals", "edge")
    class_names: ClassVar = {"semseg": VOC_21, "human_parts": PERSON_PARTS}
    # The test split has the thin edges of the label map, which published scores are measured against.
    metric_options: ClassVar = {"odsf": {"max_dist": 0.0075, "gt": "plain"}}
    official: ClassVar = {
        "train": OfficialList(4998, "2da5ca32fd4ef15bec421829de47e0652cb7b749f4cd24a2485757607ecb1975"),
        "test": OfficialList(5105, "261199d190e5c22dc3458c97a9e831f25247e2ae41eb650f5202e1e0d82563d5"),
    }
    archive = "PASCALContext"
    marks = ("ImageSets/Context", "JPEGImages")
    distributed = (
        "PASCALContext.tar.gz, which the GitHub projects brdav/atrc and prismformore/Multi-Task-Transformer distribute"
    )
    twofold = ("edge",)
    lists: ClassVar = {"train": "ImageSets/Context/train.txt", "test": "ImageSets/Context/val.txt"}
    files: ClassVar = {
        "image": Files(("JPEGImages",), ".jpg"),
        "semseg": Files(("semseg/VOC12", "semseg/pascal-context"), ".png"),
        "human_parts": Files(("human_parts",), ".mat"),
        "sal": Files(("sal_distill",), ".png"),
        "normals": Files(("normals_distill",), ".png"),
        "labelmap": Files(("pascal-context/trainval",), ".mat"),
    }
    needs: ClassVar = {"edge": ("labelmap",), "normals": ("normals", "labelmap")}
    extra_files: ClassVar = {"normals": ("json/nyu_classes.json", "json/context_classes.json")}

    _kept: tuple[Path, np.ndarray] | None = None

    def sample(self, index: int, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        try:
            return super().sample(index, keys)
        finally:
            self._kept = None  # the file may have changed by the next call

    def read_semseg(self, index: int, shape: Shape) -> np.ndarray:
        return read_classes(self.path(index, "semseg"), shape, highest=20, ignore=True)

    def read_human_parts(self, index: int, shape: Shape) -> np.ndarray:
        return read_person_parts(self.path(index, "human_parts"), shape)

    def read_sal(self, index: int, shape: Shape) -> np.ndarray:
        """Read saliency: 1 where the distilled map, which may be soft, is above one half."""
        return (read_grey(self.path(index, "sal"), shape) > 127).astype(np.uint8)

    def read_edge(self, index: int, shape: Shape) -> np.ndarray:
        from ._edges import scoring_edges, training_edges  # compiled code, which a description does not need

        draw = scoring_edges if self.purpose == "scoring" else training_edges
        return draw(self._segments(index, shape))

    def read_normals(self, index: int, shape: Shape) -> np.ndarray:
        """Read the normals, set to zero except on the classes that NYUD-v2 has too.

        They were distilled from a network trained on indoor scenes, which is not reliable on other classes.
        """
        normals = decode_normals(read_colour(self.path(index, "normals"), shape))
        normals[~self._trusted[self._segments(index, normals.shape[:2])]] = 0
        return normals

    def eligible(self, tasks: tuple[str, ...]) -> np.ndarray | None:
        """Return the images with people for a client with human parts alone, as in the public code; else None (all)."""
        if tuple(tasks) != ("human_parts",):
            return None
        paths = [self.path(index, "human_parts") for index in range(len(self))]
        return images_with_people(paths, self.digest_of("human_parts"), self.cache_dir, self.progress)

    @classmethod
    def explain_eligible(cls, tasks: tuple[str, ...]) -> str | None:
        alone = tuple(tasks) == ("human_parts",)
        return "a client with human parts alone uses only those of its images that show people" if alone else None

    def prepare_workers(self) -> None:
        from ._edges import compile_loops

        compile_loops()

    def _segments(self, index: int, shape: Shape) -> np.ndarray:
        """Return the label map of the context classes, [H, W]; the tasks of one sample share it."""
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
        """Whether normals are used, by number of the context class."""
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


def trusted_classes(nyud: Mapping[str, int], context: Mapping[str, int]) -> list[int]:
    """Return the numbers of the context classes that NYUD-v2 has too, given both datasets' classes by name.

    "unknown" is left out, because it does not mean the same in both.

    Raises:
        KeyError: These are not the names of the context classes.
    """
    return sorted({context[name] for name in context if name in nyud and name != "unknown"} | {context[SCREEN]})
