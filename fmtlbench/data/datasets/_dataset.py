"""An open split of a dataset: the protocol that callers rely on, and the base class of all readers."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ...base.errors import FmtlbenchError, UsageError, describe_error, short_repr, unknown
from ...base.refs import identify_source

if TYPE_CHECKING:
    from ._info import DatasetInfo, OfficialList

NAMED = 5  # how many files an error message lists
Sample = dict[str, np.ndarray]
Progress = Callable[[int, int], None]


class SampleRangeError(UsageError, IndexError):
    """A sample number outside the dataset; an IndexError too, so that `for sample in dataset` ends."""


class Provenance(NamedTuple):
    """What a key is made of: its variant's name, what all images share, and each image's id and file sizes."""

    name: str
    common: list[Any]
    images: list[list[Any]]


class Reader(Protocol):
    """An open split, as views, batches, partitions and reports use it."""

    info: DatasetInfo
    split: str
    size: tuple[int, int]
    resize: str
    stacked: bool  # True: all images have `size`, `batch` stacks them. False: each has its own size, `sample` gives one
    fingerprint: str

    def __len__(self) -> int: ...

    def image_id(self, index: int) -> str:
        """Return the image's id."""

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        """Return the image ("image") and labels by task."""

    def batch(self, indices: np.ndarray, keys: Iterable[str] | None = None) -> Sample:
        """Return samples of one size stacked to [B, ...]."""

    def eligible(self, tasks: tuple[str, ...]) -> np.ndarray | None:
        """Return the images a client with exactly these tasks may use; None means all."""

    def prepare_workers(self) -> None:
        """Do once, before processes are forked, what every loading process would need."""


