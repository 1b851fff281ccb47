"""A client: its model, its optimiser, its data. It never learns which method it takes part in."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..algorithms import Algorithm
from ..blocks import FlatModel
from ..config import RunConfig
from ..data.batches import batch_count, train_batches
from ..data.catalog import dataset_for
from ..data.views import ClientData
from ..exchange import KINDS, Owner, Party, TensorSlice
from ..losses import task_loss
from ..models.build import build_model
from ..seeds import seed_of, stream
from ..tasks import TASKS
from .evaluate import evaluate
from .optim import learning_rate, make_optimizer
from .precision import AMP_TYPES
from .watch import DivergedError, EpochWatch


@dataclass(frozen=True)
class TrainReport:
    """What a client tells about its local training."""

    losses: dict[str, float]  # unweighted, mean over the last local epoch
    grad_norm: float | None
    steps: int
    seconds: float


class Client:
    """One party of the federation."""

    def __init__(
        self, config: RunConfig, party: Party, data: ClientData, algorithm: Algorithm, device: torch.device
    ) -> None:
        self.config, self.party, self.data, self.algorithm, self.device = config, party, data, algorithm, device
        classes = dataset_for(party.dataset, config.data.source).classes
        self.outputs = {task: TASKS[task].outputs(classes) for task in party.tasks}
        model = build_model(config.model, config.data.size[party.dataset], self.outputs, config.seed)
        self.model = model.to(device)
        self.flat = FlatModel(self.model)
        self.optimizer = make_optimizer(config.train, self.flat.parameters, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=config.train.amp == "fp16")
        self.schedule = algorithm.local_schedule(config.train.local_epochs[party.dataset])
        weights = config.train.loss_weights or {}
        self.weights = {task: weights.get(task, TASKS[task].weight) for task in party.tasks}
        # An anchor is kept only for methods whose local objective can ask for it.
        self.has_objective = type(algorithm).local_objective is not Algorithm.local_objective
        self.received: dict[str, list[Tensor]] = {}

    @property
    def steps_per_round(self) -> int:
        return len(self.schedule) * batch_count(len(self.data.train), self.config.train.batch_size)

    # -- what travels ------------------------------------------------------------------------------------------------

    def layout(self, kind: str) -> tuple[list[Owner], tuple[TensorSlice, ...]]:
        return self.flat.owners(kind, self.party.index), self.flat.layout(kind)

    def upload(self, kinds: tuple[str, ...]) -> dict[str, list[Tensor]]:
        """Copies of the asked parts, one row per owner."""
        return {kind: [row.clone() for row in self.flat.rows(kind)] for kind in kinds}

    def download(self, rows: dict[str, list[Tensor]]) -> None:
        """Replace parts by what the server sent."""
        for kind, values in rows.items():
            for mine, new in zip(self.flat.rows(kind), values, strict=True):
                mine.copy_(new)

    # -- local training ----------------------------------------------------------------------------------------------

    def train(self, index: int, kinds: tuple[str, ...], on_step: Callable | None = None) -> TrainReport:
        """The local epochs of round `index`, in which `kinds` travel."""
        began = time.perf_counter()
        if self.has_objective:
            self.received = self.upload(kinds)
        self.model.train()
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed_of(self.config.seed, "train", self.party.id, index))
            for epoch, trained in enumerate(self.schedule):
                losses, norm = self._epoch(index, epoch, trained, on_step)
        return TrainReport(losses, norm, self.steps_per_round, time.perf_counter() - began)

    def _epoch(self, index: int, epoch: int, trained: tuple[str, ...], on_step: Callable | None):
        train, epochs = self.config.train, len(self.schedule)
        lr = learning_rate(train, index * epochs + epoch, self.config.federation.rounds * epochs)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        for kind in KINDS:
            for parameter in self.flat.parameters_of((kind,)):
                parameter.requires_grad_(kind in trained)
        active = self.flat.parameters_of(trained)
        rng = stream(self.config.seed, "order", self.party.id, index, epoch)
        steps = batch_count(len(self.data.train), train.batch_size)
        watch = EpochWatch(self.party.id, index, self.party.tasks, steps, self.device)
        amp = AMP_TYPES[train.amp]
        batches = train_batches(self.data.train, self.party.tasks, train.batch_size, rng, train.augment, self.device)
        for batch in batches:
            with torch.autocast(self.device.type, amp) if amp else nullcontext():
                raw = self.model(batch["image"])
            losses = [task_loss(TASKS[task], raw[task], batch[task]) for task in self.party.tasks]
            total = sum(self.weights[task] * loss for task, loss in zip(self.party.tasks, losses))
            if self.has_objective and (extra := self.algorithm.local_objective(self)) is not None:
                total = total + extra
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(total).backward()
            self.scaler.unscale_(self.optimizer)
            gradients = [p.grad for p in active if p.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
            watch.step(losses, norm, self.flat, self.scaler.is_enabled())
            if train.clip_norm is not None:
                torch.nn.utils.clip_grads_with_norm_(active, train.clip_norm, norm)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            if on_step is not None:
                on_step(self.party, watch)
        if self.scaler.is_enabled() and self.scaler.get_scale() < 1:
            raise DivergedError(
                f"client {self.party.id}, round {index + 1}: gradients of {', '.join(self.party.tasks)} overflow fp16 at "
                "any loss scale; try --set train.amp=bf16"
            )
        return watch.finish(self.flat, self.scaler.is_enabled())

    def squared_distance(self) -> Tensor:
        """‖θ − θ_received‖² over what travels, for the method's local objective."""
        total = torch.zeros((), device=self.device)
        for kind, anchors in self.received.items():
            live = iter(self.flat.parameters_of((kind,)))
            for anchor in anchors:
                for t in self.flat.layout(kind):
                    parameter = next(live)
                    total = total + (parameter - anchor[t.start : t.stop].view_as(parameter)).square().sum()
        return total

    # -- scoring and saving ------------------------------------------------------------------------------------------

    def evaluate(self) -> list[dict[str, Any]]:
        """Scores on every test split the scenario asks for, as plain records."""
        return evaluate(self.model, self.party, self.data, self.outputs, self.config.evaluation.batch_size, self.device)

    def state_dict(self) -> dict[str, Any]:
        buffers = {name: value for name, value in self.model.named_buffers() if name in self._saved_buffers()}
        return {
            "vector": self.flat.vector,
            "buffers": buffers,
            "optimizer": {str(k): v for k, v in self.optimizer.state_dict()["state"].items()},
            "scaler": self.scaler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.flat.vector.copy_(state["vector"])
            buffers = dict(self.model.named_buffers())
            for name, value in state["buffers"].items():
                buffers[name].copy_(value)
        optimizer = self.optimizer.state_dict()
        optimizer["state"] = {int(k): v for k, v in state["optimizer"].items()}
        self.optimizer.load_state_dict(optimizer)
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])

    def _saved_buffers(self) -> set[str]:
        """Running statistics; attention masks and index tables are rebuilt with the model."""
        return {name for name in self.model.state_dict() if "running_" in name or "num_batches_tracked" in name}
