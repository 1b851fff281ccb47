"""Keep rendered samples on disk: one memory-mapped .npy per key, in a folder written completely or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ....base.cache_folder import BrokenCacheError
from ....base.files import replace_folder, write_json

INDEX = "index.json"

Layout = dict[str, tuple[np.dtype, tuple[int, ...]]]  # key -> dtype and shape [length, ...]
Chunks = Callable[[], Iterator[dict[str, np.ndarray]]]


def checksum(array: np.ndarray) -> str:
    """Return the sha256 of the numbers in C order, read in slices so that a large file need not fit in memory."""
    digest = hashlib.sha256()
    for start in range(0, len(array), 256):
        digest.update(np.ascontiguousarray(array[start : start + 256]).data)
    return digest.hexdigest()


def read(folder: Path, about: dict[str, Any], layout: Layout) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Open the arrays and return them with their stored checksums; only sizes and headers are checked.

    Raises:
        FileNotFoundError: there is no such folder.
        BrokenCacheError: the folder is damaged or holds other data.
    """
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if {key: index[key] for key in about} != about or set(index["arrays"]) != set(layout):
            raise BrokenCacheError(f"{INDEX} describes other data")
        arrays, sums = {}, {}
        for key, (dtype, shape) in layout.items():
            entry, path = index["arrays"][key], folder / f"{key}.npy"
            if path.stat().st_size != entry["bytes"]:
                raise BrokenCacheError(f"{path.name} has {path.stat().st_size} bytes, expected {entry['bytes']}")
            arrays[key] = np.load(path, mmap_mode="r", allow_pickle=False)
            if arrays[key].dtype != dtype or arrays[key].shape != shape:
                raise BrokenCacheError(f"{path.name} holds {arrays[key].dtype} {arrays[key].shape}")
            sums[key] = str(entry["sha256"])
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise BrokenCacheError(f"{type(error).__name__}: {error}") from error
    return arrays, sums


def build(folder: Path, about: dict[str, Any], layout: Layout, chunks: Chunks) -> None:
    """Write the chunks into a temporary folder, then rename it to `folder`."""

    def is_whole(there: Path) -> bool:
        """Return whether another process has built the same cache in the meantime, which is then kept."""
        try:
            read(there, about, layout)
        except (BrokenCacheError, FileNotFoundError):
            return False
        return True

    with replace_folder(folder, keeps=is_whole) as temporary:
        entries = _write(temporary, layout, chunks)
        write_json(temporary / INDEX, {**about, "arrays": entries})  # last, because a folder without it is not valid


def in_memory(layout: Layout, chunks: Chunks) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the same arrays and checksums as `read`, built in memory."""
    arrays = {key: np.empty(shape, dtype) for key, (dtype, shape) in layout.items()}
    start = 0
    for chunk in chunks():
        for key, array in arrays.items():
            array[start : start + len(chunk[key])] = chunk[key]
        start += len(chunk[key])
    for array in arrays.values():
        array.flags.writeable = False  # like the memory maps
    return arrays, {key: checksum(array) for key, array in arrays.items()}


def discard(folder: Path) -> None:
    """Rename the folder, which is one step, then delete it."""
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    with contextlib.suppress(FileNotFoundError):  # another process has removed it
        folder.rename(aside / "old")
    shutil.rmtree(aside, ignore_errors=True)


def _write(folder: Path, layout: Layout, chunks: Chunks) -> dict[str, dict[str, Any]]:
    """Write the chunks into .npy files and return their sizes and checksums.

    Files are written, not memory-mapped, because on a full disk a memory map would kill the process.
    """
    digests = {key: hashlib.sha256() for key in layout}
    with contextlib.ExitStack() as stack:
        files = {key: stack.enter_context((folder / f"{key}.npy").open("wb")) for key in layout}
        for key, (dtype, shape) in layout.items():
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(files[key], header)
        for chunk in chunks():
            for key, file in files.items():
                data = np.ascontiguousarray(chunk[key], dtype=layout[key][0]).data
                file.write(data)
                digests[key].update(data)
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
        return {key: {"bytes": file.tell(), "sha256": digests[key].hexdigest()} for key, file in files.items()}
