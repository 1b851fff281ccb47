"""A client: its data, its models, its local training. It never learns which method it takes part in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..algorithms import EpochKinds, Kinds
from ..client_models import build_client_model
from ..config import RunConfig
from ..configured_tasks import task_specs
from ..cost.clock import OTHER, stopwatch
from ..cost.compute import counts_of
from ..data.batches import batch_count, train_batches
from ..data.views import ClientData
from ..errors import FmtlbenchError
from ..exchange import TRAVELLING_KINDS, Party
from ..hooks import Hooks
from ..losses import task_loss
from ..networks import network_of
from ..seeds import seed_of, stream
from .checkpoint import read_state, write_state
from .epoch_watch import DivergedError, EpochWatch
from .evaluate import evaluate
from .messages import (
    ClientFacts,
    ClientRows,
    Count,
    Evaluate,
    Install,
    Layout,
    Load,
    Message,
    Reply,
    Save,
    Send,
    Train,
    TrainReport,
)
from .optim import learning_rate, make_optimizer
from .parking import Parking
from .precision import AMP_TYPES
from .state_trees import map_leaves
from .torch_compile import compiler_errors
from .track import Network, Track

if TYPE_CHECKING:
    from ..runs.records import Score
    from .executor import OnStep


@dataclass(frozen=True)
class Epoch:
    """One pass over a client's training images."""

    round: int
    trained: EpochKinds
    lr: float
    order: np.random.Generator  # decides the order of the images and their augmentation


