"""A model's parameters as one contiguous float32 vector, cut into named blocks.

Blocks are `encoder`, `decoder/<task>/<layer>` and `head/<task>`, as the network's `parts` say; the parameters are views
of the vector, so reading or replacing a part is one copy, and no state dict is ever built or copied during a round.
Running statistics stay in the network's buffers; where they travel, they follow the parameters of their part's row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .exchange import Owner, TensorSlice

MEAN, VARIANCE = "running_mean", "running_var"  # what travels of a BatchNorm's buffers, if they do; not its counter


@dataclass(frozen=True)
class Part:
    """A contiguous stretch of the vector that travels as a whole: the encoder, or one task's decoder or head."""

    kind: str
    task: str | None
    start: int
    stop: int
    tensors: tuple[TensorSlice, ...]  # offsets relative to `start`
    statistics: tuple[tuple[TensorSlice, Tensor], ...] = ()  # the live buffers that travel, and where in the part's row


class FlatModel:
    """A model whose parameters live in `vector`."""

    def __init__(self, model: nn.Module, merged: tuple[str, ...] = (), statistics: bool = False) -> None:
        """Lay out the parts.

        Args:
            model: With `parts`.
            merged: Parts of these kinds become one decoder part: what a client that exchanges whole models sends.
            statistics: Whether running statistics travel with their part.
        """
        self.model = model
        self.parts: list[Part] = []
        self.parameters: list[nn.Parameter] = []
        self._kind_of: list[str] = []
        position = 0
        for kind, task, module in model.parts():
            joins = kind in merged
            if joins and self.parts[-1].task is None and self.parts[-1].kind == "decoder":
                grown = self.parts.pop()
                start, tensors, buffers = grown.start, list(grown.tensors), list(grown.statistics)
            else:
                start, tensors, buffers = position, [], []
            prefix = f"{kind}.{task}." if joins and task else ""  # a decoder for all tasks has its names as they are
            kind, task = ("decoder", None) if joins else (kind, task)
            for name, parameter in module.named_parameters():
                tensors.append(_slice(kind, prefix, name, position - start, parameter))
                position += parameter.numel()
                self.parameters.append(parameter)
                self._kind_of.append(kind)
            if statistics:
                buffers += [
                    (_slice(kind, prefix, name, 0, buffer)._replace(statistic=True), buffer)
                    for name, buffer in module.named_buffers()
                    if name.rpartition(".")[2] in (MEAN, VARIANCE)
                ]
            self.parts.append(Part(kind, task, start, position, tuple(tensors), _moved(buffers, position - start)))
        device = self.parameters[0].device
        self.vector = torch.empty(position, dtype=torch.float32, device=device)
        self.gradient: Tensor | None = None
        offset = 0
        for parameter in self.parameters:
            view = self.vector[offset : offset + parameter.numel()].view(parameter.shape)
            view.copy_(parameter.detach())
            parameter.data = view
            offset += parameter.numel()

    def watch_gradients(self, kinds: tuple[str, ...]) -> None:
        """Let the blocks of `kinds` train, with gradients that are views of one vector; freeze the others.

        Zeroing and measuring them is then one operation each, whatever the number of tensors.
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

    def owners(self, kind: str, client: int) -> list[Owner]:
        return [Owner(client, part.task) for part in self._of(kind)]

    def rows(self, kind: str) -> list[Tensor]:
        """The live views of the parameters of every part of `kind`, one per owner."""
        return [self.vector[part.start : part.stop] for part in self._of(kind)]

    def layout(self, kind: str) -> tuple[TensorSlice, ...]:
        """Where the tensors lie in a row of `kind` as it travels: parameters, then running statistics if they do."""
        part = self._of(kind)[0]
        return (*part.tensors, *(t for t, _ in part.statistics))

    def read(self, kind: str) -> list[Tensor]:
        """Copies of every part of `kind` as it travels, one per owner."""
        return [
            torch.cat([row, *(buffer.flatten() for _, buffer in part.statistics)]) if part.statistics else row.clone()
            for part, row in zip(self._of(kind), self.rows(kind))
        ]

    def write(self, kind: str, rows: list[Tensor]) -> None:
        """Replace every part of `kind` by a row that travelled. No variance becomes negative, whatever came."""
        for part, mine, new in zip(self._of(kind), self.rows(kind), rows, strict=True):
            mine.copy_(new[: len(mine)])
            for t, buffer in part.statistics:
                buffer.copy_(new[t.start : t.stop].view_as(buffer))
                if t.name.endswith(VARIANCE):
                    buffer.clamp_(min=0)

    def _of(self, kind: str) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]

    def parameters_of(self, kinds: tuple[str, ...]) -> list[nn.Parameter]:
        return [p for p, kind in zip(self.parameters, self._kind_of) if kind in kinds]

    def counts(self) -> dict[str, int]:
        """Number of parameters by kind."""
        totals: dict[str, int] = {}
        for part in self.parts:
            totals[part.kind] = totals.get(part.kind, 0) + part.stop - part.start
        return totals


def _slice(kind: str, prefix: str, name: str, start: int, tensor: Tensor) -> TensorSlice:
    layer = f"{prefix}{name.split('.', 1)[0]}" if kind == "decoder" else kind
    return TensorSlice(prefix + name, layer, start, start + tensor.numel())


def _moved(buffers: list[tuple[TensorSlice, Tensor]], start: int) -> tuple[tuple[TensorSlice, Tensor], ...]:
    """The buffers one after the other from `start` on: behind the parameters of their row."""
    placed = []
    for t, buffer in buffers:
        placed.append((t._replace(start=start, stop=start + buffer.numel()), buffer))
        start += buffer.numel()
    return tuple(placed)
