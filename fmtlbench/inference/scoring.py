"""Pair the files in folders of predictions and labels, read them, and give them to a meter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..base.errors import FmtlbenchError, UsageError
from ..data.datasets import (
    ArchiveDataset,
    DamagedFileError,
    Dataset,
    DatasetInfo,
    list_by_id,
    read_array,
    read_ids,
    read_label_file,
    read_sample,
)
from ..metrics import Metric, MetricError
from ..tasks import IGNORE, LabelError, TaskSpec

SPLITS = {"val": "test"}  # archives call the test split "val"


class LabelSource:
    """Where the labels of images are, and how they are read; by default they have their images' own sizes."""

    task: TaskSpec

    def place(self, image: str) -> Path:
        """Return the file of an image's label, for messages."""
        raise NotImplementedError

    def read(self, image: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a label as a dataset gives it; `shape` is the prediction's, for a file that does not tell its own."""
        raise NotImplementedError

    def target(self, image: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a label as the task's metric takes it, without the batch axis."""
        return self.task.kind.as_target(self.read(image, shape))

    def fit(self, image: str, prediction: np.ndarray) -> np.ndarray:
        """Return a prediction of the image's own size in the frame of the label."""
        return prediction


@dataclass(frozen=True)
class LabelFiles(LabelSource):
    """Labels as plain files of the task's kind, one per image."""

    task: TaskSpec
    paths: dict[str, Path]
    classes: int | None

    def place(self, image: str) -> Path:
        """Return the file of an image's label."""
        return self.paths[image]

    def read(self, image: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a label as a dataset gives it."""
        return read_label_file(self.task.kind, self.paths[image], self.classes)


@dataclass(frozen=True)
class ArchiveLabels(LabelSource):
    """Labels as an archive has them, read by the dataset's own reader."""

    task: TaskSpec
    reader: ArchiveDataset

    def place(self, image: str) -> Path:
        """Return the file of an image's label."""
        kinds = self.reader.needs.get(self.task.name, (self.task.name,))
        return self.reader.path(self.reader.ids.index(image), kinds[0])

    def read(self, image: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a label as a run scores against it; `shape` is used for a file that does not tell its size."""
        label = self.reader.sample(self.reader.ids.index(image), (self.task.name,))[self.task.name]
        if not label.size and shape is not None:
            label = np.zeros(shape, label.dtype)
        return np.full_like(label, IGNORE) if self.task.ignores(label) else label


@dataclass(frozen=True)
class ReaderLabels(LabelSource):
    """Labels as any other dataset's reader gives them."""

    task: TaskSpec
    reader: Dataset

    def place(self, image: str) -> Path:
        """Return the file of an image's label, or the image's id as a path if the reader names no file."""
        files = self.reader.files_of(self.reader.ids.index(image), self.task.name)
        return files[0] if files else Path(image)

    def read(self, image: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a label as a run scores against it."""
        label = read_sample(self.reader, self.reader.ids.index(image), (self.task.name,))[self.task.name]
        return np.full_like(label, IGNORE) if self.task.ignores(label) else label


@dataclass(frozen=True)
class Pairs:
    """Predictions, labels, and the ids to score."""

    task: TaskSpec
    predictions: dict[str, Path]
    labels: LabelSource
    labelled: set[str]
    ids: list[str]

    def problems(self) -> list[str]:
        """Return one line for every file that is missing or superfluous."""
        lines = [f"missing label: {i}" for i in self.ids if i not in self.labelled]
        lines += [f"missing prediction: {i}" for i in self.ids if i not in self.predictions]
        wanted = set(self.ids)
        return lines + [f"extra prediction: {path}" for i, path in self.predictions.items() if i not in wanted]

    def read_prediction(self, image: str) -> np.ndarray:
        """Return a prediction as the task's metric takes it, without the batch axis."""
        path = self.predictions[image]
        try:
            return self.task.kind.read_prediction(read_array(path))
        except LabelError as error:
            raise DamagedFileError(path, str(error)) from None


@dataclass
class Findings:
    """What came out of giving pairs to a meter, beside the meter's sums."""

    problems: list[str] = field(default_factory=list)  # one line per file that cannot be scored
    doubts: list[str] = field(default_factory=list)  # what makes the score worthless, unless somebody knows better
    notes: list[str] = field(default_factory=list)  # what is odd and may be meant


def score_pairs(meter: Metric, pairs: Pairs, ids: Iterable[str] | None = None, batch_size: int = 1) -> Findings:
    """Give every pair to the meter; files that cannot be scored are named, and the others are looked at all the same.

    Args:
        meter: gets the images in order.
        pairs: what to score.
        ids: those of `pairs`, wrapped in whatever shows progress.
        batch_size: images per update, where all have one size: some meters' last bits depend on it.
    """
    found = Findings()
    doubts = pairs.task.kind.doubts()
    waiting: list[_Pair] = []
    for image in pairs.ids if ids is None else ids:
        pair = _read_pair(pairs, image, found.problems)
        if pair is not None:
            doubts.look(pair.prediction, pair.target)
            waiting.append(pair)
        if len(waiting) == batch_size:
            found.problems += _update(meter, pairs, waiting)
            waiting = []
    found.problems += _update(meter, pairs, waiting)
    if not found.problems:
        found.doubts, found.notes = doubts.reasons(), doubts.notes()
    return found


@dataclass(frozen=True)
class _Pair:
    image: str
    prediction: np.ndarray
    target: np.ndarray


def _update(meter: Metric, pairs: Pairs, batch: list[_Pair]) -> list[str]:
    """Give a batch to the meter; return a line for every file that it refuses."""
    if not batch:
        return []
    try:
        meter.update(np.stack([pair.prediction for pair in batch]), np.stack([pair.target for pair in batch]))
    except MetricError as error:
        if len(batch) > 1:  # which of them? There will be no score, so that the meter may get some of them
            return [line for pair in batch for line in _update(meter, pairs, [pair])]
        image = batch[0].image
        culprit = pairs.labels.place(image) if " target:" in str(error) else pairs.predictions[image]
        return [f"{culprit}: {error}"]
    return []


def _read_pair(pairs: Pairs, image: str, problems: list[str]) -> _Pair | None:
    """Return prediction and target of an image; of a file that is wrong, add a line to `problems` and return None."""
    prediction = target = None
    try:
        prediction = pairs.read_prediction(image)
    except FmtlbenchError as error:
        problems.append(str(error))
    try:
        target = pairs.labels.target(image, None if prediction is None else prediction.shape)
        if prediction is not None:
            prediction = pairs.labels.fit(image, prediction)
    except FmtlbenchError as error:
        problems.append(str(error))
    if prediction is None or target is None:
        return None
    if prediction.shape != target.shape:
        sizes = ["×".join(map(str, array.shape[-2:])) for array in (prediction, target)]
        problems.append(f"{pairs.predictions[image]}: {sizes[0]} pixels, but its label has {sizes[1]}")
        return None
    return _Pair(image, prediction, target)


def pair_files(
    pred: Path, gt: Path, task: TaskSpec, info: DatasetInfo | None, classes: int | None, split: str, ids: Path | None
) -> Pairs:
    """Pair predictions and labels by name.

    Args:
        pred: Folder of predictions, or a folder with one such folder per task.
        gt: The archive's root, or a folder of labels.
        task: The task.
        info: The dataset whose format the labels have; None for plain files of the task's kind.
        classes: How many classes the task has, if any.
        split: The split whose list of ids to take from an archive.
        ids: A file with one id per line to use instead. Without any list, every label is scored.
    """
    for flag, folder in (("--pred", pred), ("--gt", gt)):
        if not folder.is_dir():
            raise UsageError(f"{flag}: no such folder: {folder}")
    if info is not None and task.name not in info.tasks:
        raise UsageError(f"--task: {info.name} has no {task.name}; it has {', '.join(sorted(info.tasks))}")
    readers = [r for r in info.readers if issubclass(r, ArchiveDataset)] if info else []
    archive = next((reader for reader in readers if reader.has_labels(gt, task.name)), None)
    reader = archive or _reader_of_folder(readers, gt, task.name)
    listing = ids or (gt / Path(archive.lists["test"]).with_name(f"{split}.txt") if archive else None)
    wanted = None if listing is None else _read_list(listing)
    predictions = list_by_id(pred / task.name if (pred / task.name).is_dir() else pred, task.kind.suffixes)
    if info is not None and not readers:
        info.readers[0].check_folder(gt)
        opened = info.readers[0](gt, SPLITS.get(split, split), tasks=(task.name,), with_images=False)
        wanted = _read_list(ids) if ids else opened.ids
        if not wanted:
            raise UsageError(f"no labels to score in {ids or gt}")
        return Pairs(task, predictions, ReaderLabels(task, opened), set(opened.ids), wanted)
    if reader is None:
        paths = list_by_id(gt, task.kind.suffixes)
        labels, labelled = LabelFiles(task, paths, classes), set(paths)
    else:
        suffix = reader.files[reader.needs.get(task.name, (task.name,))[0]].suffix
        chosen = wanted if wanted is not None else sorted(list_by_id(gt, (suffix,)))
        opened = reader(gt, "test", tasks=(task.name,), ids=chosen, complete=False, with_images=False)
        gone = {path.stem for path in opened.missing}
        labels, labelled = ArchiveLabels(task, opened), {image for image in chosen if image not in gone}
    wanted = sorted(labelled) if wanted is None else wanted
    if not wanted:
        raise UsageError(f"no labels to score in {listing or gt}")
    return Pairs(task, predictions, labels, labelled, wanted)


def _reader_of_folder(readers: list[type[ArchiveDataset]], gt: Path, task: str) -> type[ArchiveDataset] | None:
    """Return the reader of a folder with labels in an archive's format; None if its files are plain ones."""
    for reader in readers:
        if (alone := reader.in_one_folder(task)) and alone.has_labels(gt, task):
            return alone
    if readers and all(reader.in_one_folder(task) is None for reader in readers):
        raise UsageError(
            f"--gt {gt}: {task} of {readers[0].info.name} needs the archive's root, for the files it is made of"
        )
    return None


def _read_list(listing: Path) -> list[str]:
    if not listing.exists():
        raise UsageError(f"no list of image ids: {listing} (choose one with --split or --ids)")
    return read_ids(listing)
