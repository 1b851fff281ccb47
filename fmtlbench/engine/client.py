"""A client: its data, its models, its local training. It never learns which method it takes part in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..algorithms import EpochKinds, Kinds
from ..base.errors import FmtlbenchError
from ..base.seeds import seed_of, stream
from ..config.run_config import RunConfig
from ..cost.clock import OTHER, stopwatch
from ..cost.compute import counts_of
from ..data.batches import batch_count, train_batches
from ..data.configured_tasks import task_specs
from ..data.views import ClientData, View
from ..exchange import TRAVELLING_KINDS, Party
from ..networks.network import network_of
from ..runs.records import Score
from .checkpoint import read_state, write_state
from .client_models import build_client_model
from .compression import Compressor
from .epoch_losses import DivergedError, EpochLosses
from .evaluate import evaluate
from .loss_weights import LossWeights, needs_weights
from .losses import task_loss
from .messages import (
    ClientFacts,
    ClientRows,
    Count,
    Evaluate,
    Install,
    Layout,
    Load,
    Message,
    MeterSums,
    Reply,
    RowNames,
    Save,
    Send,
    Train,
    TrainReport,
)
from .method import Hooks
from .optim import learning_rate, make_optimizer
from .parking import Parking
from .precision import AMP_TYPES
from .split_network import SplitNetwork
from .state_trees import list_leaves, map_leaves, to_device
from .torch_compile import compiler_errors
from .track import Network, Track
from .workbench import ClientWorkbench

if TYPE_CHECKING:
    from .executor import OnStep


@dataclass(frozen=True)
class Epoch:
    """One pass over a client's training images."""

    round: int
    trained: EpochKinds
    lr: float
    order: np.random.Generator  # decides the order of the images and their augmentation
    batches: int  # how many of them are trained on: all, unless the client is short of time
    repeats: int = 1  # steps on each batch


@dataclass(frozen=True)
class Lane:
    """A track in training: what its steps need."""

    name: str
    track: Track
    optimizer: torch.optim.Optimizer
    steps: list[tuple[str, ...]]  # the tasks of each optimiser step on a batch
    weights: LossWeights | None = None  # None: the losses are added up with their tasks' fixed weights
    hooks: bool = False  # whether the method's hooks around a step are called; fine-tuning is none of its business


