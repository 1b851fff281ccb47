"""A stored run in Python: its config, its scores, and its networks, which answer to any image."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..base.errors import UsageError, unknown
from ..config.run_config import RunConfig
from ..data.configured_tasks import task_specs
from ..data.tensors import to_tensors
from ..data.transforms import test_transform
from ..engine.process_settings import process_settings
from ..exchange import Party
from ..listeners import Listener
from ..runs.records import Summary
from .stored_run import StoredRun, way_back


class LoadedClient:
    """One client of a stored run: what it is and its network, which is built when it is first asked for."""

    def __init__(self, run: StoredRun, party: Party) -> None:
        self._run, self._party = run, party
        self.id, self.dataset, self.tasks = party.id, party.dataset, party.tasks

    @cached_property
    def model(self) -> nn.Module:
        """Return the network that was scored in the last round, in evaluation mode."""
        with self._run.network(self._party) as model:
            return copy.deepcopy(model)  # what is lent may go on to be another network

    @property
    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the classes by task, for the tasks that have classes."""
        return self._run.config.data.dataset(self.dataset).class_names

    def __repr__(self) -> str:
        return f"LoadedClient({self.id!r}, dataset={self.dataset!r}, tasks={list(self.tasks)})"


class LoadedRun:
    """A stored run.

    Attributes:
        folder: where it lies.
        config: everything that decided its numbers.
        summary: what it found, as in summary.json; None of an unfinished run.
        clients: its clients by id, those that took part first.
    """

    def __init__(self, folder: Path, data_root: Path | None, device: torch.device, progress: Listener) -> None:
        stored = StoredRun(folder)
        stored.open_networks(data_root, device, progress)
        self._stored = stored
        self.folder: Path = stored.folder
        self.config: RunConfig = stored.files.run_config()
        self.summary: Summary | None = stored.summary
        members = {party.id: LoadedClient(stored, party) for party in stored.members}
        self.clients: Mapping[str, LoadedClient] = MappingProxyType(members)

    def __repr__(self) -> str:
        return f"LoadedRun({str(self.folder)!r}, clients={list(self.clients)})"

    def predict(self, client: str, images: Any) -> dict[str, np.ndarray]:
        """Return what a client's network says, by task, as the task's metric takes it.

        Args:
            client: its id.
            images: bytes [H, W, 3] or [B, H, W, 3] (as tensors: [3, H, W] or [B, 3, H, W]), which are brought to the
                network's size as the run's images were and whose predictions are brought back; or tensors of
                floating-point numbers [3, H, W] or [B, 3, H, W], normalised already, which are taken as they are.

        Returns:
            Arrays [H, W] or [3, H, W], with a first axis B for a batch. Where an image is larger than the network's
            size and is not stretched, they lack the border.
        """
        if client not in self.clients:
            raise unknown("client", str(client), self.clients, str(self.folder))
        chosen = self.clients[client]
        size, resize = self.config.data.size[chosen.dataset], self.config.data.resize
        given = images if isinstance(images, Tensor) else np.asarray(images)
        single = _check_images(given)
        batch = given[None] if single else given
        if isinstance(batch, Tensor) and batch.is_floating_point():
            inputs, restore = batch.to(self._stored.device, torch.float32), lambda value: value
        else:
            arrays = batch.movedim(1, 3).cpu().numpy() if isinstance(batch, Tensor) else batch
            seen = np.stack([test_transform({"image": image}, size, resize)["image"] for image in arrays])
            inputs = to_tensors({"image": seen}, self._stored.device)["image"]
            restore, _ = way_back(arrays.shape[1:3], size, resize)
        found: dict[str, list[np.ndarray]] = {task: [] for task in chosen.tasks}
        specs, model = task_specs(self.config, chosen.dataset), chosen.model
        with process_settings(self.config.train, self._stored.device), torch.no_grad():
            for part in inputs.split(self.config.evaluation.batch_size):
                for task, raw in model(part).items():
                    found[task] += map(restore, specs[task].decode(raw.float()).cpu().numpy())
        return {task: values[0] if single else np.stack(values) for task, values in found.items()}


def _check_images(given: np.ndarray | Tensor) -> bool:
    """Return whether these are one image; refuse what is no image and no batch of them."""
    is_tensor = isinstance(given, Tensor)
    colours = -3 if is_tensor else -1
    kinds = (torch.uint8, torch.float32, torch.float64, torch.float16, torch.bfloat16) if is_tensor else (np.uint8,)
    if given.ndim not in (3, 4) or given.shape[colours] != 3 or given.dtype not in kinds or 0 in given.shape:
        raise UsageError(
            f"images: got {given.dtype} {list(given.shape)}, expected uint8 arrays [H, W, 3] or [B, H, W, 3], or "
            "tensors [3, H, W] or [B, 3, H, W] of uint8 or, normalised already, of floating-point numbers"
        )
    return given.ndim == 3
