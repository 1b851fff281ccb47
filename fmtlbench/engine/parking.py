"""Where the models of a client wait while it is not at work: in the machine's memory, or in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
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
        self._waiting: list[tuple[torch.UntypedStorage, int, Tensor | None]] = []
        self._folder = tempfile.TemporaryDirectory(prefix="fmtlbench-parked-") if where == "disk" else None

    def rest(self, kept: Iterable[Tensor], dropped: Iterable[Tensor] = ()) -> None:
        """Empty tensors: of those that are `dropped` the values do not matter, only that they can be written to."""
        if not self.active or self._waiting:
            return
        storages = _storages(kept)
        if self._folder is not None:
            with self._file.open("wb") as stream:
                for storage in storages:
                    _bytes(storage).cpu().numpy().tofile(stream)
        for storage in storages:
            content = None if self._folder is not None else _bytes(storage).cpu()
            self._waiting.append((storage, storage.nbytes(), content))
        spare = [(storage, storage.nbytes(), torch.empty(0)) for storage in _storages(dropped)]
        self._waiting += spare
        for storage, _, _ in self._waiting:
            storage.resize_(0)

    def wake(self) -> None:
        """Fill the tensors again."""
        waiting, self._waiting = self._waiting, []
        position = 0
        for storage, size, content in waiting:
            storage.resize_(size)
            if content is None:
                content = torch.from_numpy(np.fromfile(self._file, np.uint8, size, offset=position))
                position += size
            if content.numel():
                _bytes(storage).copy_(content)

    @property
    def _file(self) -> Path:
        return Path(self._folder.name) / "models"


def _storages(tensors: Iterable[Tensor]) -> list[torch.UntypedStorage]:
    """The memory behind tensors, each piece once."""
    found = {storage.data_ptr(): storage for t in tensors if (storage := t.untyped_storage()).nbytes()}
    return list(found.values())


def _bytes(storage: torch.UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
