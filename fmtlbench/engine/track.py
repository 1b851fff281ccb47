"""A model in training: network, flat parameters, optimiser, loss scaler. Most methods have one per client."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import nn

from ..blocks import FlatModel
from ..config import TrainConfig
from .compiled import compiled
from .optim import make_optimizer
from .trees import map_leaves


class Track:
    """One model of a client and everything its training carries from round to round."""

    def __init__(
        self, model: nn.Module, train: TrainConfig, device: torch.device, merged: tuple[str, ...] = (),
        statistics: bool = False,
    ) -> None:  # fmt: skip
        self.model, self.train, self.device = model.to(device), train, device
        self.flat = FlatModel(self.model, merged, statistics)
        self.renew_optimizer()
        self.scaler = torch.amp.GradScaler(device.type, enabled=train.amp == "fp16")

    @cached_property
    def network(self) -> Callable[..., Any]:
        """What a training step calls. Not made before the first one: a stored network is asked without a compiler."""
        return compiled(self.model) if self.train.compile else self.model

    def renew_optimizer(self) -> None:
        """Forget what the optimiser has learned of the gradients."""
        self.optimizer = make_optimizer(self.train, self.flat.parameters, self.device)

    def buffers(self) -> dict[str, torch.Tensor]:
        """Running statistics. Attention masks and index tables are rebuilt with the model, so they are not kept."""
        kept = self.model.state_dict(keep_vars=True)
        return {name: b for name, b in self.model.named_buffers() if name in kept}

    def state_dict(self) -> dict[str, Any]:
        return {
            "vector": self.flat.vector,
            "buffers": self.buffers(),
            "optimizer": {str(k): v for k, v in self.optimizer.state_dict()["state"].items()},
            "scaler": self.scaler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.restore(state["vector"], state["buffers"])
        optimizer = self.optimizer.state_dict()
        # Copies: what was read from a file lies in memory that cannot be given back piece by piece.
        optimizer["state"] = {int(k): map_leaves(v, torch.Tensor, torch.clone) for k, v in state["optimizer"].items()}
        self.optimizer.load_state_dict(optimizer)
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])

    def large_tensors(self) -> list[torch.Tensor]:
        """Return the parameters, as one vector, and what the optimiser keeps for each of them."""
        kept = [value for state in self.optimizer.state.values() for value in state.values()]
        return [self.flat.vector, *(value for value in kept if isinstance(value, torch.Tensor) and value.dim())]

    def snapshot(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Copies of parameters and running statistics, for `restore`."""
        return self.flat.vector.clone(), {name: value.clone() for name, value in self.buffers().items()}

    @torch.no_grad()
    def restore(self, vector: torch.Tensor, buffers: dict[str, torch.Tensor]) -> None:
        self.flat.vector.copy_(vector)
        mine = self.buffers()
        for name, value in buffers.items():
            mine[name].copy_(value)
