"""A split of an embedded domain, rendered on first use and read from the cache afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache as cache_results
from typing import Any

import numpy as np

from ....base.cache_folder import cache_root
from ....base.errors import UsageError, unknown
from ....base.refs import identify_source
from ....tasks import TASKS
from .._dataset import Dataset, SampleRangeError
from .._info import DatasetInfo
from . import cache
from .spec import VERSION, check_count, check_size, check_split, domain

CHUNK = 16  # samples between two writes, and between two progress reports

Progress = Callable[[int, int], None]


@cache_results
def describe(name: str) -> DatasetInfo:
    """Return the description of an embedded dataset."""
    spec = domain(name)
    return DatasetInfo(
        name=name,
        domain=spec.stands_for,
        source="synth",
        title=name,
        tasks=spec.tasks,
        class_names=spec.class_names,
        description=spec.description,
        readers=(SynthDataset,),
        metric_options={"odsf": {"max_dist": spec.edge_tolerance, "gt": "plain"}},
        open_tasks=True,
    )


class SynthDataset(Dataset):
    """`length` samples of a split; sample i is `generate(name, split, i, size)`.

    Args:
        name: a key of DOMAINS.
        split: 'train', 'test' or 'pretrain'.
        length: how many samples; the first n of a longer dataset are those of a shorter one.
        size: height and width in pixels.
        cache_dir: where to keep the rendered arrays; by default $FMTLBENCH_CACHE or the user's cache folder.
        progress: called with (done, total) while rendering, not when the cache has it all.
        keys: which of 'image' and the tasks to keep, also tasks that the domain does not list but scenes can be asked
            for (`TaskSpec.from_scene`); by default the image and what it lists.
    """

    source = "synth"
    stacked = True

    def __init__(
        self,
        name: str,
        split: str,
        length: int,
        size: tuple[int, int] = (64, 64),
        cache_dir: str | os.PathLike | None = None,
        progress: Progress | None = None,
        keys: tuple[str, ...] | None = None,
    ) -> None:
        self.spec = domain(name)
        self.name, self.split = name, check_split(split)
        self.length, self.size = check_count(length, "length", 1), check_size(size)
        self.info = describe(name)
        self.tasks, self.classes = self.spec.tasks, self.spec.classes
        self.class_names = self.spec.class_names
        usual, every = ("image", *self.tasks), ("image", *self.info.all_tasks())
        for key in keys or ():
            if key not in every:
                raise unknown("key", key, every, where=name)
        self.keys = tuple(key for key in every if key in (keys or usual))
        some = "" if self.keys == usual else f"-{'-'.join(self.keys)}"
        # Labels of further tasks are made by their own code: another one has another folder.
        code = {key: identify_source(TASKS[key].from_scene) for key in self.keys if key not in usual}
        if made_by := {key: source for key, source in code.items() if source}:
            some += f"-{hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:12]}"
        self._cache_dir, self._progress = cache_dir, progress
        self._about = {"version": VERSION, "name": name, "split": split, "length": self.length, "size": [*self.size]}
        if made_by:
            self._about["made_by"] = made_by
        self._layout = {key: _format(key, self.length, self.size) for key in self.keys}
        height, width = self.size
        self.folder = cache_root(cache_dir) / f"{name}-{split}-{height}x{width}-{self.length}-v{VERSION}{some}"
        self._arrays, self._sums = self._open()

    @classmethod
    def open(
        cls,
        info: DatasetInfo,
        split: str,
        data_root: str | os.PathLike | None = None,
        layout: str | None = None,
        *,
        limit: int,
        size: tuple[int, int],
        tasks: Iterable[str] | None = None,
        progress: Progress | None = None,
        **unused: Any,
    ) -> SynthDataset:
        """Open a split; arguments about files and layouts are ignored, because the data are rendered."""
        further = [task for task in tasks or () if task not in info.tasks]
        return cls(info.name, split, limit, size, progress=progress, keys=("image", *info.tasks, *further))

    def __reduce__(self):
        # A worker process maps the same files instead of receiving a copy of them.
        return type(self), (self.name, self.split, self.length, self.size, self._cache_dir, None, self.keys)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        """Return one sample with every key, as writable copies."""
        index = int(self._check(np.asarray(index))[()])
        return {key: np.array(self._arrays[key][index]) for key in self.keys}

    def image_id(self, index: int) -> str:
        """Return the image's number as text."""
        return f"{index:05d}"

    def sample(self, index: int, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Return the image and the labels that `keys` names, by default all."""
        return {key: value[0] for key, value in self.batch(np.array([index]), keys).items()}

    def batch(self, indices: np.ndarray, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Return samples stacked to [B, ...]; only the requested keys are read from disk."""
        indices = self._check(np.atleast_1d(np.asarray(indices)))
        return {key: np.asarray(self.arrays(key))[indices] for key in (self.keys if keys is None else keys)}

    def arrays(self, key: str) -> np.ndarray:
        """Return all samples of one key, [length, H, W, ...], read-only and memory-mapped."""
        if key not in self._arrays:
            raise unknown("key", key, self.keys, where=self.name)
        return self._arrays[key]

    @property
    def cached(self) -> bool:
        """Whether the arrays are on disk, not only in memory."""
        return isinstance(self._arrays[self.keys[0]], np.memmap)

    @property
    def fingerprint(self) -> str:
        """sha256 of what was asked for and of the checksums of all arrays."""
        return hashlib.sha256(json.dumps([self._about, self._sums], sort_keys=True).encode()).hexdigest()

    def verify(self) -> bool:
        """Compare every byte with the checksums; if damaged, warn, rebuild the cache and return False."""
        bad = [key for key in self.keys if cache.checksum(self._arrays[key]) != self._sums[key]]
        if bad:
            warnings.warn(f"{self.folder}: {', '.join(bad)} damaged; rendering again", stacklevel=2)
            self._arrays = {}
            cache.discard(self.folder)
            self._arrays, self._sums = self._open()
        return not bad

    def _check(self, indices: np.ndarray) -> np.ndarray:
        if indices.size == 0:
            return indices.astype(np.int64)
        if indices.dtype.kind not in "iu":
            raise UsageError(f"{self.name}: sample numbers must be integers, got {indices.dtype}")
        low, high = indices.min(), indices.max()
        if low < 0 or high >= self.length:
            wrong = low if low < 0 else high
            raise SampleRangeError(f"{self.name} {self.split}: no sample {wrong}, valid: 0 to {self.length - 1}")
        return indices

    def _open(self) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        try:
            return cache.read(self.folder, self._about, self._layout)
        except FileNotFoundError:
            pass
        except cache.BrokenCacheError as error:
            warnings.warn(f"{self.folder}: {error}; rendering again", stacklevel=3)
        try:
            cache.build(self.folder, self._about, self._layout, self._render)
            return cache.read(self.folder, self._about, self._layout)
        except (OSError, cache.BrokenCacheError) as error:
            warnings.warn(f"{self.folder}: cannot cache ({error}); keeping the data in memory", stacklevel=3)
            return cache.in_memory(self._layout, self._render)

    def _render(self) -> Iterator[dict[str, np.ndarray]]:
        from .sample import generate

        for start in range(0, self.length, CHUNK):
            stop = min(start + CHUNK, self.length)
            samples = [generate(self.name, self.split, index, self.size, self.keys) for index in range(start, stop)]
            yield {key: np.stack([sample[key] for sample in samples]) for key in self.keys}
            if self._progress:
                self._progress(stop, self.length)


def _format(key: str, length: int, size: tuple[int, int]) -> tuple[np.dtype, tuple[int, ...]]:
    """Return dtype and shape of all samples of a key."""
    dtype, channels = (np.dtype("uint8"), (3,)) if key == "image" else (TASKS[key].kind.dtype, TASKS[key].kind.channels)
    return dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype, (length, *size, *channels)
