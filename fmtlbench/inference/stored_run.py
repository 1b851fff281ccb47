"""Rebuild the networks of a stored run and ask them. The folder is only read; one client at a time is in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..algorithms import Evaluation
from ..base.errors import FmtlbenchError, UsageError, unknown
from ..config.run_config import RunConfig
from ..data.batches import test_batches
from ..data.configured_tasks import task_specs
from ..data.open import open_datasets
from ..data.transforms.geometry import centred, resized
from ..data.views import ClientData, View, client_data, name_parties
from ..engine.checkpoint import Checkpoint, DamagedCheckpoint
from ..engine.client import Client
from ..engine.client_models import build_client_model
from ..engine.factory import make_algorithm
from ..engine.kept_networks import KeptNetworks
from ..engine.method import Hooks
from ..engine.process_settings import process_settings
from ..engine.split_network import load_network
from ..engine.state_trees import to_device
from ..engine.track import Track
from ..exchange import Party
from ..listeners import Listener
from ..runs.external import describe_external
from ..runs.find import runs_below
from ..runs.folder import RunFolder, everybody
from ..runs.kept import available
from ..runs.records import Summary


@dataclass(frozen=True)
class Prediction:
    """One image of one client, in its own frame: without the padding, or the stretching, that the network saw."""

    image: str  # its id
    index: int  # in the dataset
    values: dict[str, np.ndarray]  # by task, as the task's metric takes it


class StoredRun:
    """The networks of a run as they were scored in its last round; of an unfinished one, after its last checkpoint.

    Args:
        folder: With config.yaml and the kept networks or a checkpoint.
        config: Of a run that this process is just finishing: it has the code, whose files may have changed since.
    """

    def __init__(self, folder: Path, config: RunConfig | None = None) -> None:
        self.folder = Path(folder)
        self.files = RunFolder(self.folder)
        self.summary: Summary | None = None
        if config is None:
            config, self.summary = self._read()
        self.name, self.rounds = self.folder.resolve().name, config.federation.rounds
        self.kept = KeptNetworks(self.files) if self.files.has_networks() else None
        rounds = available(self.files.checkpoints)
        if self.kept is None and not rounds:
            raise FmtlbenchError(f"{self.folder}: {self._say_absence()}")
        self.done = self.rounds if self.kept else rounds[-1]
        if self.summary is not None and self.done != self.rounds:
            raise FmtlbenchError(
                f"{self.folder}: the checkpoint of the last round, {self.rounds}, is not there any more"
            )
        # Every weight is stored: those that the encoder started from are not asked for again.
        scratch = dataclasses.replace(config.model, pretrained=False, weights=None)
        self.config = dataclasses.replace(config, model=scratch)
        self.title: str = config.algorithm.name
        self.data: list[ClientData] = []

    def _read(self) -> tuple[RunConfig, Summary | None]:
        """Read config and summary of a stored run; refuse one that was made elsewhere or whose code is not here."""
        if not self.files.has_config():
            raise UsageError(f"{self.folder}: no run in it (no config.yaml){runs_below(self.folder)}")
        config, summary = self.files.run_config(), self.files.summary()
        if summary is not None and (origin := describe_external(summary)):
            raise FmtlbenchError(f"{self.folder}: {origin}; there is no network to ask")
        self._check_code(config)
        return config, summary

    def _say_absence(self) -> str:
        """Say why there are no networks, and how they can be had."""
        if self.summary is None:
            return "unfinished, and without a checkpoint there is no network to ask; its command goes on with it"
        why = "keeps no networks (run --keep none)"
        if self.files.has_former_weights():
            why = "its weights.safetensors was written by an earlier version (--keep weights or exact)"
        return f"{why}; the run has to be made again: its command with --keep last --fresh"

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
        self.use(client_data(self.config, datasets), device, progress)
        self._tell_what_differs()

    def use(
        self, data: list[ClientData], device: torch.device, progress: Listener, algorithm: Hooks | None = None
    ) -> None:
        """Set up the run on data that are open, with its method if that is at hand."""
        self.data = data
        self._set_up(device, progress, [len(each.train) for each in data], algorithm)

    def open_networks(self, data_root: Path | None, device: torch.device, progress: Listener) -> None:
        """Get ready to build networks; the data are opened only where the run is not finished."""
        if self.kept is None or self.summary is None:
            self.open(data_root, device, progress)
        else:
            self._set_up(device, progress, [client["samples"] for client in everybody(self.summary)])

    def _set_up(
        self, device: torch.device, progress: Listener, images: list[int], algorithm: Hooks | None = None
    ) -> None:
        """Make the parties and the method, which is as it was after the last round where that is known."""
        self.device, self.progress = device, progress
        scenario = self.config.scenario
        self.parties = name_parties(self.config, scenario.parties(), images)
        self.newcomers = name_parties(self.config, scenario.unseen(), images)
        self.algorithm = algorithm or make_algorithm(self.config, self.parties)
        self.title = self.algorithm.title
        if self.kept is None:
            self.algorithm.load_state_dict(to_device(self._state("server"), device)["algorithm"])

    def _tell_what_differs(self) -> None:
        """Note where the networks are not exactly those that were scored."""
        if self.kept is not None:
            return
        if self.summary is None:
            self.progress.note(
                f"{self.folder} is unfinished: predictions are those after round {self.done} of {self.rounds}"
            )
        if self.config.evaluation.when == "before_aggregation":
            self.progress.note(
                f"{self.folder} was scored before the server's step (evaluation.when): predictions are those after it"
            )

    @property
    def members(self) -> list[Party]:
        """Return the clients that have a network: an unseen one is in no checkpoint."""
        everyone = [*self.parties, *self.newcomers]
        return self.parties if self.kept is None else [p for p in everyone if p.id in self.kept.clients]

    def judged(self, split: str) -> list[Party]:
        """Return the clients that have a network and are judged on a split."""
        found = [party for party in self.members if split in self.data[party.index].tests]
        if not found:
            known = {name for party in self.members for name in self.data[party.index].tests}
            raise unknown("split", split, known, f"--split: {self.config.scenario.name}")
        return found

    def view(self, party: Party, split: str) -> View:
        """Return the images a client is judged on."""
        tests = self.data[party.index].tests
        if split not in tests:
            raise unknown("split", split, tests, f"--split: {self.config.scenario.name}")
        return tests[split]

    @contextmanager
    def network(self, party: Party) -> Iterator[nn.Module]:
        """Lend the network of a client that is scored, in evaluation mode."""
        if self.kept is None and (self._choose_network().finetune or self.algorithm.changes_scored):
            client = Client(self.config, party, self.data[party.index], self.algorithm, self.device)
            client.load_state_dict(self._state(f"client-{party.index:03d}"))
            with client.scored_model(self.done - 1) as model:
                yield model.eval()
            return
        if self.kept is not None:
            kept = load_network(partial(build_client_model, self.config, party), self.kept.state(party.id))
            yield kept.to(self.device).eval()
            return
        model = build_client_model(self.config, party)
        state = self._state(f"client-{party.index:03d}")[self._choose_network().track]
        Track(model, self.config.train, self.device).restore(state["vector"], state["buffers"])
        yield model.eval()

    def _choose_network(self) -> Evaluation:
        """Return the method's choice of the network that is scored."""
        self.algorithm.begin(self.done - 1)
        return self.algorithm.evaluation_model()

    def predictions(
        self, party: Party, split: str, tasks: Sequence[str], places: Sequence[int]
    ) -> Iterator[Prediction]:
        """Yield what the client's scored network says to the images at these places of the split."""
        view = self.view(party, split)
        view = View(view.dataset, view.indices[list(places)], view.relabel)
        specs = task_specs(self.config, party.dataset)
        indices, cut = iter(view.indices.tolist()), 0
        with process_settings(self.config.train, self.device), self.network(party) as model:
            batch_size, workers = self.config.evaluation.batch_size, self.config.data.workers
            for batch in test_batches(view, (), batch_size, self.device, workers):
                with torch.no_grad():
                    raw = model(batch["image"])
                decoded = {task: specs[task].decode(raw[task].float()).cpu().numpy() for task in tasks}
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
        for what, ref in (("method", config.algorithm.ref), ("network", config.model.ref)):
            if not ref.is_unchanged():
                raise FmtlbenchError(
                    f"{self.folder}: its {what} {ref.path} is not there, or not as it was when the run was made"
                )


