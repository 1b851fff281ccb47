"""Decoded real data on disk: what decoding gave, bit for bit, memory-mapped; made with `fmtlbench data cache`.

A split is a folder of parts of some samples each. Parts are written once and appear whole, so a build that was
interrupted goes on where it stopped, and two builds at once share the work at worst doing a part twice.
"""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FmtlbenchError
from .cache_folder import BrokenCacheError, cache_root, sweep
from .cache_part import Part, Sample, write_part

FORMAT = 1  # raise it whenever the files change
SAMPLES = 32  # per part: little work lost when interrupted, few files

Progress = Callable[[int, int], None]


def cache_folder(dataset: Any, cache_dir: Path | None = None) -> Path:
    """Where the decoded samples of exactly this data belong."""
    name = f"{dataset.domain}-{dataset.split}-{dataset.fingerprint[:32]}-v{FORMAT}"
    return cache_root(cache_dir) / "decoded" / name


def build_cache(dataset: Any, cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Decode what is not in the cache yet; what is there is read and checked, and made again if damaged.

    Args:
        dataset: a reader of real data, see fmtlbench.data.real.
        cache_dir: by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: called with (done, total) samples.
    """
    folder = cache_folder(dataset, cache_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder, ".*.tmp")
        _build(dataset, folder, progress or (lambda done, total: None))
    except OSError as error:
        raise FmtlbenchError(
            f"{folder}: cannot write ({error.strerror or error}); what is complete stays, and the same command goes on"
        ) from None
    return folder


def open_cached(dataset: Any, cache_dir: Path | None = None) -> CachedDataset | None:
    """The dataset read from its cache, if that is complete; a damaged one is told of and left alone."""
    folder = cache_folder(dataset, cache_dir)
    if not folder.is_dir():
        return None
    try:
        return CachedDataset(dataset, folder)
    except FileNotFoundError:
        return None
    except BrokenCacheError as error:
        warnings.warn(
            f"{error}; reading the archive instead, `fmtlbench data cache {dataset.domain}` repairs it", stacklevel=2
        )
        return None


class CachedDataset:
    """A reader whose samples come out of the cache; everything else is asked of the reader.

    Arrays are read-only. One that turns out damaged is read from the archive instead, with a warning.
    """

    def __init__(self, source: Any, folder: Path) -> None:
        self.source, self.folder = source, folder
        self._parts = [Part(_path(folder, part), _about(source, part)) for part in range(_part_count(source))]

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

    def sample(self, index: int, keys: Iterable[str] | None = None) -> Sample:
        """As the reader's, bit for bit."""
        keys = _keys(self.source) if keys is None else tuple(keys)
        if not 0 <= operator.index(index) < len(self) or not set(keys) <= set(_keys(self.source)):
            return self.source.sample(index, keys)  # it knows what to say
        return {key: self._read(index, key) for key in keys}

    def _read(self, index: int, key: str) -> np.ndarray:
        try:
            return self._parts[index // SAMPLES].read(index % SAMPLES, key)
        except BrokenCacheError as error:
            warnings.warn(f"{error}; reading {self.source.name(index)} from the archive instead", stacklevel=4)
            return self.source.sample(index, (key,))[key]


def _build(dataset: Any, folder: Path, progress: Progress) -> None:
    total, missing, done = len(dataset), [], 0
    for part in range(_part_count(dataset)):
        problem = _problem(dataset, folder, part)
        if problem is None:
            done += _about(dataset, part)["count"]
            progress(done, total)
            continue
        missing.append(part)
        if problem:
            warnings.warn(f"{problem}; decoding it again", stacklevel=3)
    random.Random().shuffle(missing)  # two builds at once mostly work on different parts
    for part in missing:
        about = _about(dataset, part)
        if _problem(dataset, folder, part) is not None:  # another process may have been faster
            numbers = range(part * SAMPLES, part * SAMPLES + about["count"])
            write_part(_path(folder, part), about, (dataset.sample(index, _keys(dataset)) for index in numbers))
        done += about["count"]
        progress(done, total)


def _problem(dataset: Any, folder: Path, part: int) -> str | None:
    """None: the part is there and whole, every byte was read. Empty: it is not there."""
    try:
        Part(_path(folder, part), _about(dataset, part)).verify()
    except FileNotFoundError:
        return ""
    except BrokenCacheError as error:
        return str(error)
    return None


def _part_count(dataset: Any) -> int:
    return -(-len(dataset) // SAMPLES)


def _path(folder: Path, part: int) -> Path:
    return folder / f"part-{part:05d}.bin"


def _about(dataset: Any, part: int) -> dict[str, Any]:
    """What a part must say of itself to be taken for the right one."""
    count = min(SAMPLES, len(dataset) - part * SAMPLES)
    about = {"format": FORMAT, "fingerprint": dataset.fingerprint, "keys": list(_keys(dataset))}
    return {**about, "part": part, "count": count}


def _keys(dataset: Any) -> tuple[str, ...]:
    return ("image", *dataset.tasks)
