"""Check a dataset's files, shapes and value ranges, and count how often every class occurs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import FmtlbenchError
from ..base.seeds import stream
from ..tasks import TASKS
from .datasets import DATASETS, DatasetInfo, OfficialList, read_sample

SAMPLED = 32  # images that are decoded without `deep`
Progress = Callable[[int, int], None]


@dataclass
class LabelCount:
    """Counts over the labels of one task. `low` and `high` are over labelled pixels (normals: their lengths)."""

    images: int = 0
    bad: int = 0
    pixels: int = 0
    labelled: int = 0
    low: float | None = None
    high: float | None = None
    class_pixels: np.ndarray | None = None  # [classes]
    class_images: np.ndarray | None = None

    def add(self, values: np.ndarray, pixels: int, classes: int | None) -> None:
        """Count one image; `values` holds the values of its labelled pixels."""
        self.images += 1
        self.pixels += pixels
        self.labelled += values.size
        if values.size:
            low, high = float(values.min()), float(values.max())
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)
        if classes:
            seen = np.bincount(values, minlength=classes)
            if self.class_pixels is None:
                self.class_pixels, self.class_images = np.zeros((2, classes), np.int64)
            self.class_pixels += seen
            self.class_images += seen > 0


@dataclass
class SplitCheck:
    """The findings on one split. `bad` maps a file (or image and task) to what is wrong with it."""

    split: str
    images: int
    decoded: int = 0
    official: OfficialList | None = None
    is_official: bool | None = None  # None: there is no official list
    smallest: tuple[int, int] | None = None
    largest: tuple[int, int] | None = None
    labels: dict[str, LabelCount] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)

    @property
    def expected(self) -> int:
        """How many images the split should have: as the official list, or what there are where there is none."""
        return self.official.images if self.official else self.images

    @property
    def is_incomplete(self) -> bool:
        """Whether there are fewer images than the official list has."""
        return self.images < self.expected

    def saw(self, shape: tuple[int, int]) -> None:
        height, width = shape
        low, high = self.smallest or shape, self.largest or shape
        self.smallest = min(low[0], height), min(low[1], width)
        self.largest = max(high[0], height), max(high[1], width)


class Rendered:
    """Samples of an embedded dataset, rendered without using the cache."""

    missing: tuple[Path, ...] = ()

    def __init__(self, name: str, split: str, count: int, size: tuple[int, int]) -> None:
        from .datasets.synth import generate

        self.info, self.split = DATASETS[name], split
        self.ids = [f"{name} {split} {i}" for i in range(count)]
        self._render = lru_cache(maxsize=1)(lambda index: generate(name, split, index, size))

    def image_id(self, index: int) -> str:
        return self.ids[index]

    def sample(self, index: int, keys: Iterable[str]) -> dict[str, np.ndarray]:
        sample = self._render(index)
        return {key: sample[key] for key in keys}


def check_split(
    dataset: Any, info: DatasetInfo, split: str, deep: bool = False, progress: Progress | None = None
) -> SplitCheck:
    """Check that every file of a split exists, and the contents of a seeded choice of images or (`deep`) of all.

    Args:
        dataset: With `ids`, `missing` and `sample(index, keys)`, opened without insisting on completeness.
        info: Its catalogue entry.
        split: "train" or "test".
        deep: Decode every image and label.
        progress: Called with (done, total).
    """
    ids = dataset.ids
    result = SplitCheck(split, len(ids), official=info.official.get(split))
    if result.official:
        listed = hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
        result.is_official = len(ids) == result.official.images and result.official.sha256 in (listed, None)
    result.bad |= {str(path): "missing" for path in dataset.missing}
    result.labels = {task: LabelCount() for task in info.tasks}
    chosen = np.arange(len(ids))
    if not deep and len(ids) > SAMPLED:
        chosen = np.sort(stream(0, "data check", info.name, split).choice(chosen, SAMPLED, replace=False))
    for done, index in enumerate(chosen.tolist(), 1):
        _check_image(dataset, info, index, result)
        if progress:
            progress(done, len(chosen))
    result.decoded = len(chosen)
    return result


def shared_ids(splits: dict[str, Any]) -> list[str]:
    """Return the ids that are in more than one split, which would mean testing on training images."""
    seen: dict[str, int] = {}
    for dataset in splits.values():
        for image in dataset.ids:
            seen[image] = seen.get(image, 0) + 1
    return sorted(image for image, times in seen.items() if times > 1)


def _check_image(dataset: Any, info: DatasetInfo, index: int, result: SplitCheck) -> None:
    shape = None
    for key in ("image", *info.tasks):
        try:
            array = read_sample(dataset, index, (key,))[key]
        except FmtlbenchError as error:
            path, problem = getattr(error, "path", dataset.ids[index]), getattr(error, "problem", str(error))
            result.bad.setdefault(str(path), problem)
            if key != "image":
                result.labels[key].bad += 1
            continue
        if key == "image":
            shape = array.shape[:2]
            result.saw(shape)
            continue
        problem = TASKS[key].kind.problem(array, shape, info.classes.get(key))
        if problem:
            result.bad.setdefault(f"{dataset.ids[index]} ({key})", problem)
            result.labels[key].bad += 1
        else:
            result.labels[key].add(
                TASKS[key].kind.labelled(array), array.shape[0] * array.shape[1], info.classes.get(key)
            )
