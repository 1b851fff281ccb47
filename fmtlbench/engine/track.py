"""A model in training: network, flat parameters, optimiser, loss scaler. Most methods have one per client."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from ..config.run_config import TrainConfig
from ..networks.flat import FlatModel
from ..networks.net import DenseNet
from .optim import make_optimizer
from .state_trees import map_leaves
from .torch_compile import compile_fully

Network = Callable[..., dict[str, torch.Tensor]]  # (image, tasks) → raw outputs by task


class Track:
    """One model of a client and everything its training carries from round to round."""

    def __init__(
        self,
        model: DenseNet,
        train: TrainConfig,
        device: torch.device,
        merged: tuple[str, ...] = (),
        statistics: bool = False,
    ) -> None:
        """Move the model to the device and set up what trains it; `merged` and `statistics` as FlatModel has them."""
        self.model, self.train, self.device = model.to(device), train, device
        self.flat = FlatModel(self.model, merged, statistics)
        self.renew_optimizer()
        self.scaler = torch.amp.GradScaler(device.type, enabled=train.amp == "fp16")

    @cached_property
    def network(self) -> Network:
        """Return what a training step calls, made at the first one: a stored network is asked without a compiler."""
        return compile_fully(self.model) if self.train.compile else self.model

    def renew_optimizer(self) -> None:
        """Forget what the optimiser has learned of the gradients."""
        self.optimizer = make_optimizer(self.train, self.flat.parameters, self.device)

    def buffers(self) -> dict[str, torch.Tensor]:
        """Return the running statistics. Attention masks and index tables are rebuilt with the model, so not kept."""
        kept = self.model.state_dict(keep_vars=True)
        return {name: b for name, b in self.model.named_buffers() if name in kept}

    def state_dict(self) -> dict[str, Any]:
        """Return everything the training carries from round to round."""
        return {
            "vector": self.flat.vector,
            "buffers": self.buffers(),
            "optimizer": {str(k): v for k, v in self.optimizer.state_dict()["state"].items()},
            "scaler": self.scaler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
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
        """Return copies of parameters and running statistics, for `restore`."""
        return self.flat.vector.clone(), {name: value.clone() for name, value in self.buffers().items()}

    @torch.no_grad()
    def restore(self, vector: torch.Tensor, buffers: dict[str, torch.Tensor]) -> None:
        """Take over what `snapshot` returned."""
        self.flat.vector.copy_(vector)
        mine = self.buffers()
        for name, value in buffers.items():
            mine[name].copy_(value)
