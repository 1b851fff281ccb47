"""A split of a real archive: which files belong to which image, and samples at the resolution they were taken."""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...errors import FmtlbenchError, UsageError, unknown
from ..synth.dataset import SampleRangeError
from .files import Shape, image_shape, read_ids, read_image

VERSION = 1  # raise it whenever a reader gives other numbers for the same files

NAMED = 5  # how many files an error message lists


class Files(NamedTuple):
    """Where one kind of file lies; of several folders the first that has the image counts."""

    folders: tuple[str, ...]
    suffix: str


class Provenance(NamedTuple):
    """A key's name among variants, what all images have in common, and each one's id and the sizes of its files."""

    name: str
    common: list[Any]
    images: list[list[Any]]


class RealDataset:
    """One split of one archive. Subclasses say where files lie and add `read_<task>(index, shape)` for every task.

    Args:
        folder: The archive's own folder, such as `/data/NYUDv2`.
        split: "train" or "test"; the archives call the second one val.
        size: Height and width that batches are brought to; samples keep their own.
        resize: How: "none" pads and crops, "fixed" stretches.
        tasks: Labels to read; by default all the archive has.
        limit: Only the first images of the list.
        edges: "training" or "scoring" (edges.py says how they differ); by default what the split is for.
        complete: Refuse an archive in which files are missing; otherwise `missing` lists them.
        cache_dir: Where to keep what is slow to find; by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: Called with (done, total) where something takes long.
    """

    domain: ClassVar[str]
    archive: ClassVar[str]
    lists: ClassVar[Mapping[str, str]]
    files: ClassVar[Mapping[str, Files]]
    tasks_of_archive: ClassVar[tuple[str, ...]]
    needs: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # kinds of files behind a task, where not just its own
    extra_files: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # single files behind a task

    def __init__(
        self,
        folder: Path,
        split: str,
        size: tuple[int, int] | None = None,
        tasks: Iterable[str] | None = None,
        limit: int | None = None,
        edges: str | None = None,
        complete: bool = True,
        cache_dir: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
        resize: str = "none",
    ) -> None:
        if split not in self.lists:
            raise unknown("split", split, self.lists, self.domain)
        self.folder, self.split, self.size, self.resize = Path(folder), split, size, resize
        self.tasks = self.tasks_of_archive if tasks is None else tuple(tasks)
        for task in self.tasks:
            if task not in self.tasks_of_archive:
                raise unknown("task", task, self.tasks_of_archive, self.domain)
        self.keys = ("image", *self.tasks)
        self.edges = edges or ("training" if split == "train" else "scoring")
        self.cache_dir, self.progress = cache_dir, progress
        self._check_structure()
        self.ids = self._limited(read_ids(self.folder / self.lists[split]), limit)
        self.missing: list[Path] = []
        self._places = {kind: self._find(kind) for kind in self._kinds}
        self._known_sizes: dict[str, list[int]] = {}
        if complete and self.missing:
            raise FmtlbenchError(self._missing_message())

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return self.sample(index)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "progress": None}  # it belongs to the process that opened the data

    @property
    def info(self):
        """The catalogue's entry: classes, names, metric options."""
        from ..catalog import dataset_for

        return dataset_for(self.domain, "real")

    def name(self, index: int) -> str:
        """The image's id, as its files are called."""
        return self.ids[self._check(index)]

    def path(self, index: int, kind: str) -> Path:
        """The image's file of one kind (a task, or what stands behind tasks)."""
        files = self.files[kind]
        return self.folder / files.folders[self._places[kind][index]] / f"{self.ids[index]}{files.suffix}"

    def sample(self, index: int, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """One image and its labels at native resolution.

        image [H, W, 3] uint8; semseg and human_parts [H, W] uint8 class numbers, 255 where unlabelled; sal and edge
        [H, W] uint8 of 0 and 1; normals [H, W, 3] float32, zero where unknown; depth [H, W] float32 metres, 0 where
        unknown.
        """
        index, keys = self._check(index), self.keys if keys is None else tuple(keys)
        for key in keys:
            if key not in self.keys:
                raise unknown("key", key, self.keys, self.domain)
        file = self.path(index, "image")
        image = read_image(file) if "image" in keys else None
        shape = image_shape(file) if image is None else image.shape[:2]
        return {key: image if key == "image" else self._label(key, index, shape) for key in keys}

    def batch(self, indices: np.ndarray, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Samples stacked to [B, ...] as they are: only for images of one size."""
        keys = self.keys if keys is None else tuple(keys)
        samples = [self.sample(index, keys) for index in np.atleast_1d(indices)]
        shapes = {next(iter(sample.values())).shape[:2] for sample in samples}
        if len(shapes) > 1:
            listed = ", ".join(f"{h}×{w}" for h, w in sorted(shapes))
            raise UsageError(f"{self.domain}: images of {listed} pixels do not stack; bring them to one size first")
        return {key: np.stack([sample[key] for sample in samples]) for key in keys}

    def eligible(self, tasks: tuple[str, ...]) -> np.ndarray | None:
        """Indices of the images a client with these tasks may use; None means all."""
        return None

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the ids, the sizes of all their files and the reader's version. Nothing is decoded."""
        about = [VERSION, self.archive, self.split, self.edges, self.tasks, self.ids]
        about += [[kind, self._sizes(kind)] for kind in self._kinds]
        about.append([_size(self.folder / name) for name in self._singles])
        return _digest(about)

    @cached_property
    def lineage(self) -> str:
        """sha256 of the archive's name, the split and its whole list: the same for any choice of tasks or images."""
        return _digest([self.archive, self.split, read_ids(self.folder / self.lists[self.split])])

    def provenance(self, key: str) -> Provenance:
        """What the image or a label is made of; the image belongs to every label, which must fit it."""
        kinds = dict.fromkeys(("image", *(() if key == "image" else self.needs.get(key, (key,)))))
        name = f"edge-{self.edges}" if key == "edge" else key
        common = [VERSION, name, *(_size(self.folder / file) for file in self.extra_files.get(key, ()))]
        return Provenance(name, common, [list(each) for each in zip(self.ids, *map(self._sizes, kinds))])

    def digest_of(self, key: str) -> str:
        """sha256 of a label's provenance in these images, whatever other tasks the dataset was opened with."""
        return _digest([self.lineage, *self.provenance(key)])

    def _sizes(self, kind: str) -> list[int]:
        """Of every image's file of a kind, asked of the disk once."""
        if kind not in self._known_sizes:
            self._known_sizes[kind] = [_size(self.path(index, kind)) for index in range(len(self))]
        return self._known_sizes[kind]

    @property
    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(["image", *(k for task in self.tasks for k in self.needs.get(task, (task,)))]))

    @property
    def _singles(self) -> list[str]:
        return [name for task in self.tasks for name in self.extra_files.get(task, ())]

    def _label(self, key: str, index: int, shape: Shape) -> np.ndarray:
        return getattr(self, f"read_{key}")(index, shape)

    def _check(self, index: int) -> int:
        try:
            index = operator.index(index)
        except TypeError:
            raise UsageError(f"{self.domain}: a sample number must be an integer, got {index!r}") from None
        if not 0 <= index < len(self.ids):
            raise SampleRangeError(f"{self.domain} {self.split}: no sample {index}, valid: 0 to {len(self.ids) - 1}")
        return index

    def _limited(self, ids: list[str], limit: int | None) -> list[str]:
        if limit is not None and not 1 <= limit <= len(ids):
            raise UsageError(
                f"data.{self.split}_samples.{self.domain} is {limit}, but {self.folder / self.lists[self.split]} "
                f"lists {len(ids)} images"
            )
        return ids[:limit]

    def _check_structure(self) -> None:
        absent = []
        for kind in self._kinds:
            folders = self.files[kind].folders
            if not any((self.folder / name).is_dir() for name in folders):
                absent.append(" and ".join(f"{name}/" for name in folders))
        absent += [name for name in (self.lists[self.split], *self._singles) if not (self.folder / name).is_file()]
        if absent:
            raise FmtlbenchError(
                f"{self.folder}: not a complete {self.archive} archive, it lacks {', '.join(dict.fromkeys(absent))}"
            )

    def _find(self, kind: str) -> list[int]:
        """For every image the number of the folder that has its file, found by listing the folders once."""
        folders, suffix = self.files[kind]
        listed = [_names(self.folder / folder) for folder in folders]
        places = []
        for name in (f"{image}{suffix}" for image in self.ids):
            place = next((n for n, names in enumerate(listed) if name in names), None)
            if place is None:
                place = len(folders) - 1
                self.missing.append(self.folder / folders[place] / name)
            places.append(place)
        return places

    def _missing_message(self) -> str:
        count = len(self.missing)
        some = ", ".join(str(path.relative_to(self.folder)) for path in self.missing[:NAMED])
        more = f" and {count - NAMED} more" if count > NAMED else ""
        return (
            f"{self.folder}: {count} of the files that {self.lists[self.split]} asks for "
            f"{'is' if count == 1 else 'are'} missing: {some}{more}"
        )


def _names(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise FmtlbenchError(f"{folder}: {error.strerror}") from None


def _digest(about: list[Any]) -> str:
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # missing: reading it says so
