"""A model's parameters as one contiguous float32 vector, cut into named blocks.

Blocks are `encoder`, `decoder/<task>/<layer>` and `head/<task>`, as the network's `parts` say; the parameters are views
of the vector, so reading or replacing a part is one copy, and no state dict is ever built or copied during a round.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .exchange import Owner, TensorSlice


@dataclass(frozen=True)
class Part:
    """A contiguous stretch of the vector that travels as a whole: the encoder, or one task's decoder or head."""

    kind: str
    task: str | None
    start: int
    stop: int
    tensors: tuple[TensorSlice, ...]  # offsets relative to `start`


class FlatModel:
    """A model whose parameters live in `vector`."""

    def __init__(self, model: nn.Module, merged: tuple[str, ...] = ()) -> None:
        """Parts of the kinds in `merged` become one decoder part: what a client that exchanges whole models sends."""
        self.model = model
        self.parts: list[Part] = []
        self.parameters: list[nn.Parameter] = []
        self._kind_of: list[str] = []
        position = 0
        for kind, task, module in model.parts():
            joins = kind in merged
            if joins and self.parts[-1].task is None and self.parts[-1].kind == "decoder":
                start, tensors = self.parts[-1].start, list(self.parts.pop().tensors)
            else:
                start, tensors = position, []
            prefix = f"{kind}.{task}." if joins and task else ""  # a decoder for all tasks has its names as they are
            kind, task = ("decoder", None) if joins else (kind, task)
            for name, parameter in module.named_parameters():
                layer = f"{prefix}{name.split('.', 1)[0]}" if kind == "decoder" else kind
                tensors.append(
                    TensorSlice(prefix + name, layer, position - start, position - start + parameter.numel())
                )
                position += parameter.numel()
                self.parameters.append(parameter)
                self._kind_of.append(kind)
            self.parts.append(Part(kind, task, start, position, tuple(tensors)))
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
        return [Owner(client, part.task) for part in self.parts if part.kind == kind]

    def rows(self, kind: str) -> list[Tensor]:
        """The live views of every part of `kind`, one per owner."""
        return [self.vector[part.start : part.stop] for part in self.parts if part.kind == kind]

    def layout(self, kind: str) -> tuple[TensorSlice, ...]:
        return next(part.tensors for part in self.parts if part.kind == kind)

    def parameters_of(self, kinds: tuple[str, ...]) -> list[nn.Parameter]:
        return [p for p, kind in zip(self.parameters, self._kind_of) if kind in kinds]

    def counts(self) -> dict[str, int]:
        """Number of parameters by kind."""
        totals: dict[str, int] = {}
        for part in self.parts:
            totals[part.kind] = totals.get(part.kind, 0) + part.stop - part.start
        return totals
