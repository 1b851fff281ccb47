"""A dataset described by a folder and a few lines of YAML: for your own data, without writing code.

robots/dataset.yml              tasks: {semseg: {classes: [floor, wall, thing]}, depth: {}}
robots/train.txt, test.txt      one image id per line
robots/images/<id>.png          or .jpg
robots/semseg/<id>.png          one folder per task, in the file format of the task's kind of labels
robots/depth/<id>.npy
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ...base.errors import UsageError, unknown
from ...base.files import sha256_file
from ...base.located import locate
from ...base.names import check_name
from ...base.schema import build
from ...base.user_code import UserCode, read_user_code
from ...base.yamlfile import load_yaml
from ...tasks import TASKS
from ._dataset import Dataset, Sample
from ._files import fitting, image_shape, list_by_id, read_ids, read_image, read_label_file
from ._info import DatasetInfo
from ._registry import dataset_of_file, describe

IMAGES = "images"
PICTURES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class FolderTask:
    """The entry of one task in a description."""

    classes: tuple[str, ...] = ()  # their names, by class number; for tasks that have classes
    file: str | None = None  # a .py file beside the description that defines the task


@dataclass(frozen=True)
class Description:
    """The contents of `dataset.yml`."""

    tasks: dict[str, FolderTask]
    name: str | None = None  # by default the folder's
    title: str | None = None  # used in tables, by default the name
    description: str = "a folder of images and labels"
    lists: dict[str, str] = field(default_factory=lambda: {"train": "train.txt", "test": "test.txt"})


class FolderDataset(Dataset):
    """A split of a dataset in a described folder."""

    checks_itself = True
    file: ClassVar[Path]  # the description
    lists: ClassVar[dict[str, str]]

    @classmethod
    def open(cls, info: DatasetInfo, split: str, data_root: Any, layout: Any, **options: Any) -> Dataset:
        """Open a split; its folder is the one that holds the description."""
        return cls(cls.file.parent, split, **options)

    def __init__(self, folder: Path, split: str, *arguments: Any, **options: Any) -> None:
        if split not in self.lists:
            raise unknown("split", split, self.lists, self.info.name)
        self._asked = (split, arguments, {**options, "progress": None})
        super().__init__(folder, split, *arguments, **options)

    @classmethod
    def check_folder(cls, folder: Path) -> None:
        if folder.resolve() != cls.file.parent.resolve():
            raise UsageError(f"--gt {folder}: expected {cls.file.parent}, the folder that {cls.file.name} describes")

    def __reduce__(self) -> tuple:
        # The class was made at run time, so it cannot be pickled by name.
        return _open_again, (str(self.file), *self._asked)

    def list_images(self) -> list[str]:
        return read_ids(Path(self.origin_of_list()))

    def origin_of_list(self) -> str:
        return str(self.file.parent / self.lists[self.split])

    def files_of(self, index: int, key: str) -> Sequence[Path]:
        return (self._found[key].get(self.ids[index]) or self._expected(self.ids[index], key),)

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        index, keys = self.check_index(index), self.check_keys(keys)
        shape = image_shape(self.files_of(index, "image")[0]) if self.with_images else None
        return {key: self._read(index, key, shape) for key in keys}

    def _read(self, index: int, key: str, shape: tuple[int, int] | None) -> Any:
        path = self.files_of(index, key)[0]
        if key == "image":
            return read_image(path)
        label = read_label_file(TASKS[key].kind, path, self.info.classes.get(key))
        return fitting(path, label, shape)

    @cached_property
    def _found(self) -> dict[str, dict[str, Path]]:
        """Key → image id → file, from listing every folder once."""
        return {key: self._list_folder(key) for key in self.keys}

    def _list_folder(self, key: str) -> dict[str, Path]:
        folder = self._folder(key)
        if not folder.is_dir():
            raise UsageError(f"{self.file}: no folder {folder.name}/ beside it, expected one for {key}")
        return list_by_id(folder, self._suffixes(key))

    def _folder(self, key: str) -> Path:
        return self.file.parent / (IMAGES if key == "image" else key)

    def _suffixes(self, key: str) -> tuple[str, ...]:
        return PICTURES if key == "image" else TASKS[key].kind.suffixes

    def _expected(self, image: str, key: str) -> Path:
        return self._folder(key) / f"{image}{self._suffixes(key)[0]}"


def _open_again(file: str, split: str, arguments: tuple, options: dict[str, Any]) -> Dataset:
    return dataset_of_file(file).readers[0](Path(file).parent, split, *arguments, **options)


def describe_folder(file: Path) -> tuple[DatasetInfo, UserCode]:
    """Return the dataset that a file beside its data describes, and what identifies it with the tasks it brings."""
    tree = load_yaml(file)
    said = build(Description, tree)
    name = check_name(said.name or file.absolute().parent.name, "dataset", str(file))
    brought: dict[str, str] = {}
    for task, entry in said.tasks.items():
        if entry.file is not None:
            path = str(file.parent / entry.file)
            TASKS.keep(path, str(file))
            brought |= {entry.file: sha256_file(Path(path)), **read_user_code(path).helpers}
        if task not in TASKS:
            raise unknown("task", task, TASKS, f"{locate(tree, f'tasks.{task}')}: tasks")
    reader = type(
        "FolderDataset",
        (FolderDataset,),
        {
            "file": file.absolute(),
            "lists": said.lists,
            "title": said.title or name,
            "description": said.description,
            "tasks": tuple(said.tasks),
            "class_names": {task: entry.classes for task, entry in said.tasks.items() if entry.classes},
        },
    )
    try:
        return describe(reader, name), UserCode(sha256_file(file), brought, str(file))
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