def choose_clients(members: Sequence[Party], wanted: Sequence[str] | None, flag: str) -> list[Party]:
    """Return the clients whose ids were given with a flag, in the scenario's order; None: all of them."""
    known = [party.id for party in members]
    for name in wanted or ():
        if name not in known:
            raise unknown("client", name, known, flag)
    return [party for party in members if wanted is None or party.id in wanted]


def sample_at_own_size(dataset: Any, index: int, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return a sample at its own resolution, without the border that a network's input size cut off."""
    sample = dataset.sample(index, keys)
    if dataset.stacked or dataset.resize == "fixed":
        return sample
    window = centred(sample["image"].shape[:2], dataset.size)
    kept = tuple(slice(axis.start, axis.start + axis.count) for axis in (window.rows, window.columns))
    return {key: value[kept] for key, value in sample.items()}


def _way_back(dataset: Any, index: int) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
    """Return what brings an output into the frame of a dataset's image, and whether that is then all of the image."""
    if dataset.stacked:
        return (lambda value: value), True
    return way_back(dataset.sample(index, ("image",))["image"].shape[:2], dataset.size, dataset.resize)


def way_back(
    shape: tuple[int, int], size: tuple[int, int], resize: str
) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
    """Return what brings an output of `size` to an image's own shape, and whether that is then all of the image."""
    if resize == "fixed":
        return partial(stretch, shape=shape), True
    window = centred(shape, size)
    inside = (..., *window.inside)
    return (lambda value: value[inside]), not (window.rows.spare or window.columns.spare)


def place_in_frame(dataset: Any, index: int, value: np.ndarray) -> np.ndarray:
    """Return a prediction of an image's own size, or without the border that is cut off, as a network would give it.

    The padding, where labels say "ignore", is filled with zeros.
    """
    if dataset.stacked:
        return value
    shape = dataset.sample(index, ("image",))["image"].shape[:2]
    if dataset.resize == "fixed" and value.shape[-2:] == shape:
        return stretch(value, tuple(dataset.size))
    window = centred(shape, dataset.size)
    rows, columns = (slice(axis.start, axis.start + axis.count) for axis in (window.rows, window.columns))
    value = value[..., rows, columns] if value.shape[-2:] == shape else value
    if value.shape[-2:] != (window.rows.count, window.columns.count):
        return value  # of a wrong size, which the caller sees beside the label
    frame = np.zeros((*value.shape[:-2], *dataset.size), value.dtype)
    rows, columns = window.inside
    frame[..., rows, columns] = value
    return frame


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