class Dataset:
    """A split of a dataset. A subclass declares what it offers, lists its images and reads them.

    A sample is `image` [H, W, 3] uint8 and an array per task, in the form of the task's label kind, all of one height
    and width and at their original resolution.

    Args:
        folder: Where the files are: the folder named `archive` below the data root, or the data root itself for a
            dataset without `archive` (None where no data root is set).
        split: "train" or "test".
        size: Height and width of the images in batches; samples keep their own.
        tasks: Labels to read; by default all.
        limit: Use only this many images, the first of the list.
        purpose: What the labels are for, "training" or "scoring", for tasks where they differ (`twofold`); by default
            decided by the split.
        complete: Refuse data of which files are missing; otherwise `missing` lists them.
        cache_dir: Where to keep slow results; by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: Called with (done, total) where something takes long.
        resize: How images are brought to `size`: "none" pads and crops, "fixed" stretches.
        with_images: False reads labels alone, and images may be missing.
        ids: Images to read instead of those that the split lists.
    """

    # What the dataset offers. `domain`: its name in scenarios, if different from its own.
    title: ClassVar[str] = ""
    description: ClassVar[str] = ""
    domain: ClassVar[str] = ""
    source: ClassVar[str] = "real"
    tasks: Sequence[str] = ()
    class_names: ClassVar[Mapping[str, Sequence[str]]] = {}
    metric_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    official: ClassVar[Mapping[str, OfficialList]] = {}
    open_tasks: ClassVar[bool] = False
    version: ClassVar[int] = 1  # raise it whenever a reader gives other numbers for the same files

    # Where it is found: the folder below the data root, the globs that must match for a folder of another name to be
    # accepted, who distributes it, and the readers of its other layouts.
    archive: ClassVar[str] = ""
    marks: ClassVar[tuple[str, ...]] = ()
    distributed: ClassVar[str] = ""
    other_layouts: ClassVar[tuple[type[Dataset], ...]] = ()

    checks_itself: ClassVar[bool] = False  # whether `sample` refuses labels that cannot be; else others look at each
    twofold: ClassVar[tuple[str, ...]] = ()  # tasks whose labels differ by `purpose`
    stacked: ClassVar[bool] = False
    info: ClassVar[DatasetInfo]  # set when it is registered

    def __init__(
        self,
        folder: Path | None,
        split: str,
        size: tuple[int, int] | None = None,
        tasks: Iterable[str] | None = None,
        limit: int | None = None,
        purpose: str | None = None,
        complete: bool = True,
        cache_dir: Path | None = None,
        progress: Progress | None = None,
        resize: str = "none",
        with_images: bool = True,
        ids: Sequence[str] | None = None,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.split, self.size, self.resize = split, size, resize
        offered = tuple(type(self).tasks)
        self.tasks = offered if tasks is None else tuple(tasks)
        for task in self.tasks:
            if task not in offered:
                raise unknown("task", task, offered, self.info.name)
        self.with_images, self.complete = with_images, complete
        self.keys = (*(["image"] if with_images else []), *self.tasks)
        self.purpose = purpose or ("training" if split == "train" else "scoring")
        self.cache_dir, self.progress = cache_dir, progress
        self.missing: list[Path] = []
        self.ids = self._limited(self._list_checked(), limit) if ids is None else list(ids)
        if type(self).files_of is not Dataset.files_of:
            self._find_missing()

    @classmethod
    def open(
        cls, info: DatasetInfo, split: str, data_root: str | Path | None, layout: str | None, **options: Any
    ) -> Dataset:
        """Find the files of a split, and open it with the reader of their layout."""
        from ._roots import find_archive

        folder, reader = find_archive(info, data_root, layout)
        return reader(folder, split, **options)

    def list_images(self) -> list[str]:
        """Return the ids of all images of `self.split`, in their order."""
        raise NotImplementedError(f"{type(self).__qualname__}.list_images")

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        """Return the image and the labels that `keys` names (by default all), at native resolution."""
        raise NotImplementedError(f"{type(self).__qualname__}.sample")

    def files_of(self, index: int, key: str) -> Sequence[Path]:
        """Return the files that the image or a label is read from.

        Their sizes tell whether data have changed, and missing ones are refused when the dataset is opened.
        """
        return ()

    def eligible(self, tasks: tuple[str, ...]) -> np.ndarray | None:
        """Return the indices of the images a client with exactly these tasks may use; None means all."""
        return None

    @classmethod
    def check_folder(cls, folder: Path) -> None:
        """Refuse a folder of labels that this dataset does not read from."""

    def prepare_workers(self) -> None:
        """Do once, before loading processes are forked, what each of them would otherwise repeat."""

    @classmethod
    def explain_eligible(cls, tasks: tuple[str, ...]) -> str | None:
        """Return a sentence on which images a client with exactly these tasks may use; None if it may use all."""
        return None

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        return self.sample(index)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "progress": None}  # the callback only works in the process that opened the data

    def image_id(self, index: int) -> str:
        """Return the image's id, as its files are called."""
        return self.ids[self.check_index(index)]

    def batch(self, indices: np.ndarray, keys: Iterable[str] | None = None) -> Sample:
        """Return samples stacked to [B, ...]; all must have the same size."""
        keys = self.keys if keys is None else tuple(keys)
        samples = [self.sample(index, keys) for index in np.atleast_1d(indices)]
        shapes = {next(iter(sample.values())).shape[:2] for sample in samples}
        if len(shapes) > 1:
            listed = ", ".join(f"{h}×{w}" for h, w in sorted(shapes))
            raise UsageError(f"{self.info.name}: images of {listed} pixels do not stack; bring them to one size first")
        return {key: np.stack([sample[key] for sample in samples]) for key in keys}

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of what the samples are made of, as far as that is known without decoding them."""
        return digest([self.info.name, self.version, self.split, self.purpose, *map(self.provenance, self.keys)])

    @cached_property
    def lineage(self) -> str:
        """sha256 of the dataset's name, the split and its whole list: the same for any choice of tasks or images."""
        return digest([self.info.name, self.split, self.list_images()])

    def provenance(self, key: str) -> Provenance:
        """Return what the image or a label is made of: the version, the ids, and the sizes of their files."""
        name = self.variant_name(key)
        images = [[image, *map(file_size, self.files_of(index, key))] for index, image in enumerate(self.ids)]
        return Provenance(name, [self.version, name, *self.written_in()], images)

    def written_in(self) -> list[str]:
        """Return what identifies the code of a reader that is not this package's: what it gives may change with it."""
        source = identify_source(type(self))
        return [] if source is None else [source]

    def variant_name(self, key: str) -> str:
        """Return the key, with the purpose appended if the label differs by purpose."""
        return f"{key}-{self.purpose}" if key in self.twofold else key

    def digest_of(self, key: str) -> str:
        """Return the sha256 of a label's provenance, whatever other tasks the dataset was opened with."""
        return digest([self.lineage, *self.provenance(key)])

    def check_index(self, index: int) -> int:
        """Return the sample number as an int; refuse one that does not exist."""
        try:
            index = operator.index(index)
        except TypeError:
            raise UsageError(f"{self.info.name}: a sample number must be an integer, got {index!r}") from None
        if not 0 <= index < len(self.ids):
            raise SampleRangeError(f"{self.info.name} {self.split}: no sample {index}, valid: 0 to {len(self.ids) - 1}")
        return index

    def check_keys(self, keys: Iterable[str] | None) -> tuple[str, ...]:
        """Return the requested keys, by default all; refuse one that the dataset was not opened with."""
        chosen = self.keys if keys is None else tuple(keys)
        for key in chosen:
            if key not in self.keys:
                raise unknown("key", key, self.keys, self.info.name)
        return chosen

    def origin_of_list(self) -> str:
        """Return the file that lists the split's ids, or another name for the list, for error messages."""
        return f"{self.info.name} {self.split}"

    def _list_checked(self) -> list[str]:
        try:
            ids = list(self.list_images())
        except FmtlbenchError:
            raise
        except (Exception, SystemExit) as error:
            raise FmtlbenchError(
                f"{self.info.name} {self.split}: list_images failed: {describe_error(error)}"
            ) from error
        if not ids or not all(isinstance(image, str) and image for image in ids) or len(set(ids)) < len(ids):
            raise FmtlbenchError(
                f"{self.info.name} {self.split}: list_images gave {short_repr(ids)}, expected the ids of images: "
                "texts, each once, at least one"
            )
        return ids

    def _find_missing(self) -> None:
        files = {path for index in range(len(self)) for key in self.keys for path in self.files_of(index, key)}
        self.missing = sorted(path for path in files if not path.is_file())
        if self.missing and self.complete:
            some = ", ".join(map(str, self.missing[:NAMED]))
            more = f" and {len(self.missing) - NAMED} more" if len(self.missing) > NAMED else ""
            raise FmtlbenchError(
                f"{self.info.name} {self.split}: {len(self.missing)} files are missing that {self.origin_of_list()} "
                f"asks for: {some}{more}"
            )

    def _limited(self, ids: list[str], limit: int | None) -> list[str]:
        if limit is not None and not 1 <= limit <= len(ids):
            raise UsageError(
                f"data.{self.split}_samples.{self.info.domain} is {limit}, but {self.origin_of_list()} lists "
                f"{len(ids)} images"
            )
        return ids[:limit]


def read_sample(dataset: Any, index: int, keys: Sequence[str]) -> Sample:
    """Return a sample of an open dataset, with everything that was asked for; what goes wrong names the image.

    Readers may be other people's code: an exception, a missing key or an image of another form is told in one line.
    """
    where = f"{dataset.info.name} {dataset.split}, image {dataset.image_id(index)}"
    try:
        sample = dataset.sample(index, keys)
    except FmtlbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise FmtlbenchError(f"{where}: sample failed: {describe_error(error)}") from error
    if not isinstance(sample, Mapping) or (missing := [key for key in keys if key not in sample]):
        gave = f"no {', '.join(missing)}" if isinstance(sample, Mapping) else type(sample).__name__
        raise FmtlbenchError(f"{where}: sample gave {gave}, expected arrays for {', '.join(keys)}")
    image = sample.get("image")
    if image is not None and (image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3):
        raise FmtlbenchError(f"{where}: {image.dtype} {list(image.shape)}, expected an image of uint8 [H, W, 3]")
    return dict(sample)


def file_size(path: Path) -> int:
    """Return the size of a file in bytes, -1 if it is missing."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def digest(about: list[Any]) -> str:
    """Return the sha256 of plain values."""
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()
