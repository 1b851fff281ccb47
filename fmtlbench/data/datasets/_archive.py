"""Read a dataset from an archive of files: find the files of each image, read samples at their own resolution."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...base.errors import FmtlbenchError, unknown
from ._dataset import NAMED, Dataset, Provenance, Sample, digest, file_size
from ._files import Shape, image_shape, read_ids, read_image


class Files(NamedTuple):
    """Where one kind of file is; if several folders are given, the first that has the image is used."""

    folders: tuple[str, ...]
    suffix: str


class ArchiveDataset(Dataset):
    """One split of one archive. Subclasses name the folders and add `read_<task>(index, shape)` for every task.

    `lists` gives the file of ids by split; `files` the place of every kind of file ("image" and mostly one per task).
    """

    checks_itself = True
    lists: ClassVar[Mapping[str, str]]
    files: ClassVar[Mapping[str, Files]]
    # Kinds of files a task is read from, if not one of its own name.
    needs: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    extra_files: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # single files that a task needs
    folder: Path

    def __init__(self, folder: Path, split: str, *arguments: Any, **options: Any) -> None:
        if split not in self.lists:
            raise unknown("split", split, self.lists, self.info.name)
        super().__init__(folder, split, *arguments, **options)
        self._places = {kind: self._find(kind) for kind in self._kinds}
        self._known_sizes: dict[str, list[int]] = {}
        if self.missing and self.complete:
            raise FmtlbenchError(self._describe_missing())

    def list_images(self) -> list[str]:
        self._check_structure()
        return read_ids(self.folder / self.lists[self.split])

    @classmethod
    def in_one_folder(cls, task: str) -> type[ArchiveDataset] | None:
        """Return a reader for a folder with the labels of one task alone; None if they need other files too."""
        kinds = cls.needs.get(task, (task,))
        if len(kinds) > 1 or cls.extra_files.get(task):
            return None
        alone = {kinds[0]: Files((".",), cls.files[kinds[0]].suffix)}
        return type(cls.__name__, (cls,), {"files": alone})

    @classmethod
    def has_labels(cls, folder: Path, task: str) -> bool:
        """Return whether a folder has files of all kinds that the labels of a task are made of."""
        kinds = [cls.files[kind] for kind in cls.needs.get(task, (task,))]
        return all(any(next((folder / f).glob(f"*{k.suffix}"), None) for f in k.folders) for k in kinds)

    def path(self, index: int, kind: str) -> Path:
        """Return the image's file of one kind (a task, or a kind that tasks are made from)."""
        files = self.files[kind]
        return self.folder / files.folders[self._places[kind][index]] / f"{self.ids[index]}{files.suffix}"

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        """Return the image and the labels that `keys` names (by default all), at native resolution."""
        index, keys = self.check_index(index), self.check_keys(keys)
        if not self.with_images:
            return {key: self._label(key, index, None) for key in keys}
        file = self.path(index, "image")
        image = read_image(file) if "image" in keys else None
        shape = image_shape(file) if image is None else image.shape[:2]
        return {key: self._label(key, index, shape) if image is None or key != "image" else image for key in keys}

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the ids, the sizes of all their files and the reader's version. Nothing is decoded."""
        about = [self.version, self.archive, self.split, self.purpose, self.tasks, self.ids]
        about += [[kind, self._sizes(kind)] for kind in self._kinds]
        about.append([file_size(self.folder / name) for name in self._singles])
        about += self.written_in()
        return digest(about)

    @cached_property
    def lineage(self) -> str:
        """sha256 of the archive's name, the split and its whole list: the same for any choice of tasks or images."""
        return digest([self.archive, self.split, read_ids(self.folder / self.lists[self.split])])

    def provenance(self, key: str) -> Provenance:
        """Return what the image or a label is made of. A label's includes the image, because their sizes must match."""
        kinds = dict.fromkeys(("image", *(() if key == "image" else self.needs.get(key, (key,)))))
        name = self.variant_name(key)
        common = [
            self.version,
            name,
            *self.written_in(),
            *(file_size(self.folder / file) for file in self.extra_files.get(key, ())),
        ]
        return Provenance(name, common, [list(each) for each in zip(self.ids, *map(self._sizes, kinds))])

    def origin_of_list(self) -> str:
        return str(self.folder / self.lists[self.split])

    def _sizes(self, kind: str) -> list[int]:
        """Return the size of every image's file of one kind, reading each from the disk only once."""
        if kind not in self._known_sizes:
            self._known_sizes[kind] = [file_size(self.path(index, kind)) for index in range(len(self))]
        return self._known_sizes[kind]

    @property
    def _kinds(self) -> list[str]:
        return list(
            dict.fromkeys(
                [
                    *(["image"] if self.with_images else []),
                    *(k for task in self.tasks for k in self.needs.get(task, (task,))),
                ]
            )
        )

    @property
    def _singles(self) -> list[str]:
        return [name for task in self.tasks for name in self.extra_files.get(task, ())]

    def _label(self, key: str, index: int, shape: Shape | None) -> np.ndarray:
        return getattr(self, f"read_{key}")(index, shape)

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
        """Return for every image the number of the folder that has its file; each folder is listed once."""
        folders, suffix = self.files[kind]
        listed = [_list_names(self.folder / folder) for folder in folders]
        places = []
        for name in (f"{image}{suffix}" for image in self.ids):
            place = next((n for n, names in enumerate(listed) if name in names), None)
            if place is None:
                place = len(folders) - 1
                self.missing.append(self.folder / folders[place] / name)
            places.append(place)
        return places

    def _describe_missing(self) -> str:
        count = len(self.missing)
        some = ", ".join(str(path.relative_to(self.folder)) for path in self.missing[:NAMED])
        more = f" and {count - NAMED} more" if count > NAMED else ""
        return (
            f"{self.folder}: {count} of the files that {self.lists[self.split]} asks for "
            f"{'is' if count == 1 else 'are'} missing: {some}{more}"
        )


def _list_names(folder: Path) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise FmtlbenchError(f"{folder}: {error.strerror}") from None
