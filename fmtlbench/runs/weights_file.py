"""The weights file of a finished run: plain safetensors, written tensor by tensor and described without torch.

Names are `<client>/<name in its network>`. A tensor that is there already is not written again: `aliases` in the
file's metadata says where it is. A tensor of 8-bit numbers goes with one of scales, `<its name>:scale`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from ..base.files import remove_stale, replace_file
from ..base.stored import FORMAT, DamagedRun, check_format

SCALE = ":scale"
PIECE = 1 << 20  # bytes that are read at a time
_SIZES = {8: ("F64", "I64", "U64"), 4: ("F32", "I32", "U32"), 2: ("F16", "BF16", "I16", "U16"), 1: ("I8", "U8", "BOOL")}
_SIZE_OF = {kind: size for size, kinds in _SIZES.items() for kind in kinds}
_TEMPORARY = ".weights-"
Explain = Callable[[], AbstractContextManager[Any]]


class WeightsWriter:
    """Takes tensors as bytes, one at a time, and joins them into one file."""

    def __init__(self, place: Path) -> None:
        """Keep the bytes in files of this folder: all at once may be more than fits into memory."""
        # By the size of a number, so that every tensor of the joined file begins at a multiple of it.
        self._parts: dict[int, BinaryIO] = {size: (place / str(size)).open("w+b") for size in _SIZES}
        self._tensors: dict[str, tuple[str, list[int], int, int]] = {}  # name → type, shape, start and stop in its part
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.aliases: dict[str, str] = {}
        self.clients: list[str] = []

    def add(self, name: str, kind: str, shape: Sequence[int], content: bytes | memoryview) -> None:
        """Add a tensor of a safetensors type; equal ones are written once."""
        key = (kind, tuple(shape), hashlib.sha256(content).digest())
        if (first := self._known.setdefault(key, name)) != name:
            self.aliases[name] = first
            return
        part = self._parts[_SIZE_OF[kind]]
        start = part.tell()
        part.write(content)
        self._tensors[name] = (kind, list(shape), start, part.tell())

    def join(self, file: Path, about: Mapping[str, str]) -> None:
        """Write everything to `file`."""
        offsets, total = {}, 0
        digest = hashlib.sha256()
        for size, part in self._parts.items():
            offsets[size] = total
            total += part.tell()
            for piece in _pieces(part):
                digest.update(piece)
        header: dict[str, Any] = {
            "__metadata__": {
                "format": str(FORMAT),
                **about,
                "clients": json.dumps(self.clients),
                "aliases": json.dumps(self.aliases),
                "sha256": digest.hexdigest(),
            }
        }
        for name, (kind, shape, start, stop) in self._tensors.items():
            first = offsets[_SIZE_OF[kind]]
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [first + start, first + stop]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with file.open("wb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
            for part in self._parts.values():
                part.seek(0)
                shutil.copyfileobj(part, stream, PIECE)

    def close(self) -> None:
        """Close the files of the parts."""
        for part in self._parts.values():
            part.close()


@contextmanager
def writing_weights(file: Path, about: Mapping[str, str], explain: Explain = nullcontext) -> Iterator[WeightsWriter]:
    """Give a writer to fill; when the block ends, the file is replaced in one step. The run must be locked.

    `explain` turns a disk's refusal to take the file into an error of the caller's.
    """
    remove_stale(file.parent, f"{_TEMPORARY}*", age=0)  # what a killed process has left
    with explain():
        place = Path(tempfile.mkdtemp(dir=file.parent, prefix=_TEMPORARY))
        writer = WeightsWriter(place)
    try:
        yield writer
        with explain():
            replace_file(file, lambda temporary: writer.join(temporary, about))
    finally:
        writer.close()
        shutil.rmtree(place, ignore_errors=True)


def _pieces(part: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of an open file from its beginning; it is left at its end."""
    part.seek(0)
    while piece := part.read(PIECE):
        yield piece


class WeightsFile:
    """What a weights file says of itself.

    Raises:
        DamagedRun: It cannot be read as one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                length = struct.unpack("<Q", file.read(8))[0]
                if length > path.stat().st_size:
                    raise ValueError("it is cut short")
                header = json.loads(file.read(length))
            about = header.pop("__metadata__")
            check_format(path.parent, path.name, int(about["format"]))
            self.precision, self.round = str(about["precision"]), int(about["round"])
            self.clients: list[str] = json.loads(about["clients"])
            self._aliases: dict[str, str] = json.loads(about["aliases"])
            self._digest, self._begin = about["sha256"], 8 + length
            self._places = {name: tuple(entry["data_offsets"]) for name, entry in header.items()}
            expected = self._begin + max((stop for _, stop in self._places.values()), default=0)
            if path.stat().st_size != expected:
                raise ValueError(f"it has {path.stat().st_size} bytes, expected {expected}")
        except DamagedRun:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
            reason = getattr(error, "strerror", None) or error
            raise DamagedRun(path.parent, f"{path.name} cannot be read: {reason}") from None

    def check(self) -> None:
        """Raise DamagedRun if any byte of the tensors differs from what was written."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            file.seek(self._begin)
            while piece := file.read(PIECE):
                digest.update(piece)
        if digest.hexdigest() != self._digest:
            raise DamagedRun(self.path.parent, f"{self.path.name} is not as it was written (checksum differs)")

    def stored_names(self, client: str) -> dict[str, str]:
        """Return the names of a client's tensors, and under which name each is stored in the file."""
        names = [*self._places, *self._aliases]
        return {
            name.removeprefix(f"{client}/"): self._aliases.get(name, name)
            for name in names
            if name.startswith(f"{client}/")
        }
