"""All datasets by name: those of this package, of other installed packages, and of files that a user gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...base.errors import UsageError, unknown
from ...base.names import check_name
from ...base.refs import Ref
from ...base.registry import Brought, Registry
from ._dataset import Dataset
from ._info import DatasetInfo


class DatasetRegistry(Registry[DatasetInfo]):
    """The registry of datasets. It stores the description that a reader's class gives of its dataset."""

    def register(self, name: str) -> Callable[[Any], Any]:
        """Return a class decorator for a reader: `@DATASETS.register("robots")`."""
        check_name(name, self.kind)

        def add(reader: type[Dataset]) -> type[Dataset]:
            self._put(name, describe(reader, name), (reader.__module__, reader.__qualname__))
            return reader

        return add

    def _read_file(self, path: Path) -> Brought[DatasetInfo]:
        if path.suffix == ".py":
            return super()._read_file(path)
        from ._folder import describe_folder

        ref, info = describe_folder(path)
        return Brought(ref, info, ("", info.name))


DATASETS = DatasetRegistry("dataset", "fmtlbench.data.datasets")


def describe(reader: type[Dataset], name: str) -> DatasetInfo:
    """Return the description that a reader's class gives of the dataset `name`, and set it as the class's `info`."""
    if not (isinstance(reader, type) and issubclass(reader, Dataset)):
        raise UsageError(f"dataset {name!r}: {reader!r} is not a subclass of fmtlbench.data.datasets.Dataset")
    for field in ("title", "description", "tasks"):
        if not getattr(reader, field, None):
            raise UsageError(f"dataset {name!r}: {reader.__qualname__} has no {field}; add it to the class")
    layouts = (reader, *reader.other_layouts)
    info = DatasetInfo(
        name,
        check_name(reader.domain or name, "domain"),
        reader.source,
        reader.title,
        tuple(reader.tasks),
        {task: tuple(names) for task, names in reader.class_names.items()},
        reader.description,
        layouts,
        reader.metric_options,
        reader.official,
        reader.open_tasks,
    )
    _check_tasks(info)
    for layout in layouts:
        layout.info = info
    return info


def _check_tasks(info: DatasetInfo) -> None:
    from ...tasks import TASKS

    for task in info.tasks:
        if task not in TASKS:
            raise unknown("task", task, TASKS, f"dataset {info.name!r}")
        if TASKS[task].kind.outputs is None and not info.class_names.get(task):
            raise UsageError(f"dataset {info.name!r}: {task} has classes; name them in class_names")
    for task in info.class_names:
        if task not in info.tasks:
            raise UsageError(f"dataset {info.name!r}: class_names of {task!r}, which is none of its tasks")


def domains(files: tuple[str, ...] = ()) -> dict[str, DatasetInfo]:
    """Return one dataset for every domain, including the datasets defined by the given files."""
    named = {info.domain: info for info in DATASETS.values()}
    return named | {info.domain: info for info in map(dataset_of_file, files)}


def dataset_for(domain: str, source: str, file: str | None = None) -> DatasetInfo:
    """Return the dataset that stands for a domain.

    Args:
        domain: its name in scenarios.
        source: `data.source`; ignored for a domain that has only one dataset.
        file: the .py or .yml file that defines the dataset, if it is not installed.
    """
    if file is not None:
        return dataset_of_file(file)
    there = [info for info in DATASETS.values() if info.domain == domain]
    for info in there:
        if info.source == source or len(there) == 1:
            return info
    raise unknown("dataset for domain", domain, sorted({info.domain for info in DATASETS.values()}))


def dataset_of_file(path: str) -> DatasetInfo:
    """Return the dataset that a file defines: a reader's class (.py), or a folder's description (.yml)."""
    return _bring(path)[1]


def find_dataset(name: str) -> DatasetInfo:
    """Return the dataset of a name, or that a .py or .yml file brings."""
    if name.endswith((".py", ".yml", ".yaml")):
        return dataset_of_file(name)
    if name not in DATASETS:
        raise unknown("dataset", name, DATASETS)
    return DATASETS[name]


def identify_dataset_file(path: str) -> str:
    """Return a sha256 of what decides a dataset that a file brings: the file, and the files that belong to it."""
    return _bring(path)[0].content


def _bring(path: str) -> tuple[Ref, DatasetInfo]:
    if not Path(path).is_file():
        raise UsageError(f"no such dataset file: {path}")
    if not path.endswith((".py", ".yml", ".yaml")):
        raise UsageError(
            f"{path}: expected a dataset as a .py file with its reader or a .yml file that describes a folder"
        )
    return DATASETS.bring(path)
