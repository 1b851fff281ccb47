"""A model's parameters as one contiguous float32 vector, cut into the network's parts: encoder, decoders, heads.

The parameters are views of the vector, so reading or replacing a part is one copy, and no state dict is ever built or
copied during a round. Running statistics stay in the network's buffers; where they travel, they follow the parameters
of their part's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from ..exchange import Owner, TensorSlice

MEAN, VARIANCE = "running_mean", "running_var"  # what travels of a BatchNorm's buffers, if they do; not its counter


class HasParts(Protocol):
    """A network that says what its parts are."""

    def parts(self) -> Sequence[tuple[str, str | None, nn.Module]]:
        """Return (kind, task or None, module) of every part, in the order of the parameters."""


@dataclass(frozen=True)
class Segment:
    """Where a part lies in the vector: the encoder, or one task's decoder or head."""

    kind: str
    task: str | None
    start: int
    stop: int
    tensors: tuple[TensorSlice, ...]  # offsets relative to `start`
    statistics: tuple[tuple[TensorSlice, Tensor], ...] = ()  # the live buffers that travel, and where in the part's row


class FlatModel:
    """A model whose parameters live in `vector`."""

    def __init__(self, model: HasParts, merged: tuple[str, ...] = (), statistics: bool = False) -> None:
        """Lay out the parts.

        Args:
            model: The network; its parameters become views of the vector.
            merged: Parts of these kinds become one decoder part: what a client that exchanges whole models sends.
            statistics: Whether running statistics travel with their part.
        """
        self.model = model
        self.segments: list[Segment] = []
        self.parameters: list[nn.Parameter] = []
        self._kind_of: list[str] = []
        position = 0
        for kind, task, module in model.parts():
            joins = kind in merged
            if joins and self.segments[-1].task is None and self.segments[-1].kind == "decoder":
                grown = self.segments.pop()
                start, tensors, buffers = grown.start, list(grown.tensors), list(grown.statistics)
            else:
                start, tensors, buffers = position, [], []
            prefix = f"{kind}.{task}." if joins and task else ""  # a decoder for all tasks has its names as they are
            kind, task = ("decoder", None) if joins else (kind, task)
            norms = {name: form for name, inner in module.named_modules() if (form := _norm_of(inner))}
            for name, parameter in module.named_parameters():
                norm = norms.get(name.rpartition(".")[0], "")
                tensors.append(_slice(kind, prefix, name, position - start, parameter)._replace(norm=norm))
                position += parameter.numel()
                self.parameters.append(parameter)
                self._kind_of.append(kind)
            if statistics:
                buffers += [
                    (_slice(kind, prefix, name, 0, buffer)._replace(statistic=True), buffer)
                    for name, buffer in module.named_buffers()
                    if name.rpartition(".")[2] in (MEAN, VARIANCE)
                ]
            placed = _place(buffers, position - start)
            self.segments.append(Segment(kind, task, start, position, tuple(tensors), placed))
        self.vector = torch.cat([parameter.detach().flatten() for parameter in self.parameters]).float()
        vector_to_parameters(self.vector, self.parameters)
        self.gradient: Tensor | None = None  # from the first `watch_gradients` on

    def watch_gradients(self, kinds: tuple[str, ...]) -> Tensor:
        """Let the parts of `kinds` train and freeze the others; return the vector that all gradients are views of.

        Zeroing and measuring gradients is then one operation each, whatever the number of tensors.
        """
        if self.gradient is None:
            self.gradient = torch.zeros_like(self.vector)
        self.gradient.zero_()
        offset = 0
        for parameter, kind in zip(self.parameters, self._kind_of):
            view = self.gradient[offset : offset + parameter.numel()].view(parameter.shape)
            parameter.requires_grad_(kind in kinds)
            parameter.grad = view if kind in kinds else None
            offset += parameter.numel()
        return self.gradient

    def allow_gradients(self) -> None:
        """Let every part be differentiated, whatever trained last; `watch_gradients` says anew what trains."""
        for parameter in self.parameters:
            parameter.requires_grad_(True)
            parameter.grad = None

    def owners(self, kind: str, client: int) -> list[Owner]:
        """Return who owns the rows of `kind`, if the model is this client's."""
        return [Owner(client, segment.task) for segment in self._of(kind)]

    def rows(self, kind: str) -> list[Tensor]:
        """Return the live views of the parameters of every part of `kind`, one per owner."""
        return [self.vector[segment.start : segment.stop] for segment in self._of(kind)]

    def places(self, kind: str) -> list[slice]:
        """Return where every part of `kind` lies in the vector, one per owner."""
        return [slice(segment.start, segment.stop) for segment in self._of(kind)]

    def layout(self, kind: str) -> tuple[TensorSlice, ...]:
        """Return where the tensors lie in a row of `kind` as it travels: parameters, then statistics if sent."""
        segment = self._of(kind)[0]
        return (*segment.tensors, *(t for t, _ in segment.statistics))

    def layouts(self, kind: str) -> list[tuple[TensorSlice, ...]]:
        """Return where the parameters lie in every part of `kind`, one per owner: heads may differ."""
        return [segment.tensors for segment in self._of(kind)]

    def read(self, kind: str, tasks: Sequence[str | None] | None = None) -> list[Tensor]:
        """Return copies of every part of `kind` as it travels, one per owner; of those of `tasks`, in that order."""
        copies = []
        for segment in self._of(kind, tasks):
            row = self.vector[segment.start : segment.stop]
            buffers = [buffer.flatten() for _, buffer in segment.statistics]
            copies.append(torch.cat([row, *buffers]) if buffers else row.clone())
        return copies

    def write(self, kind: str, rows: list[Tensor], tasks: Sequence[str | None] | None = None) -> None:
        """Replace parts of `kind`, as `read` has them, by rows that travelled. No variance becomes negative."""
        for segment, new in zip(self._of(kind, tasks), rows, strict=True):
            mine = self.vector[segment.start : segment.stop]
            mine.copy_(new[: len(mine)])
            for t, buffer in segment.statistics:
                buffer.copy_(new[t.start : t.stop].view_as(buffer))
                if t.name.endswith(VARIANCE):
                    buffer.clamp_(min=0)

    def _of(self, kind: str, tasks: Sequence[str | None] | None = None) -> list[Segment]:
        found = {segment.task: segment for segment in self.segments if segment.kind == kind}
        return list(found.values()) if tasks is None else [found[task] for task in tasks]

    def parameters_of(self, kinds: tuple[str, ...]) -> list[nn.Parameter]:
        """Return the parameters of the parts of `kinds`."""
        return [p for p, kind in zip(self.parameters, self._kind_of) if kind in kinds]

    def counts(self) -> dict[str, int]:
        """Return the number of parameters by kind."""
        totals: dict[str, int] = {}
        for segment in self.segments:
            totals[segment.kind] = totals.get(segment.kind, 0) + segment.stop - segment.start
        return totals


def _norm_of(module: nn.Module) -> str:
    """Return which kind of normalisation a layer does, as `TensorSlice.norm` has it; empty if none."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return "batch"
    return "other" if isinstance(module, (nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)) else ""


def _slice(kind: str, prefix: str, name: str, start: int, tensor: Tensor) -> TensorSlice:
    layer = f"{prefix}{name.split('.', 1)[0]}" if kind == "decoder" else kind
    return TensorSlice(prefix + name, layer, start, start + tensor.numel())


def _place(buffers: list[tuple[TensorSlice, Tensor]], start: int) -> tuple[tuple[TensorSlice, Tensor], ...]:
    """Put the buffers one after the other from `start` on: behind the parameters of their row."""
    placed = []
    for t, buffer in buffers:
        placed.append((t._replace(start=start, stop=start + buffer.numel()), buffer))
        start += buffer.numel()
    return tuple(placed)
