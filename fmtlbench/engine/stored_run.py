"""Rebuild the networks of a stored run and ask them. The folder is only read; one client at a time is in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ..config import RunConfig
from ..data.batches import test_batches
from ..data.open import open_datasets
from ..data.transforms.geometry import centred, resized
from ..data.views import ClientData, View, client_data, parties
from ..errors import FmtlbenchError, UsageError, unknown
from ..exchange import Party
from ..listeners import Listener
from ..runs.find import locate_runs
from ..runs.folder import RunFolder
from .checkpoint import Checkpoint, DamagedCheckpoint, available
from .client import Client
from .factory import make_algorithm
from .process_settings import process_settings
from .state_trees import to_device


@dataclass(frozen=True)
class Prediction:
    """One image of one client, in its own frame: without the padding, or the stretching, that the network saw."""

    image: str  # its id
    index: int  # in the dataset
    values: dict[str, np.ndarray]  # by task, as the task's metric takes it


class StoredRun:
    """The networks of a run after its last round; of an unfinished one, after its last checkpoint.

    Args:
        folder: with config.yaml and a checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.files = RunFolder(self.folder)
        if not self.files.has_config():
            raise UsageError(f"{self.folder}: no run in it (no config.yaml){_runs_below(self.folder)}")
        config = self.files.run_config()
        self._check_code(config)
        rounds = available(self.files.checkpoints)
        if not rounds:
            raise FmtlbenchError(f"{self.folder}: no checkpoint, so there is no network to ask")
        self.name = self.folder.resolve().name
        self.done, self.rounds = rounds[-1], config.federation.rounds
        self.finished = self.files.summary() is not None
        if self.finished and self.done != self.rounds:
            raise FmtlbenchError(
                f"{self.folder}: the checkpoint of the last round, {self.rounds}, is not there any more"
            )
        # The checkpoint holds every weight: those that the encoder started from are not asked for again.
        scratch = dataclasses.replace(config.model, pretrained=False, weights=None)
        self.config = dataclasses.replace(config, model=scratch)
        self.title: str = config.algorithm.name
        self.data: list[ClientData] = []

    def open(self, data_root: Path | None, device: torch.device, progress: Listener) -> None:
        """Open the data, see that they are the run's, and set up its method as it was after the last round."""
        if data_root is not None and not self.config.reads_files:
            raise UsageError(f"--data-root {data_root}: {self.folder} uses the embedded data")
        datasets: dict[tuple[str, str], Any] = open_datasets(self.config, data_root, progress)
        manifest = self.files.manifest()
        known = {} if manifest is None else manifest["data"]
        for (domain, split), dataset in datasets.items():
            if known.get(f"{domain}/{split}", dataset.fingerprint) != dataset.fingerprint:
                raise FmtlbenchError(f"{domain}/{split} has changed since {self.folder} was made")
        self.device, self.progress = device, progress
        self.data = client_data(self.config, datasets)
        self.parties = parties(self.config, self.data)
        self.algorithm = make_algorithm(self.config, self.parties)
        self.title = self.algorithm.title
        self.algorithm.load_state_dict(to_device(self._state("server"), device)["algorithm"])
        if not self.finished:
            progress.note(
                f"{self.folder} is unfinished: predictions are those after round {self.done} of {self.rounds}"
            )
        if self.config.evaluation.when == "before_aggregation":
            progress.note(
                f"{self.folder} was scored before the server's step (evaluation.when): predictions are those after it"
            )

    def view(self, party: Party, split: str) -> View:
        """Return the images a client is judged on."""
        tests = self.data[party.index].tests
        if split not in tests:
            raise unknown("split", split, tests, f"--split: {self.config.scenario.name}")
        return tests[split]

    def predictions(
        self, party: Party, split: str, tasks: Sequence[str], places: Sequence[int]
    ) -> Iterator[Prediction]:
        """Yield what the client's scored network says to the images at these places of the split."""
        view = self.view(party, split)
        view = View(view.dataset, view.indices[list(places)], view.relabel)
        client = Client(self.config, party, self.data[party.index], self.algorithm, self.device)
        client.load_state_dict(self._state(f"client-{party.index:03d}"))
        indices, cut = iter(view.indices.tolist()), 0
        with process_settings(self.config.train, self.device), client.scored_model(self.done - 1) as model:
            model.eval()
            batch_size, workers = self.config.evaluation.batch_size, self.config.data.workers
            for batch in test_batches(view, (), batch_size, self.device, workers):
                with torch.no_grad():
                    raw = model(batch["image"])
                decoded = {task: client.specs[task].decode(raw[task].float()).cpu().numpy() for task in tasks}
                for row, index in zip(range(len(batch["image"])), indices):
                    restore, whole = _way_back(view.dataset, index)
                    cut += not whole
                    values = {task: restore(value[row]) for task, value in decoded.items()}
                    yield Prediction(view.dataset.image_id(index), index, values)
        if cut:
            self.progress.note(f"{party.id}: {cut} images are larger than data.size: their predictions lack the border")

    def _state(self, name: str) -> dict[str, Any]:
        try:
            return Checkpoint(self.files.checkpoints, self.done).read(name)
        except DamagedCheckpoint as error:
            raise FmtlbenchError(f"damaged checkpoint: {error}") from None

    def _check_code(self, config: RunConfig) -> None:
        for what, code in (("method", config.algorithm.code), ("network", config.model.code)):
            if not code.is_unchanged():
                raise FmtlbenchError(
                    f"{self.folder}: its {what} {code.file} is not there, or not as it was when the run was made"
                )


def sample_at_own_size(dataset: Any, index: int, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return a sample at its own resolution, without the border that a network's input size cut off."""
    sample = dataset.sample(index, keys)
    if dataset.stacked or dataset.resize == "fixed":
        return sample
    window = centred(sample["image"].shape[:2], dataset.size)
    kept = tuple(slice(axis.start, axis.start + axis.count) for axis in (window.rows, window.columns))
    return {key: value[kept] for key, value in sample.items()}


def _way_back(dataset: Any, index: int) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
    """Return what brings an output into the image's own frame, and whether that is then all of the image."""
    if dataset.stacked:
        return (lambda value: value), True
    shape = dataset.sample(index, ("image",))["image"].shape[:2]
    if dataset.resize == "fixed":
        return partial(stretch, shape=shape), True
    window = centred(shape, dataset.size)
    inside = (..., *window.inside)
    return (lambda value: value[inside]), not (window.rows.spare or window.columns.spare)


def stretch(value: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return a prediction [H, W] or [3, H, W] at another size: classes of the nearest pixel, all else bilinear."""
    if not np.issubdtype(value.dtype, np.floating):
        window = resized(value.shape[-2:], shape)
        return value[..., window.rows.nearest()[:, None], window.columns.nearest()]
    channels = torch.from_numpy(value).reshape(1, -1, *value.shape[-2:])
    result = functional.interpolate(channels, shape, mode="bilinear")
    if value.ndim == 3:  # vectors of length one, which mixing makes shorter
        result = functional.normalize(result, dim=1)
    return result.numpy().reshape(*value.shape[:-2], *shape)


def _runs_below(folder: Path) -> str:
    """Say which runs lie below a folder, as the end of a message; "" if none do."""
    try:
        found = [run for run, _ in locate_runs([folder])[0]]
    except UsageError:  # no such folder, or none below it
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"; runs below it: {', '.join(map(str, found[:3]))}{more}" if found else ""