class Client:
    """One party of the federation; also the `Local` that its method's objective looks at."""

    def __init__(
        self, config: RunConfig, party: Party, data: ClientData, algorithm: Hooks, device: torch.device
    ) -> None:
        self.config, self.party, self.data, self.algorithm, self.device = config, party, data, algorithm, device
        self.info = config.data.dataset(party.dataset)
        self.specs = task_specs(config, party.dataset)
        merged = () if config.federation.exchange == "decoders" else ("decoder", *(["head"] * config.heads_travel))
        travel = config.federation.statistics == "travel"
        self.tracks = {
            name: Track(build_client_model(config, party), config.train, device, merged, travel)
            for name in algorithm.tracks
        }
        self.track = "main"
        self.schedule = algorithm.local_schedule(config.train.local_epochs[party.dataset])
        # The tasks of each optimiser step on a batch.
        self.network = network_of(config.model)
        self.steps = self.network.task_steps(party.tasks)
        # An anchor is kept only for methods whose local objective can ask for it.
        self.has_objective = algorithm.has_objective
        self.anchor: dict[str, list[Tensor]] = {}
        self.parking = Parking(config.federation.park, device)
        self.clock = stopwatch(device)
        self.spent: dict[str, float] = {}  # seconds by phase since the server was last told
        self.warm = False  # the first batch of a process pays for lazy initialisation and searches of kernels

    @property
    def steps_per_round(self) -> int:
        """Return how many training steps a round takes, over all tracks."""
        per_epoch = batch_count(len(self.data.train), self.config.train.batch_size) * len(self.steps)
        return len(self.tracks) * len(self.schedule) * per_epoch

    @property
    def main(self) -> Track:
        """Return the track that travels."""
        return self.tracks["main"]

    # -- what the server asks ----------------------------------------------------------------------------------------

    def facts(self) -> ClientFacts:
        """Return what does not change about this client."""
        flat = self.main.flat
        layouts = {
            kind: Layout(tuple(flat.owners(kind, self.party.index)), flat.layout(kind)) for kind in TRAVELLING_KINDS
        }
        return ClientFacts(layouts, flat.counts(), self.steps_per_round)

    def answer(self, message: Message, on_step: OnStep | None = None) -> Reply:
        """Do what the message says, then rest; `on_step` is told of every training step."""
        self.parking.wake()
        try:
            return self._answer(message, on_step)
        finally:
            self.rest()

    def rest(self) -> None:
        """Park the models, where the config says so, until the next message."""
        anchors = [row for rows in self.anchor.values() for row in rows]
        models = [tensor for track in self.tracks.values() for tensor in track.large_tensors()]
        gradients = [track.flat.gradient for track in self.tracks.values() if track.flat.gradient is not None]
        self.parking.rest([*models, *anchors], gradients)  # an epoch begins with gradients of zero

    def _answer(self, message: Message, on_step: OnStep | None) -> Reply:
        match message:
            case Train():
                if message.install:
                    self.install(message.install)
                start = self.read(message.start_of)
                report = self.train(message.index, message.kinds, on_step)
                return Reply(self.times(), report=report, rows=self.read((*message.kinds, *message.shown)), start=start)
            case Evaluate():
                weights: dict[str, Tensor] | None = {} if message.weights else None
                scores = tuple(self.evaluate(message.index, weights))
                return Reply(scores=scores, weights=weights, spent=self.times())
            case Install():
                self.install(message.rows)
                return Reply(self.times())
            case Send():
                return Reply(self.times(), rows=self.read(message.kinds))
            case Save(file=None):
                state = map_leaves(self.state_dict(), Tensor, torch.clone)  # the models go on, or are parked
                return Reply(self.times(), state=state)
            case Save(file=str(file)):
                return Reply(self.times(), saved=write_state(Path(file), self.state_dict()))
            case Load(state=None, file=str(file)):
                self.load_state_dict(read_state(file, message.skeleton))
                return Reply(self.times())
            case Load(state=dict(state)):
                self.load_state_dict(state)
                return Reply(self.times())
            case Count():
                return Reply(self.times(), counts=counts_of(self))
        raise TypeError(f"client {self.party.id}: no answer to {message!r}")

    def read(self, kinds: Kinds) -> ClientRows:
        """Return copies of the rows of `kinds`, one per owner."""
        return {kind: self.main.flat.read(kind) for kind in kinds}

    def install(self, rows: ClientRows) -> None:
        """Take what the server sent: as the new model, or its parameters as the anchor of the local objective."""
        for kind, values in rows.items():
            if self.algorithm.installs:
                self.main.flat.write(kind, values)
            else:
                mine = self.main.flat.rows(kind)
                self.anchor[kind] = [new[: len(row)].clone() for row, new in zip(mine, values, strict=True)]

    # -- local training ----------------------------------------------------------------------------------------------

    def train(self, index: int, kinds: Kinds, on_step: OnStep | None = None) -> TrainReport:
        """Do the local epochs of round `index`, in which `kinds` travel."""
        self.algorithm.begin(index)
        self.clock.start()
        if self.has_objective and self.algorithm.installs:
            self.anchor = {kind: [row.clone() for row in self.main.flat.rows(kind)] for kind in kinds}
        total = self.config.federation.rounds * len(self.schedule)
        results: dict[str, tuple[dict[str, float], float | None]] = {}
        for name, track in self.tracks.items():
            self.track = name
            if self.config.train.optimizer_state == "fresh":
                track.renew_optimizer()
            with self._randomness("train", index):
                for number, trained in enumerate(self.schedule):
                    done, dataset = index * len(self.schedule) + number, self.party.dataset
                    lr = learning_rate(self.config.train, done, total, len(self.schedule), dataset)
                    order = stream(self.config.seed, "order", self.party.id, index, number)
                    epoch = Epoch(index, trained, lr, order)
                    results[name] = self._epoch(track, track.optimizer, epoch, on_step)
        losses, norm = results[self.algorithm.evaluation_model().track]
        self.clock.lap(OTHER)
        spent = self.clock.read()
        self._book(spent)
        return TrainReport(losses, norm, sum(spent.values()))

    def _book(self, seconds: dict[str, float]) -> None:
        for phase, spent in seconds.items():
            self.spent[phase] = self.spent.get(phase, 0.0) + spent

    def times(self) -> dict[str, float]:
        """Return the seconds by phase since this was last asked."""
        spent, self.spent = self.spent, {}
        return spent

    @contextmanager
    def _randomness(self, *names: object) -> Iterator[None]:
        """Let drop-path and the like draw from the client's own stream; the caller's generator is left alone."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(seed_of(self.config.seed, self.party.id, *names))
            yield

    @compiler_errors()
    def _epoch(
        self, track: Track, optimizer: torch.optim.Optimizer, epoch: Epoch, on_step: OnStep | None = None
    ) -> tuple[dict[str, float], float | None]:
        """Train for one epoch, the only batch loop there is; return mean losses by task and the mean gradient norm."""
        train, tasks, amp = self.config.train, self.party.tasks, AMP_TYPES[self.config.train.amp]
        track.model.train()
        for group in optimizer.param_groups:
            group["lr"] = epoch.lr
        flat, scaler = track.flat, track.scaler
        batches = batch_count(len(self.data.train), train.batch_size)
        turns = turns_of(epoch.trained, batches)
        watch = EpochWatch(self.party.id, epoch.round, self.steps, batches, self.device)
        self.clock.lap(OTHER)
        workers = self.config.data.workers
        amounts = train.amounts(self.party.dataset)
        loaded = train_batches(
            self.data.train, tasks, train.batch_size, epoch.order, train.augment, self.device, workers, amounts
        )
        for position, batch in enumerate(loaded):
            if position in turns:
                gradient = flat.watch_gradients(turns[position])
            self.clock.lap("load" if self.warm else "warmup")
            for number, learned in enumerate(self.steps):
                with torch.autocast(self.device.type, amp) if amp else nullcontext():
                    raw = self._forward(track.network, batch["image"], learned)
                losses = [task_loss(self.specs[task], raw[task], batch[task]) for task in learned]
                total: Tensor = reduce(add, [self.specs[task].weight * loss for task, loss in zip(learned, losses)])
                if self.has_objective and (extra := self.algorithm.local_objective(self, total)) is not None:
                    total = total + extra
                if number == 0 or not self.network.adds_up_gradients:
                    gradient.zero_()
                scaler.scale(total).backward()
                scaler.unscale_(optimizer)
                norm = gradient.norm()
                watch.step(losses, norm, flat, scaler.is_enabled())
                if train.clip_norm is not None:
                    gradient *= (train.clip_norm / (norm + 1e-6)).clamp(max=1)
                scaler.step(optimizer)
                scaler.update()
                if on_step is not None:
                    on_step(self.party, watch)
            self.clock.lap("step" if self.warm else "warmup")
            self.warm = True
        if scaler.is_enabled() and scaler.get_scale() < 1:
            raise DivergedError(
                f"client {self.party.id}, round {epoch.round + 1}: gradients of {', '.join(tasks)} overflow fp16 at "
                "any loss scale; try --set train.amp=bf16"
            )
        return watch.finish(flat, scaler.is_enabled())

    def _forward(self, network: Network, image: Tensor, tasks: tuple[str, ...]) -> dict[str, Tensor]:
        """Return the raw outputs of the tasks of a training step."""
        try:
            return network(image, tasks)
        except (ValueError, RuntimeError) as error:  # a RuntimeError where the network is compiled
            if "more than 1 value per channel" not in str(error):
                raise
            raise FmtlbenchError(
                f"client {self.party.id}: BatchNorm has nothing to average over, since a batch is one image and the "
                "deepest map one position; give it more images (data.train_samples, train.batch_size) or larger ones "
                "(data.size)"
            ) from None

    # -- what the method's local objective may ask (algorithms.Local) ------------------------------------------------

    @property
    def anchored(self) -> Kinds:
        """Return the kinds that have an anchor."""
        return tuple(self.anchor)

    def squared_distance(self, kind: str) -> Tensor:
        """Return ‖θ − anchor‖² of the track in training."""
        total = torch.zeros((), device=self.device)
        flat = self.tracks[self.track].flat
        live = iter(flat.parameters_of((kind,)))
        parameters = [t for t in flat.layout(kind) if not t.statistic]
        for anchor in self.anchor[kind]:
            for t in parameters:
                parameter = next(live)
                total = total + (parameter - anchor[t.start : t.stop].view_as(parameter)).square().sum()
        return total

    def squared_norm(self, kind: str) -> Tensor:
        """Return ‖θ‖² of the track in training."""
        parameters = self.tracks[self.track].flat.parameters_of((kind,))
        return torch.stack([parameter.square().sum() for parameter in parameters]).sum()

    def size(self, kind: str) -> int:
        """Return the number of parameters of `kind`."""
        return self.main.flat.counts()[kind]

    # -- scoring and saving ------------------------------------------------------------------------------------------

    def evaluate(self, index: int, weights: dict[str, Tensor] | None = None) -> list[Score]:
        """Return scores on every test split the scenario asks for; copy the scored network into `weights`, if given."""
        batch_size, workers = self.config.evaluation.batch_size, self.config.data.workers
        self.clock.start()
        with self.scored_model(index) as model:
            records = evaluate(model, self.party, self.data, self.info, self.specs, batch_size, self.device, workers)
            if weights is not None:
                weights.update((name, t.to("cpu", copy=True)) for name, t in model.state_dict().items())
        self.clock.lap("evaluate")
        self._book({"evaluate": sum(self.clock.read().values())})  # fine-tuning for it included
        return records

    @contextmanager
    def scored_model(self, index: int) -> Iterator[nn.Module]:
        """Lend the network that is judged after round `index`: the method's choice, fine-tuned if it says so."""
        self.algorithm.begin(index)
        chosen = self.algorithm.evaluation_model()
        track = self.tracks[chosen.track]
        if not chosen.finetune:
            yield track.model
            return
        before, scale = track.snapshot(), track.scaler.state_dict()
        self.track = chosen.track
        self._finetune(track, index, chosen.finetune)
        try:
            yield track.model
        finally:  # it was a copy: nothing of it may reach the training
            track.restore(*before)
            if track.scaler.is_enabled():
                track.scaler.load_state_dict(scale)

    def _finetune(self, track: Track, index: int, schedule: Sequence[EpochKinds]) -> None:
        """Train some epochs at the full learning rate with an optimiser of their own."""
        optimizer = make_optimizer(self.config.train, track.flat.parameters, self.device)
        with self._randomness("finetune", index):
            for number, trained in enumerate(schedule):
                order = stream(self.config.seed, "finetune", self.party.id, index, number)
                self._epoch(track, optimizer, Epoch(index, trained, self.config.train.lr, order))

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs of this client."""
        state: dict[str, Any] = {name: track.state_dict() for name, track in self.tracks.items()}
        if not self.algorithm.installs:
            state["anchor"] = self.anchor
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Be as the client was that returned this state."""
        for name, track in self.tracks.items():
            track.load_state_dict(state[name])
        self.anchor = {kind: [row.to(self.device) for row in rows] for kind, rows in state.get("anchor", {}).items()}


def turns_of(trained: EpochKinds, batches: int) -> dict[int, Kinds]:
    """Return from which batch of an epoch on which kinds train: all the way, or by turns of equal length."""
    turns = _as_turns(trained)
    if batches < len(turns):  # not one for each: all at once
        return {0: tuple(dict.fromkeys(kind for kinds in turns for kind in kinds))}
    return {turn * batches // len(turns): kinds for turn, kinds in enumerate(turns)}


def _as_turns(trained: EpochKinds) -> tuple[Kinds, ...]:
    """Return the kinds of each turn of an epoch; one tuple of kinds is one turn."""
    if isinstance(trained[0], str):
        return (trained,)
    return trained
