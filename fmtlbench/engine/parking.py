"""Where the models of a client wait while it is not at work: in the machine's memory, or in a file."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import Tensor


class Parking:
    """Empties tensors and fills them again. They stay the same objects, and so do all views of them.

    Args:
        where: "none", "cpu" or "disk" (below the system's folder for temporary files).
        device: Where the tensors are at work; what works in the machine's memory already does not move there.
    """

    def __init__(self, where: str, device: torch.device) -> None:
        self.active = where == "disk" or (where == "cpu" and device.type != "cpu")
        self._waiting: list[tuple[torch.UntypedStorage, int, Tensor | None]] = []  # None: in the file, in this order
        self._empty: list[tuple[torch.UntypedStorage, int]] = []
        self._file: Path | None = None
        if where == "disk":
            self._folder = tempfile.TemporaryDirectory(prefix="fmtlbench-parked-")  # goes with this object
            self._file = Path(self._folder.name) / "models"

    def rest(self, kept: Iterable[Tensor], dropped: Iterable[Tensor] = ()) -> None:
        """Empty tensors: of those that are `dropped` the values do not matter, only that they can be written to."""
        if not self.active or self._waiting:
            return
        storages, spare = _storages(kept), _storages(dropped)
        contents: list[Tensor | None] = [None] * len(storages)
        if self._file is None:
            contents = [_bytes(storage).cpu() for storage in storages]
        else:
            with self._file.open("wb") as stream:
                for storage in storages:
                    stream.write(_memory(storage.cpu()))
        self._waiting = [(s, s.nbytes(), content) for s, content in zip(storages, contents)]
        self._empty = [(s, s.nbytes()) for s in spare]
        for storage in (*storages, *spare):
            storage.resize_(0)

    def wake(self) -> None:
        """Fill the tensors again."""
        waiting, empty, self._waiting, self._empty = self._waiting, self._empty, [], []
        for storage, size in empty:
            storage.resize_(size)
        with ExitStack() as stack:
            stream = stack.enter_context(self._file.open("rb")) if waiting and self._file else None
            for storage, size, content in waiting:
                storage.resize_(size)
                if content is not None:
                    _bytes(storage).copy_(content)
                elif stream is not None:
                    read = torch.UntypedStorage(size)
                    stream.readinto(_memory(read))
                    storage.copy_(read)


def _storages(tensors: Iterable[Tensor]) -> list[torch.UntypedStorage]:
    """Return the memory behind tensors, each piece once; what numpy has seen cannot be emptied and stays."""
    every = (t.untyped_storage() for t in tensors)
    return list({storage.data_ptr(): storage for storage in every if storage.nbytes() and storage.resizable()}.values())


def _bytes(storage: torch.UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _memory(storage: torch.UntypedStorage) -> ctypes.Array[ctypes.c_char]:
    """Return the bytes of a storage on the CPU, as files take them; what numpy has seen cannot be emptied."""
    return (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