class Client(ClientWorkbench):
    """One party of the federation; also the `Local` that its method's objective looks at."""

    def __init__(
        self, config: RunConfig, party: Party, data: ClientData, algorithm: Hooks, device: torch.device
    ) -> None:
        super().__init__()
        self.config, self.party, self.data, self.algorithm, self.device = config, party, data, algorithm, device
        self.info = config.data.dataset(party.dataset)
        self.specs = task_specs(config, party.dataset)
        if data is not None:
            self.trained_on, self.set_aside = self._hold_out(data.train)
        merged = () if config.federation.exchange == "decoders" else ("decoder", *(["head"] * config.heads_travel))
        travel = config.federation.statistics == "travel"
        self.tracks = {
            name: Track(build_client_model(config, party), config.train, device, merged, travel)
            for name in algorithm.tracks
        }
        self.schedule = algorithm.local_schedule(config.train.local_epochs[party.dataset])
        # The tasks of each optimiser step on a batch.
        self.network = network_of(config.model)
        self.steps = self.network.task_steps(party.tasks)
        self.weights: dict[str, LossWeights] = {}  # by track and its tasks, from their first training on
        # An anchor is kept only for methods whose local objective can ask for it.
        self.has_objective = algorithm.has_objective
        self.compressor = Compressor(config.federation)
        self.parking = Parking(config.federation.park, device)
        self.clock = stopwatch(device)
        self.spent: dict[str, float] = {}  # seconds by phase since the server was last told
        self.warm = False  # the first batch of a process pays for lazy initialisation and searches of kernels

    def _hold_out(self, view: View) -> tuple[View, View]:
        """Split the training images into those that are trained on and those that the method holds out."""
        share = self.algorithm.held_out()
        if not share:
            return view, replace(view, indices=view.indices[:0])
        order = stream(self.config.seed, "held out", self.party.id).permutation(len(view))
        count = min(max(1, round(share * len(view))), len(view) - 1)
        if not count:
            raise FmtlbenchError(f"client {self.party.id}: one training image is too few to hold some out of training")
        held, kept = np.sort(order[:count]), np.sort(order[count:])
        return replace(view, indices=view.indices[kept]), replace(view, indices=view.indices[held])

    @property
    def batches_per_epoch(self) -> int:
        """Return how many batches an epoch has."""
        return batch_count(len(self.trained_on), self.config.train.batch_size)

    @property
    def steps_per_round(self) -> int:
        """Return how many training steps a round takes, over all tracks."""
        per_epoch = self.batches_per_epoch * len(self.steps) * self.algorithm.steps_per_batch()
        return len(self.trained_tracks) * len(self.schedule) * per_epoch

    @property
    def trained_tracks(self) -> tuple[str, ...]:
        """Return the tracks that the optimiser trains."""
        return self.algorithm.trained_tracks or tuple(self.tracks)

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
        if not self.parking.active:
            return
        anchors = [row for rows in self.anchor.values() for row in rows]
        models = [tensor for track in self.tracks.values() for tensor in track.large_tensors()]
        gradients = [track.flat.gradient for track in self.tracks.values() if track.flat.gradient is not None]
        kept: list[Tensor] = list_leaves((self.memory, self.compressor.residuals), Tensor)
        kept += [tensor for weights in self.weights.values() for tensor in weights.large_tensors()]
        self.parking.rest([*models, *anchors, *kept], gradients)  # an epoch begins with gradients of zero

    def _answer(self, message: Message, on_step: OnStep | None) -> Reply:
        match message:
            case Train():
                return self._take_part(message, on_step)
            case Evaluate():
                weights: dict[str, Tensor] | None = {} if message.weights else None
                sums: MeterSums | None = {} if message.sums else None
                scores = tuple(self.evaluate(message.index, weights, sums))
                return Reply(scores=scores, weights=weights, sums=sums, spent=self.times())
            case Install():
                self.install(message.rows, message.names)
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

    def _take_part(self, message: Train, on_step: OnStep | None) -> Reply:
        """Do a round: take what was sent, prepare, train, measure, and send."""
        self.algorithm.begin(message.index)
        self.round = message.index
        if message.install:
            self.install(message.install)
        # Copies: what came from another process lies in memory that nobody may write to.
        self.received = {name: value.to(self.device, copy=True) for name, value in message.parcel.items()}
        self._look("adopt")
        start = self.read(message.start_of, message.names)
        before = self.read(message.kinds, message.names) if self.compressor.active else {}
        report = self.train(message.index, message.kinds, on_step, message.work)
        measured = self._look("measure") or {}
        self.received, self._gradients = {}, None
        rows, sizes = self.read((*message.kinds, *message.shown), message.names), dict[str, int]()
        for kind, old in before.items():
            layout = self.layout(kind)
            home = self.algorithm.kept_home(kind, layout)
            parts = message.names.get(kind) or [("main", owner.task) for owner in self.main.flat.owners(kind, 0)]
            names = [f"{kind} {track} {task or ''}".rstrip() for track, task in parts]
            rows[kind], sizes[kind] = self.compressor.send(names, old, rows[kind], layout, home)
        return Reply(self.times(), report=report, rows=rows, start=start, measured=measured, sizes=sizes)

    def _look(self, hook: str) -> Any:
        """Have the method look at the client's images, in `adopt` or `measure`, if it has that hook."""
        if not self.algorithm.has(hook):
            return None
        self.clock.start()
        with self._randomness(hook, self.round), self.looking(hook), torch.no_grad():
            found = getattr(self.algorithm, hook)(self)
        self.clock.lap(hook)
        self._book(self.clock.read())
        return found

    def read(self, kinds: Kinds, names: RowNames | None = None) -> ClientRows:
        """Return copies of the rows of `kinds`, one per owner: all of the main track, or those of these names."""
        found: ClientRows = {}
        for kind in kinds:
            if names and kind in names:
                found[kind] = [self.tracks[track].flat.read(kind, [task])[0] for track, task in names[kind]]
            else:
                found[kind] = self.main.flat.read(kind)
        return found

    def install(self, rows: ClientRows, names: RowNames | None = None) -> None:
        """Take what the server sent: as the new model, or its parameters as the anchor of the local objective."""
        for kind, values in rows.items():
            if self.algorithm.installs and names and kind in names:
                for (track, task), value in zip(names[kind], values, strict=True):
                    self.tracks[track].flat.write(kind, [value], [task])
            elif self.algorithm.installs:
                self.main.flat.write(kind, self._keep_home(kind, values))
            else:
                mine = self.main.flat.rows(kind)
                self.anchor[kind] = [new[: len(row)].clone() for row, new in zip(mine, values, strict=True)]

    def _keep_home(self, kind: str, values: list[Tensor]) -> list[Tensor]:
        """Return rows that came with the client's own values in the tensors of which the method says they stay home."""
        home = self.algorithm.kept_home(kind, self.layout(kind))
        if not home:
            return values
        values = [value.clone() for value in values]
        for value, own in zip(values, self.main.flat.read(kind)):
            for t in home:
                value[t.start : t.stop] = own[t.start : t.stop]
        return values

    # -- local training ----------------------------------------------------------------------------------------------

    def train(self, index: int, kinds: Kinds, on_step: OnStep | None = None, work: float = 1.0) -> TrainReport:
        """Do the local epochs of round `index`, in which `kinds` travel; `work` is the share there is time for."""
        self.algorithm.begin(index)
        self.clock.start()
        if self.has_objective and self.algorithm.installs:
            self.anchor = {kind: [row.clone() for row in self.main.flat.rows(kind)] for kind in kinds}
        self.round, self._gradients = index, None
        results: dict[str, tuple[dict[str, float], float | None]] = {}
        tasks = self.algorithm.tasks_by_track(self)
        names = tuple(name for name in self.trained_tracks if tasks is None or name in tasks)
        told: dict[str, float] = {}
        for together in [names] if self.algorithm.side_by_side else [(name,) for name in names]:
            lanes = [self._make_lane(name, tasks[name] if tasks else self.party.tasks) for name in together]
            results |= self._train_tracks(lanes, index, on_step, work)
            told |= {task: w for lane in lanes if lane.weights for task, w in (lane.weights.weights() or {}).items()}
        scored = self.algorithm.evaluation_model().track
        losses, norm = results[scored if scored in results else names[0]]
        if tasks is not None:
            losses = {task: loss for own, _ in results.values() for task, loss in own.items()}
        self.clock.lap(OTHER)
        spent = self.clock.read()
        self._book(spent)
        steps = self.batch * self._steps_on_a_batch
        return TrainReport(losses, norm, sum(spent.values()), steps, told or None)

    def _make_lane(self, name: str, tasks: Sequence[str]) -> Lane:
        """Return what the training of a track on some of the client's tasks needs."""
        track = self.tracks[name]
        if self.config.train.optimizer_state == "fresh":
            track.renew_optimizer()
        steps = [own for step in self.steps if (own := tuple(task for task in step if task in tasks))]
        weights = self._weights_of(name, steps[0]) if needs_weights(self.config.train, steps) else None
        return Lane(name, track, track.optimizer, steps, weights, hooks=True)

    def _weights_of(self, name: str, tasks: Sequence[str]) -> LossWeights:
        """Return the weighting of a track's tasks, a new one if these have not been trained together."""
        key = f"{name} {'+'.join(tasks)}"
        if key not in self.weights:
            specs = [self.specs[task] for task in tasks]
            self.weights[key] = LossWeights(self.config.train, specs, self.device)
        return self.weights[key]

    @property
    def _steps_on_a_batch(self) -> int:
        return len(self.steps) * self.algorithm.steps_per_batch()

    def _train_tracks(
        self, lanes: Sequence[Lane], index: int, on_step: OnStep | None, work: float
    ) -> dict[str, tuple[dict[str, float], float | None]]:
        """Train tracks that take turns for the epochs of a round; return the last epoch's losses and norm of each."""
        results: dict[str, tuple[dict[str, float], float | None]] = {}
        total, per_epoch = self.config.federation.rounds * len(self.schedule), self.batches_per_epoch
        left = max(1, round(work * len(self.schedule) * per_epoch))
        self.batch = 0
        with self._randomness("train", index):
            for number, trained in enumerate(self.schedule):
                if not left:  # no time for more
                    break
                done, dataset = index * len(self.schedule) + number, self.party.dataset
                self.lr = learning_rate(self.config.train, done, total, len(self.schedule), dataset)
                order = stream(self.config.seed, "order", self.party.id, index, number)
                now = min(left, per_epoch)
                epoch = Epoch(index, trained, self.lr, order, now, self.algorithm.steps_per_batch())
                results = self._epoch(lanes, epoch, on_step)
                left -= now
        return results

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
        self, lanes: Sequence[Lane], epoch: Epoch, on_step: OnStep | None = None
    ) -> dict[str, tuple[dict[str, float], float | None]]:
        """Train for one epoch, the only batch loop there is; return mean losses and the mean gradient norm by track."""
        train, tasks = self.config.train, self.party.tasks
        watches = {}
        for lane in lanes:
            lane.track.model.train()
            for group in lane.optimizer.param_groups:
                group["lr"] = epoch.lr
            if lane.weights is not None:
                lane.weights.set_rate(epoch.lr)
            steps = epoch.batches * epoch.repeats
            watches[lane.name] = EpochLosses(self.party.id, epoch.round, lane.steps, steps, self.device)
        turns = turns_of(epoch.trained, self.batches_per_epoch)
        self.clock.lap(OTHER)
        workers = self.config.data.workers
        amounts = train.amounts(self.party.dataset)
        loaded = train_batches(
            self.trained_on, tasks, train.batch_size, epoch.order, train.augment, self.device, workers, amounts
        )
        whole = epoch.batches == self.batches_per_epoch
        for position, batch in enumerate(loaded if whole else islice(loaded, epoch.batches)):
            if position in turns:
                for lane in lanes:
                    lane.track.flat.watch_gradients(turns[position])
            self.clock.lap("load" if self.warm else "warmup")
            for lane in lanes:
                self.track = lane.name
                for self.repeat in range(epoch.repeats):
                    for number in range(len(lane.steps)):
                        self._step(lane, batch, number, watches[lane.name])
                        if on_step is not None:
                            on_step(self.party, watches[lane.name])
            self.batch += 1
            self.clock.lap("step" if self.warm else "warmup")
            self.warm = True
        results = {}
        for lane in lanes:
            scaler = lane.track.scaler
            if scaler.is_enabled() and scaler.get_scale() < 1:
                raise DivergedError(
                    f"client {self.party.id}, round {epoch.round + 1}: gradients of {', '.join(tasks)} overflow fp16 "
                    "at any loss scale; try --set train.amp=bf16"
                )
            results[lane.name] = watches[lane.name].finish(lane.track.flat, scaler.is_enabled())
            if lane.weights is not None:
                lane.weights.end_epoch(results[lane.name][0])
        return results

    def _step(self, lane: Lane, batch: dict[str, Tensor], number: int, watch: EpochLosses) -> None:
        """Take one optimiser step, the batch's `number`th, on the tasks that are learned in it."""
        learned, clip = lane.steps[number], self.config.train.clip_norm
        flat, scaler = lane.track.flat, lane.track.scaler
        gradient = flat.gradient
        assert gradient is not None, "flat.watch_gradients makes it"
        if lane.hooks:
            self._let("before_step")
        losses = self._losses(lane, batch, learned)
        total: Tensor = reduce(add, [self.specs[task].weight * loss for task, loss in zip(learned, losses)])
        extra = self.algorithm.local_objective(self, total) if self.has_objective else None
        if number == 0 or not self.network.adds_up_gradients:
            gradient.zero_()
        if lane.weights is None:
            scaler.scale(total if extra is None else total + extra).backward()
        else:
            lane.weights.backward(losses, extra, flat, scaler)
        scaler.unscale_(lane.optimizer)
        if lane.hooks:
            self._let("before_update")
        norm = gradient.norm()
        watch.step(losses, norm, flat, scaler.is_enabled())
        if lane.hooks and lane.name == "main" and self.algorithm.averages_gradients:
            self._add_gradient(gradient, norm, scaler.is_enabled())
        if clip is not None:
            gradient *= (clip / (norm + 1e-6)).clamp(max=1)
        scaler.step(lane.optimizer)
        scaler.update()
        if lane.weights is not None:
            lane.weights.after_step(partial(self._losses_again, lane, batch, learned))

    def _losses(self, lane: Lane, batch: dict[str, Tensor], learned: tuple[str, ...]) -> list[Tensor]:
        """Return the unweighted losses of the tasks of a step, as the network is now."""
        amp = AMP_TYPES[self.config.train.amp]
        with torch.autocast(self.device.type, amp) if amp else nullcontext():
            raw = self._forward(lane.track.network, batch["image"], learned)
        return [task_loss(self.specs[task], raw[task], batch[task]) for task in learned]

    def _losses_again(self, lane: Lane, batch: dict[str, Tensor], learned: tuple[str, ...]) -> list[Tensor]:
        """Return the losses after the step; running statistics see every batch once all the same."""
        before = {name: value.clone() for name, value in lane.track.buffers().items()}
        losses = self._losses(lane, batch, learned)
        for name, value in lane.track.buffers().items():
            value.copy_(before[name])
        return losses

    def _let(self, hook: str) -> None:
        """Let the method change parameters or the gradient in a hook, if it has that."""
        if self.algorithm.has(hook):
            with torch.no_grad():
                self.algorithm.change(hook, self)

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

    # -- scoring and saving ------------------------------------------------------------------------------------------

    def evaluate(
        self, index: int, weights: dict[str, Tensor] | None = None, sums: MeterSums | None = None
    ) -> list[Score]:
        """Return scores on every test split the scenario asks for.

        The scored network is copied into `weights`, what the scores were computed from into `sums`, if given.
        """
        batch_size, workers = self.config.evaluation.batch_size, self.config.data.workers
        self.clock.start()
        with self.scored_model(index) as model:
            records = evaluate(
                model, self.party, self.data, self.info, self.specs, batch_size, self.device, workers, sums
            )
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
        if (tasks := self.algorithm.tasks_by_track(self)) is not None and len(tasks) > 1:
            yield SplitNetwork({own: self.tracks[name].model for name, own in tasks.items()})
            return
        track = self.tracks[chosen.track]
        changes = self.algorithm.has("before_scoring")
        if not chosen.finetune and not changes:
            yield track.model
            return
        before, scale = track.snapshot(), track.scaler.state_dict()
        self.track, self.round = chosen.track, index
        self._let("before_scoring")
        self._finetune(track, index, chosen.finetune)
        try:
            yield track.model
        finally:  # it was a copy: nothing of it may reach the training
            track.restore(*before)
            if track.scaler.is_enabled():
                track.scaler.load_state_dict(scale)

    def _finetune(self, track: Track, index: int, schedule: Sequence[EpochKinds]) -> None:
        """Train some epochs at the full learning rate with an optimiser of their own; losses have fixed weights."""
        optimizer = make_optimizer(self.config.train, track.flat.parameters, self.device)
        lane = Lane(self.track, track, optimizer, self.steps)
        with self._randomness("finetune", index):
            for number, trained in enumerate(schedule):
                order = stream(self.config.seed, "finetune", self.party.id, index, number)
                self._epoch([lane], Epoch(index, trained, self.config.train.lr, order, self.batches_per_epoch))

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs of this client."""
        state: dict[str, Any] = {name: track.state_dict() for name, track in self.tracks.items()}
        if not self.algorithm.installs:
            state["anchor"] = self.anchor
        if self.memory:
            state["memory"] = self.memory
        if self.compressor.residuals:
            state["residuals"] = self.compressor.residuals
        if self.weights:
            state["weights"] = {name: weights.state_dict() for name, weights in self.weights.items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Be as the client was that returned this state."""
        for name, track in self.tracks.items():
            track.load_state_dict(state[name])
        kept = {name: state.get(name, {}) for name in ("anchor", "memory", "residuals", "weights")}
        # Copies: what was read from a file lies in memory that cannot be given back piece by piece.
        kept = map_leaves(to_device(kept, self.device), Tensor, torch.clone)
        self.anchor, self.memory, self.compressor.residuals = kept["anchor"], kept["memory"], kept["residuals"]
        for key, weights in kept["weights"].items():
            name, _, tasks = key.partition(" ")
            self._weights_of(name, tasks.split("+")).load_state_dict(weights)


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
