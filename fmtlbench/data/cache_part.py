"""One file of a decoded cache: the arrays of some samples one after the other, then an index of them.

    arrays, each at a multiple of 64 bytes | index as JSON | length and checksum of the index, magic

The file is written completely or not at all. Every stored array carries the sum of its 64-bit words, which is compared
whenever the array is read: this detects all damage within one word and nearly all larger damage.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..base.cache_folder import BrokenCacheError
from ..base.files import replace_file

ALIGN = 64
TAIL = struct.Struct("<QL8s")  # length of the index, its CRC-32, magic
MAGIC = b"fmtlpart"
Sample = dict[str, np.ndarray]


class Part:
    """An open part. Its size, index and description have been checked; each array is checked when it is read."""

    def __init__(self, path: Path, about: dict[str, Any], sources: list[Any]) -> None:
        """Map the file.

        Args:
            path: of the file.
            about: the description that its index must contain.
            sources: what its first samples must have been made of; it may hold more samples.

        Raises:
            FileNotFoundError: the part does not exist, or it holds only some of these samples.
            BrokenCacheError: the part exists but is damaged or made of other files.
        """
        self.path = path
        try:
            self._bytes = np.memmap(path, np.uint8, "r")
            index = _read_index(self._bytes)
            theirs = index["sources"]
            common = min(len(theirs), len(sources))
            if {key: index[key] for key in about} != about or theirs[:common] != sources[:common]:
                raise BrokenCacheError("made of other files than are in the archive now")
            if len(theirs) != len(index["samples"]):
                raise BrokenCacheError("describes other samples than it holds")
            if len(theirs) < len(sources):
                raise FileNotFoundError(path)  # written by a run with fewer images
            self._samples, self._sha256, self._end = index["samples"], index["sha256"], index["bytes"]
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, TypeError, BrokenCacheError) as error:
            raise BrokenCacheError(f"{path}: {error}") from None

    def read(self, place: int, key: str) -> np.ndarray:
        """Return an array of the part's sample number `place`, read-only unless it was stored as codes."""
        stored = self._samples[place][key]
        array = self._read_stored(stored)
        if "table" in stored:
            from .cache_codes import decoded

            return decoded(array, self._read_stored(stored["table"]))
        return array

    def verify(self) -> None:
        """Read every byte and raise BrokenCacheError if the arrays are damaged."""
        if hashlib.sha256(self._bytes[: self._end]).hexdigest() != self._sha256:
            raise BrokenCacheError(f"{self.path}: the arrays are damaged")

    def _read_stored(self, stored: dict[str, Any]) -> np.ndarray:
        try:
            start, dtype, shape = stored["at"], np.dtype(stored["dtype"]), tuple(stored["shape"])
            size = dtype.itemsize * int(np.prod(shape))
            block = self._bytes[start : start + -(-size // ALIGN) * ALIGN].view(np.ndarray)
            if word_sum(block) != stored["sum"]:
                raise BrokenCacheError(f"{self.path}: damaged between bytes {start} and {start + size}")
            return block[:size].view(dtype).reshape(shape)
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenCacheError(f"{self.path}: {error}") from None


def write_part(path: Path, about: dict[str, Any], sources: list[Any], samples: Iterable[Sample]) -> None:
    """Write all `samples` into one file; on an error no file is left."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            digest = hashlib.sha256()
            listed = [{key: _store(file, digest, value) for key, value in sample.items()} for sample in samples]
            index = {**about, "sources": sources, "samples": listed}
            index |= {"bytes": file.tell(), "sha256": digest.hexdigest()}
            text = json.dumps(index).encode()
            file.write(text)
            file.write(TAIL.pack(len(text), zlib.crc32(text), MAGIC))

    replace_file(path, write)


def word_sum(block: np.ndarray) -> int:
    """Return the sum of the 64-bit words of a block whose length is a multiple of eight bytes."""
    return int(np.add.reduce(block.view(np.uint64), dtype=np.uint64))


def _read_index(content: np.ndarray) -> dict[str, Any]:
    if len(content) < TAIL.size:
        raise BrokenCacheError("cut short")
    length, crc, magic = TAIL.unpack(content[-TAIL.size :].tobytes())
    text = content[max(0, len(content) - TAIL.size - length) : -TAIL.size].tobytes()
    if magic != MAGIC or zlib.crc32(text) != crc:
        raise BrokenCacheError("cut short or damaged at its end")
    index = json.loads(text)
    if index["bytes"] + length + TAIL.size != len(content):
        raise BrokenCacheError("does not have the bytes that its index describes")
    return index


def _store(file: BinaryIO, digest: Any, array: np.ndarray) -> dict[str, Any]:
    """Append an array to the file, as codes and a table if it is float32 with few different values."""
    if array.dtype == np.float32:
        from .cache_codes import encoded

        codes, table = encoded(array)
        if table is not None:
            return {**_append(file, digest, codes), "table": _append(file, digest, table)}
    return _append(file, digest, array)


def _append(file: BinaryIO, digest: Any, array: np.ndarray) -> dict[str, Any]:
    start, size = file.tell(), array.nbytes
    block = np.zeros(-(-size // ALIGN) * ALIGN, np.uint8)
    block[:size] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    file.write(block.data)
    digest.update(block.data)
    return {"at": start, "dtype": array.dtype.str, "shape": list(array.shape), "sum": word_sum(block)}
