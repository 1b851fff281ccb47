"""Check both splits of a dataset, and say what was found as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.words import say_count
from ..tasks import TASKS
from .check import LabelCount, Progress, Rendered, SplitCheck, check_split, shared_ids
from .datasets import DatasetInfo, open_split

RENDERED = (32, 256)  # embedded images per split, without and with `deep`


@dataclass(frozen=True)
class DatasetCheck:
    """What was found in both splits of a dataset."""

    info: DatasetInfo
    folder: Path | None  # None: rendered
    splits: Mapping[str, SplitCheck]
    twice: list[str]  # images that are in both
    deep: bool
    subset: bool  # fewer images than the official list has are meant

    @property
    def is_fine(self) -> bool:
        """Say whether nothing is bad, and no image missing unless that is meant."""
        checks = self.splits.values()
        return not self.twice and not any(c.bad or (c.is_incomplete and not self.subset) for c in checks)

    def bad(self) -> list[dict[str, str]]:
        """Return a record for every file that is bad."""
        found = [
            {"split": split, "file": file, "problem": problem}
            for split, check in self.splits.items()
            for file, problem in check.bad.items()
        ]
        return found + [
            {"split": "both", "file": image, "problem": "listed in train and in test"} for image in self.twice
        ]

    def class_rows(self, task: str, count: LabelCount) -> list[dict[str, Any]]:
        """Return how often each class of a task was seen."""
        names = self.info.class_names.get(task)
        return [
            {"class": number, "name": names[number], "pixels": int(pixels), "images": int(images)}
            for number, (pixels, images) in enumerate(zip(count.class_pixels, count.class_images))
        ]

    def verdict(self) -> str:
        """Say in a line what was looked at and what is wrong."""
        checks = self.splits.values()
        decoded, images = (sum(getattr(check, name) for check in checks) for name in ("decoded", "images"))
        looked = f"{decoded} of {images} images decoded" + ("" if decoded == images else " (--deep decodes all)")
        if bad := self.bad():
            return f"{looked}, {say_count(len(bad), 'bad file')}"
        if any(check.is_incomplete for check in checks):
            expected = sum(check.expected for check in checks)
            return f"{looked}, nothing wrong in them, {expected - images} of {expected} images are not there"
        return f"{looked}, nothing wrong"

    def record(self, small_presets: Callable[[SplitCheck], Mapping[str, tuple[int, int]]]) -> dict[str, Any]:
        """Return all of it as plain data; `small_presets` says whose size some image of a split does not fit."""
        splits = {}
        for split, check in self.splits.items():
            splits[split] = {
                "images": check.images,
                "official_images": check.official.images if check.official else None,
                "is_official_list": check.is_official,
                "decoded": check.decoded,
                "smallest": check.smallest,
                "largest": check.largest,
                "larger_than_preset": {name: list(size) for name, size in small_presets(check).items()},
                "labels": {task: self._label_record(task, count) for task, count in check.labels.items()},
                "bad": [{"file": file, "problem": problem} for file, problem in check.bad.items()],
            }
        about = {"dataset": self.info.name, "folder": str(self.folder or "") or None, "in_both_splits": self.twice}
        return {**about, "splits": splits, "deep": self.deep, "ok": self.is_fine}

    def _label_record(self, task: str, count: LabelCount) -> dict[str, Any]:
        record = {
            "read": count.images,
            "bad": count.bad,
            "pixels": count.pixels,
            "labelled": count.labelled,
            "lowest": count.low,
            "highest": count.high,
        }
        return record if count.class_pixels is None else {**record, "classes": self.class_rows(task, count)}


def check_dataset(
    info: DatasetInfo,
    watch: Callable[[str], AbstractContextManager[Progress]],
    *,
    data_root: str | None = None,
    layout: str | None = None,
    size: tuple[int, int] = (64, 64),
    deep: bool = False,
    subset: bool = False,
) -> DatasetCheck:
    """Check both splits of a dataset; `watch` is told which, and gives who is told how far.

    Args:
        info: Which.
        watch: Is given a split's name.
        data_root: Where its archive lies.
        layout: Which of two it is read by.
        size: Of images that are rendered.
        deep: Decode every image and label.
        subset: Fewer images than the official list has are meant.
    """
    opened: dict[str, Any] = {}
    for split in ("train", "test"):
        if info.source == "synth":
            opened[split] = Rendered(info.name, split, RENDERED[deep], size)
        else:
            opened[split] = open_split(info, split, data_root, layout=layout, complete=False)
    found = {}
    for split, dataset in opened.items():
        with watch(split) as progress:
            found[split] = check_split(dataset, info, split, deep, progress)
    return DatasetCheck(info, getattr(opened["train"], "folder", None), found, shared_ids(opened), deep, subset)


def describe_labels(task: str, count: LabelCount) -> dict[str, Any]:
    """Return a row about the labels of a task that were read."""
    values = "–" if count.low is None else f"{count.low:.4g} to {count.high:.4g}"
    share = 100 * count.labelled / count.pixels if count.pixels else 0.0
    return {
        "task": task,
        "read": count.images,
        "bad": count.bad,
        "values": f"{TASKS[task].kind.quantity} {values}",
        "labelled": f"{share:.1f} %",
    }
