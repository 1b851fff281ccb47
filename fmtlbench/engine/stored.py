"""A run folder whose networks can be asked. It is only read, and one client at a time is in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..config import RunConfig
from ..data.batches import test_batches
from ..data.open import open_datasets
from ..data.transforms.geometry import centred
from ..data.views import ClientData, View, client_data, parties
from ..errors import FmtlbenchError, UsageError, unknown
from ..exchange import Party
from ..files import sha256_file
from ..progress import Quiet
from ..store import read_json
from .checkpoint import DamagedCheckpoint, available, load_checkpoint
from .client import Client
from .federation import make_algorithm
from .run import process_settings
from .trees import to_device


@dataclass(frozen=True)
class Prediction:
    """One image of one client, without the padding it was given for the network."""

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
        if not (self.folder / "config.yaml").is_file():
            raise UsageError(f"{self.folder}: no run in it (no config.yaml){_runs_below(self.folder)}")
        config = RunConfig.from_file(self.folder / "config.yaml")
        self._check_method(config)
        rounds = available(self.folder / "checkpoint")
        if not rounds:
            raise FmtlbenchError(f"{self.folder}: no checkpoint, so there is no network to ask")
        self.name = self.folder.resolve().name
        self.done, self.rounds = rounds[-1], config.federation.rounds
        self.finished = read_json(self.folder / "summary.json") is not None
        if self.finished and self.done != self.rounds:
            raise FmtlbenchError(
                f"{self.folder}: the checkpoint of the last round, {self.rounds}, is not there any more"
            )
        # The checkpoint holds every weight: those that the encoder started from are not asked for again.
        scratch = dataclasses.replace(config.model, pretrained=False, weights=None)
        self.config = dataclasses.replace(config, model=scratch)
        self.title: str = config.algorithm.name
        self.data: list[ClientData] = []

    def open(self, data_root: Path | None, device: torch.device, progress: Quiet) -> None:
        """Open the data, see that they are the run's, and set up its method as it was after the last round."""
        if data_root is not None and self.config.data.source == "synth":
            raise UsageError(f"--data-root {data_root}: {self.folder} uses the embedded data")
        datasets = open_datasets(self.config, data_root, progress)
        manifest = read_json(self.folder / "manifest.json") or {}
        for (domain, split), dataset in datasets.items():
            if manifest.get("data", {}).get(f"{domain}/{split}", dataset.fingerprint) != dataset.fingerprint:
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
        """The images a client is judged on."""
        tests = self.data[party.index].tests
        if split not in tests:
            raise unknown("split", split, tests, f"--split: {self.config.scenario.name}")
        return tests[split]

    def predictions(
        self, party: Party, split: str, tasks: Sequence[str], places: Sequence[int]
    ) -> Iterator[Prediction]:
        """What the client's scored network says to the images at these places of the split."""
        view = self.view(party, split)
        view = View(view.dataset, view.indices[list(places)])
        client = Client(self.config, party, self.data[party.index], self.algorithm, self.device)
        client.load_state_dict(self._state(f"client-{party.index:03d}"))
        indices, cut = iter(view.indices.tolist()), 0
        with process_settings(self.config, self.device), client.scored_model(self.done - 1) as model:
            model.eval()
            batch_size, workers = self.config.evaluation.batch_size, self.config.data.workers
            for batch in test_batches(view, (), batch_size, self.device, workers):
                with torch.no_grad():
                    raw = model(batch["image"])
                decoded = {task: client.specs[task].decode(raw[task].float()).cpu().numpy() for task in tasks}
                for row, index in zip(range(len(batch["image"])), indices):
                    inside, whole = _inside(view.dataset, index)
                    cut += not whole
                    values = {task: value[row][(..., *inside)] for task, value in decoded.items()}
                    yield Prediction(image_id(view.dataset, index), index, values)
        if cut:
            self.progress.note(f"{party.id}: {cut} images are larger than data.size: their predictions lack the border")

    def _state(self, name: str) -> dict[str, Any]:
        try:
            return load_checkpoint(self.folder / "checkpoint", self.done, only=name)[name]
        except DamagedCheckpoint as error:
            raise FmtlbenchError(f"damaged checkpoint: {error}") from None

    def _check_method(self, config: RunConfig) -> None:
        file = config.algorithm.file
        if file and (not Path(file).is_file() or sha256_file(Path(file)) != config.algorithm.source):
            raise FmtlbenchError(
                f"{self.folder}: its method {file} is not there, or not as it was when the run was made"
            )


def image_id(dataset: Any, index: int) -> str:
    """As the image's files are called; embedded images are numbered."""
    return dataset.name(index) if hasattr(dataset, "sample") else f"{index:05d}"


def seen(dataset: Any, index: int, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """A sample at its own resolution, without the border that a network's input size cut off."""
    if not hasattr(dataset, "sample"):
        return {key: value[0] for key, value in dataset.batch(np.array([index]), keys).items()}
    sample = dataset.sample(index, keys)
    window = centred(sample["image"].shape[:2], dataset.size)
    kept = tuple(slice(axis.start, axis.start + axis.count) for axis in (window.rows, window.columns))
    return {key: value[kept] for key, value in sample.items()}


def _inside(dataset: Any, index: int) -> tuple[tuple[slice, slice], bool]:
    """Which part of a network's output belongs to the image, and whether that is all of the image."""
    if not hasattr(dataset, "sample"):
        return (slice(None), slice(None)), True
    window = centred(dataset.sample(index, ("image",))["image"].shape[:2], dataset.size)
    return window.inside, not (window.rows.spare or window.columns.spare)


def _runs_below(folder: Path) -> str:
    found = sorted(path.parent for depth in ("*", "*/*", "*/*/*") for path in folder.glob(f"{depth}/config.yaml"))
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"; runs below it: {', '.join(map(str, found[:3]))}{more}" if found else ""
