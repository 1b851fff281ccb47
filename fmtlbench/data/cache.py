"""Keep decoded real data on disk, bit for bit and memory-mapped; `fmtlbench data cache` builds this cache.

A split is a folder of parts: the images of some samples, or their labels of one task. So a run that uses only some
tasks or the first images can read the cache of the whole split. A part is written completely or not at all: a build
that was interrupted continues where it stopped, and two builds at the same time at worst write a part twice.
"""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..base.cache_folder import BrokenCacheError, cache_root
from ..base.errors import FmtlbenchError
from ..base.files import remove_stale
from .cache_part import Part, Sample, write_part

FORMAT = 2  # raise it whenever the file format changes
SAMPLES = 64  # per part: few enough to lose little work when interrupted, enough to need few files

Progress = Callable[[int, int], None]


def cache_folder(dataset: Any, cache_dir: Path | None = None) -> Path:
    """Return the folder for the decoded samples of this archive's split; each part records its source files."""
    name = f"{dataset.info.domain}-{dataset.split}-{dataset.lineage[:32]}-v{FORMAT}"
    return cache_root(cache_dir) / "decoded" / name


def build_cache(dataset: Any, cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Decode what the cache lacks, check what it has, and decode damaged or outdated parts again.

    Args:
        dataset: a reader of real data, see fmtlbench.data.datasets; its tasks and images are cached.
        cache_dir: by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: called with (done, total) arrays.
    """
    folder = cache_folder(dataset, cache_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_stale(folder, ".*.tmp")
        _build(dataset, folder, progress or (lambda done, total: None))
    except OSError as error:
        raise FmtlbenchError(
            f"{folder}: cannot write ({error.strerror or error}); what is complete stays, and the same command goes on"
        ) from None
    return folder


def open_cached(dataset: Any, cache_dir: Path | None = None) -> CachedDataset | None:
    """Return the dataset backed by its cache, or None if no key is cached completely; warn about damaged parts."""
    folder = cache_folder(dataset, cache_dir)
    if not folder.is_dir():
        return None
    cached = CachedDataset(dataset, folder)
    return cached if cached.cached_keys else None


class CachedDataset:
    """A reader that takes samples from the cache, and everything that is not there from the original reader.

    Cached arrays are read-only. A damaged one is read from the archive instead, with a warning.
    """

    def __init__(self, source: Any, folder: Path) -> None:
        self.source, self.folder = source, folder
        self._parts = {}
        for key in _keys(source):
            made_of = source.provenance(key)
            try:
                self._parts[key] = [_open_part(folder, made_of, part) for part in range(_part_count(source))]
            except FileNotFoundError:
                continue
            except BrokenCacheError as error:
                warnings.warn(
                    f"{error}; reading {key} from the archive instead, `fmtlbench data cache {source.info.name}` "
                    "repairs it",
                    stacklevel=3,
                )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "source" not in self.__dict__:  # while being unpickled
            raise AttributeError(name)
        return getattr(self.source, name)

    def __reduce__(self):
        return type(self), (self.source, self.folder)  # a worker process maps the same files

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Sample:
        return self.sample(index)

    @property
    def cached_keys(self) -> tuple[str, ...]:
        """The keys that are read from the cache instead of the archive."""
        return tuple(self._parts)

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        """Return the same sample as the original reader, bit for bit."""
        keys = _keys(self.source) if keys is None else tuple(keys)
        if not 0 <= operator.index(index) < len(self) or not set(keys) <= set(_keys(self.source)):
            return self.source.sample(index, keys)  # it raises the right error
        found = {key: self._read(index, key) for key in keys if key in self._parts}
        absent = [key for key in keys if found.get(key) is None]
        found |= self.source.sample(index, absent) if absent else {}
        return {key: found[key] for key in keys}

    def _read(self, index: int, key: str) -> np.ndarray | None:
        try:
            return self._parts[key][index // SAMPLES].read(index % SAMPLES, key)
        except BrokenCacheError as error:
            warnings.warn(f"{error}; reading {self.source.image_id(index)} from the archive instead", stacklevel=4)
            return None


def _build(dataset: Any, folder: Path, progress: Progress) -> None:
    origins = {key: dataset.provenance(key) for key in _keys(dataset)}
    parts = [(part, key) for part in range(_part_count(dataset)) for key in origins]
    total, missing, done = len(dataset) * len(origins), [], 0
    for part, key in parts:
        problem = _find_problem(folder, origins[key], part)
        if problem is None:
            done += len(_numbers(dataset, part))
            progress(done, total)
            continue
        missing.append((part, key))
        if problem:
            warnings.warn(f"{problem}; decoding it again", stacklevel=3)
    random.Random().shuffle(missing)  # two builds at once mostly work on different parts
    for part, key in missing:
        numbers = _numbers(dataset, part)
        if _find_problem(folder, origins[key], part) is not None:  # another process may have written it meanwhile
            samples = (dataset.sample(index, (key,)) for index in numbers)
            write_part(_path(folder, origins[key], part), *_describe_part(origins[key], part), samples)
        done += len(numbers)
        progress(done, total)


def _find_problem(folder: Path, made_of: Any, part: int) -> str | None:
    """Return None if the part is complete and undamaged, "" if it does not exist, else what is wrong with it."""
    try:
        _open_part(folder, made_of, part).verify()
    except FileNotFoundError:
        return ""
    except BrokenCacheError as error:
        return str(error)
    return None


def _open_part(folder: Path, made_of: Any, part: int) -> Part:
    return Part(_path(folder, made_of, part), *_describe_part(made_of, part))


def _path(folder: Path, made_of: Any, part: int) -> Path:
    return folder / f"{made_of.name}-{part:05d}.bin"


def _describe_part(made_of: Any, part: int) -> tuple[dict[str, Any], list[Any]]:
    """Return the description that a valid part must carry, and the description of each of its samples."""
    about = {"format": FORMAT, "made_of": made_of.common, "part": part}
    return about, made_of.images[part * SAMPLES : (part + 1) * SAMPLES]


def _numbers(dataset: Any, part: int) -> range:
    return range(part * SAMPLES, min((part + 1) * SAMPLES, len(dataset)))


def _part_count(dataset: Any) -> int:
    return -(-len(dataset) // SAMPLES)


def _keys(dataset: Any) -> tuple[str, ...]:
    return ("image", *dataset.tasks)
