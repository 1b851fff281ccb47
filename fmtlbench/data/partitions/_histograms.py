"""What the images of a dataset show: how many pixels of each semantic class."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.errors import FmtlbenchError
from ...base.found_once import find_once
from ...tasks import semantic_task

if TYPE_CHECKING:
    from ..datasets import Reader

VERSION = 1  # raise it whenever histograms on disk would be counted otherwise

_histograms: dict[int, tuple[weakref.ref, np.ndarray]] = {}  # by id of the dataset, as long as it lives


def histograms(dataset: Reader) -> np.ndarray:
    """Return the labelled pixels per image and semantic class, [images, classes]; read once per dataset object.

    Of data in files they are kept on disk too, since decoding thousands of labels takes a while.
    """
    known = _histograms.get(id(dataset))
    if known is not None and known[0]() is dataset:
        return known[1]
    task = semantic_task(dataset.info.tasks)
    if task is None:
        raise FmtlbenchError(
            f"partition dirichlet: {dataset.info.name} has no semantic labels to go by; "
            "--set scenario.partition.kind=equal or linear"
        )
    classes = dataset.info.classes[task]
    if dataset.stacked:
        counts = _count(len(dataset), classes, lambda i: dataset.batch(np.array([i]), keys=(task,))[task])
    else:
        counts = _kept_counts(dataset, task, classes)
    key = id(dataset)
    _histograms[key] = (weakref.ref(dataset, lambda _: _histograms.pop(key, None)), counts)
    return counts


def _kept_counts(dataset: Any, task: str, classes: int) -> np.ndarray:
    shape = (len(dataset), classes)

    def find() -> list[list[int]]:
        read, progress = lambda i: dataset.sample(i, (task,))[task], dataset.progress
        return _count(*shape, read, progress).tolist()

    def fits(found: Any) -> bool:
        counts = np.array(found)  # ValueError, if rows differ
        return counts.shape == shape and counts.dtype.kind == "i" and bool((counts >= 0).all())

    about = {"version": VERSION, "classes": classes}
    return np.array(find_once("histograms", about, dataset.digest_of(task), fits, find, dataset.cache_dir), np.int64)


def _count(
    images: int, classes: int, read: Callable[[int], np.ndarray], progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    counts = np.zeros((images, classes), np.int64)
    for index in range(images):  # one by one: real images differ in size and do not stack
        labels = np.asarray(read(index)).ravel().astype(np.int64)
        counts[index] = np.bincount(labels[(labels >= 0) & (labels < classes)], minlength=classes)
        if progress and ((index + 1) % 50 == 0 or index + 1 == images):
            progress(index + 1, images)
    return counts
