"""The networks that a run keeps: those of its last round as they were scored, a safetensors file per client.

A tensor that the file of an earlier client has under the same name is not written again. The index comes last: without
it nothing is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from ..base.files import remove_folder, sha256_file, write_json
from ..base.stored import DamagedRun
from ..runs.folder import RunFolder, read_record, with_format
from ..runs.records import NetworkRecord, NetworksRecord
from .checkpoint import save_file, state_file


class NetworksWriter:
    """Writes the networks of a run one client at a time, in place of what its folder has of them.

    Args:
        run: Locked.
        explain: Turns a disk's refusal into an error of the caller's.
    """

    def __init__(self, run: RunFolder, explain: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        self._run, self._explain = run, explain
        self._clients: dict[str, NetworkRecord] = {}
        self._first: dict[tuple[Any, ...], str] = {}  # whose file has a tensor, by its name and content
        with explain():
            remove_folder(run.networks)
            run.networks.mkdir(parents=True)

    def add(self, client: str, tensors: dict[str, Tensor]) -> None:
        """Write a client's network."""
        own: dict[str, Tensor] = {}
        shared: dict[str, str] = {}
        for name, tensor in tensors.items():
            plain = tensor.detach().cpu().contiguous()
            content = hashlib.sha256(plain.reshape(-1).view(torch.uint8).numpy().data).digest()
            first = self._first.setdefault((name, plain.dtype, plain.shape, content), client)
            if first == client:
                own[name] = plain
            else:
                shared[name] = first
        with self._explain():
            file = state_file(self._run.networks, client)
            save_file(own, file)
            self._clients[client] = {"sha256": sha256_file(file), "shared": shared}

    def close(self) -> None:
        """Write the index: from now on the networks are kept."""
        record: NetworksRecord = {"clients": self._clients}
        with self._explain():
            write_json(self._run.networks_index, with_format(record))


class KeptNetworks:
    """The networks of a run, read one client at a time.

    Raises:
        DamagedRun: They are not as they were written.
    """

    def __init__(self, run: RunFolder) -> None:
        index = read_record(run.networks_index, NetworksRecord)
        if index is None:
            raise DamagedRun(run.networks, f"{run.networks_index.name} is not there")
        self._folder, self._clients = run.networks, index["clients"]
        self.clients = list(self._clients)

    def state(self, client: str) -> dict[str, Tensor]:
        """Return a client's tensors by their names in its network."""
        state = self._load(client)
        shared = self._clients[client]["shared"]
        for first in sorted(set(shared.values())):
            theirs = self._load(first)
            state |= {name: theirs[name] for name, owner in shared.items() if owner == first}
        return state

    def _load(self, client: str) -> dict[str, Tensor]:
        """Return what a client's file has, checked."""
        file = state_file(self._folder, client)
        try:
            if sha256_file(file) != self._clients[client]["sha256"]:
                raise DamagedRun(self._folder, f"{file.name} is not as it was written (checksum differs)")
            return load_file(file)
        except (OSError, KeyError) as error:
            raise DamagedRun(self._folder, f"{file.name} cannot be read: {error}") from None
