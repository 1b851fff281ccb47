"""What a client offers its method: live parameters, memory, distances, and looks at its training images.

These are the protocols `algorithms.Local` and `algorithms.Workbench`. The method sees tensors only: no loader, no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..algorithms import Batch, Kinds
from ..base.seeds import stream
from ..config.run_config import RunConfig
from ..data.batches import train_batches
from ..data.views import View
from ..exchange import Party, TensorSlice
from ..tasks import TaskSpec
from .losses import task_loss
from .track import Track


class ClientWorkbench:
    """The method's view of one client. `Client` adds the training itself."""

    config: RunConfig
    party: Party
    device: torch.device
    specs: dict[str, TaskSpec]
    tracks: dict[str, Track]
    trained_on: View  # training images
    set_aside: View  # those that the method holds out of training

    def __init__(self) -> None:
        self.track = "main"
        self.round = self.batch = self.repeat = 0
        self.lr = 0.0
        self.memory: dict[str, Any] = {}
        self.received: Mapping[str, Tensor] = {}
        self.anchor: dict[str, list[Tensor]] = {}
        self._gradients: tuple[Tensor, int] | None = None  # the sum over the round's steps, and how many these are
        self._looking = "adopt"  # which hook looks at images, so that each draws its own

    # -- in every training step ----------------------------------------------------------------------------------------

    @property
    def anchored(self) -> Kinds:
        """Return the kinds that have an anchor."""
        return tuple(self.anchor)

    def squared_distance(self, kind: str, to: Sequence[Tensor] | None = None) -> Tensor:
        """Return ‖θ − anchor‖², or the distance from the rows `to`, of the track in training."""
        total = torch.zeros((), device=self.device)
        for parameter, values in self._paired(kind, self.anchor[kind] if to is None else to):
            total = total + (parameter - values).square().sum()
        return total

    def inner(self, kind: str, vectors: Sequence[Tensor]) -> Tensor:
        """Return ⟨vectors, θ⟩ of the track in training."""
        products = [(parameter * values).sum() for parameter, values in self._paired(kind, vectors)]
        return torch.stack(products).sum()

    def _paired(self, kind: str, rows: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield every parameter of `kind` with the part of its row in `rows`, in its shape."""
        flat = self.tracks[self.track].flat
        live = iter(flat.parameters_of((kind,)))
        for row, tensors in zip(rows, flat.layouts(kind), strict=True):
            for t in tensors:
                parameter = next(live)
                yield parameter, row[t.start : t.stop].view_as(parameter)

    def squared_norm(self, kind: str) -> Tensor:
        """Return ‖θ‖² of the track in training."""
        parameters = self.tracks[self.track].flat.parameters_of((kind,))
        return torch.stack([parameter.square().sum() for parameter in parameters]).sum()

    def size(self, kind: str) -> int:
        """Return the number of parameters of `kind`."""
        return self.tracks["main"].flat.counts()[kind]

    def rows(self, kind: str, track: str | None = None) -> list[Tensor]:
        """Return the live parameters of a track's parts of `kind`, flat."""
        return self.tracks[track or self.track].flat.rows(kind)

    def vector(self, track: str | None = None) -> Tensor:
        """Return the live parameters of a track as one vector."""
        return self.tracks[track or self.track].flat.vector

    def gradient(self) -> Tensor:
        """Return the live gradient of the track in training; zeros where parts are frozen."""
        gradient = self.tracks[self.track].flat.gradient
        assert gradient is not None, "there is one from the first training step on"
        return gradient

    def mean_gradient(self, kind: str) -> list[Tensor]:
        """Return the mean gradient over this round's steps of the main track, a row per part of `kind`."""
        if self._gradients is None:
            raise ValueError("no gradients were summed up: set averages_gradients = True on the method's class")
        total, steps = self._gradients
        return [total[part] / max(steps, 1) for part in self.tracks["main"].flat.places(kind)]

    def _add_gradient(self, gradient: Tensor, norm: Tensor, scaled: bool) -> None:
        """Add a step's gradient to the round's; one that a loss scaler is about to skip does not count."""
        if scaled and not norm.isfinite():
            return
        total, steps = self._gradients or (torch.zeros_like(gradient), 0)
        self._gradients = total.add_(gradient), steps + 1

    # -- before and after local training -------------------------------------------------------------------------------

    def batches(self, count: int | None = None, share: float = 1.0, held_out: bool = False) -> Iterator[Batch]:
        """Yield training batches as they are, in an order of their own."""
        view = self.set_aside if held_out else self.trained_on
        rng = stream(self.config.seed, "look", self._looking, self.party.id, self.round)
        if share < 1:
            chosen = rng.permutation(len(view))[: max(1, round(share * len(view)))]
            view = replace(view, indices=view.indices[chosen])
        size, workers = self.config.train.batch_size, self.config.data.workers
        loaded = train_batches(view, self.party.tasks, size, rng, (), self.device, workers)
        for number, batch in enumerate(loaded):
            if count is not None and number >= count:
                break
            yield batch

    def losses(self, batch: Batch, track: str | None = None) -> Tensor:
        """Return the unweighted losses of the client's tasks on a batch. [m]."""
        # Some encoders keep what they once computed from their weights, which may have been changed: `eval` drops it.
        model = self.tracks[track or self.track].model.eval()
        raw = model(batch["image"], self.party.tasks)
        return torch.stack([task_loss(self.specs[t], raw[t].float(), batch[t]) for t in self.party.tasks])

    def loss_weights(self) -> Tensor:
        """Return the fixed weights of the client's tasks. [m]."""
        return torch.tensor([self.specs[task].weight for task in self.party.tasks], device=self.device)

    def row_gradients(self, loss: Tensor, kind: str) -> list[Tensor]:
        """Return the gradient of a loss with respect to the parts of `kind` of the track in training."""
        flat = self.tracks[self.track].flat
        parameters = flat.parameters_of((kind,))
        found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
        pieces = [(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(parameters, found)]
        lengths = [part.stop - part.start for part in flat.places(kind)]
        return list(torch.cat(pieces).split(lengths))

    def feature_gradients(self, batch: Batch) -> Tensor:
        """Return each task's gradient at the encoder's deepest map, meant over batch and space. [m, channels]."""
        model = self.tracks[self.track].model
        size = tuple(batch["image"].shape[-2:])
        with torch.no_grad():
            maps = list(model.eval().encoder(batch["image"]))
        deepest = maps[-1] = maps[-1].detach().requires_grad_()
        found = []
        with torch.enable_grad():
            for task in self.party.tasks:
                raw = model.decode(maps, task, (size[0], size[1]))
                loss = task_loss(self.specs[task], raw.float(), batch[task])
                (gradient,) = torch.autograd.grad(loss, deepest)
                found.append(gradient.mean((0, 2, 3)))
        return torch.stack(found)

    def layout(self, kind: str) -> tuple[TensorSlice, ...]:
        """Return where the tensors lie in a row of `kind`."""
        return self.tracks["main"].flat.layout(kind)

    @contextmanager
    def looking(self, hook: str) -> Iterator[None]:
        """Have the networks answer as in scoring while a hook looks at images; every part can have gradients."""
        self._looking, self.track = hook, "main"
        for track in self.tracks.values():
            track.model.eval()
            track.flat.allow_gradients()
        try:
            yield
        finally:
            for track in self.tracks.values():
                track.model.train()
