"""A weighting of tasks' losses at work in the training steps of one client's track (`fmtlbench.weightings`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..config.run_config import RunConfig, TrainConfig
from ..exchange import Party
from ..exchange.hooks import build_options, call_hook, kind_of
from ..networks.flat import FlatModel
from ..networks.network import network_of
from ..tasks import TaskSpec
from ..weightings import WEIGHTINGS, Weighting
from .optim import make_optimizer
from .state_trees import list_leaves


class LossWeights:
    """What a step does with the losses of a client's tasks, where that is more than adding them up."""

    def __init__(self, config: TrainConfig, specs: Sequence[TaskSpec], device: torch.device) -> None:
        chosen = WEIGHTINGS[config.weighting]
        params = build_options(chosen, config.weighting_options, "train.weighting_options")
        self.tasks = tuple(spec.name for spec in specs)
        self.weighting: Weighting = call_hook(chosen.name, "__init__", chosen, params, self.tasks)
        self.device = device
        fixed = [1.0 if chosen.scale_free else spec.weight for spec in specs]
        self.fixed = torch.tensor(fixed, device=device)
        self.learned = self._ask("parameters")
        for parameter in self.learned:
            parameter.data = parameter.data.to(device)
        undecayed = dataclasses.replace(config, weight_decay=0.0)
        self.optimizer = make_optimizer(undecayed, self.learned, device) if self.learned else None
        self.losses: Tensor | None = None  # of the last step, detached

    def set_rate(self, lr: float) -> None:
        """Learn at the rate of the epoch."""
        for group in self.optimizer.param_groups if self.optimizer else ():
            group["lr"] = lr

    def backward(
        self, losses: list[Tensor], extra: Tensor | None, flat: FlatModel, scaler: torch.amp.GradScaler
    ) -> None:
        """Fill the gradients of a step: of the weighted losses, and of the method's own term as it is."""
        weighted = [weight * loss for weight, loss in zip(self.fixed, losses)]
        stacked = torch.stack(weighted)
        self.losses = stacked.detach()
        if self.weighting.needs_gradients and flat.parameters_of(("encoder",))[0].requires_grad:
            self._combine(weighted, flat, scaler)
            if extra is not None:
                scaler.scale(extra).backward()
        else:  # a frozen encoder has nothing to combine: decoders and heads get their own task's gradient
            total = stacked.sum() if self.weighting.needs_gradients else self._ask("total", stacked)
            self._check("total", total, ())
            scaler.scale(total if extra is None else total + extra).backward()
        self._learn(scaler)

    def _combine(self, losses: list[Tensor], flat: FlatModel, scaler: torch.amp.GradScaler) -> None:
        """Differentiate task by task; of the encoder's gradients the weighting makes one.

        Each loss by itself: through a stack of them, zeros would go through all other tasks' decoders.
        """
        assert flat.gradient is not None, "flat.watch_gradients makes it"
        (place,) = flat.places("encoder")
        shared = flat.gradient[place]
        gradients = shared.new_empty(len(losses), len(shared))
        for number, loss in enumerate(losses):
            scaler.scale(loss).backward(retain_graph=number + 1 < len(losses))
            gradients[number] = shared
            shared.zero_()
        scale = scaler.get_scale() if scaler.is_enabled() else 1.0
        combined = self._ask("combine", gradients if scale == 1.0 else gradients / scale, self.losses)
        self._check("combine", combined, tuple(shared.shape))
        shared.copy_(combined if scale == 1.0 else combined * scale)

    def _learn(self, scaler: torch.amp.GradScaler) -> None:
        if self.optimizer is None:
            return
        gradients = [parameter.grad for parameter in self.learned if parameter.grad is not None]
        if scaler.is_enabled() and not self.weighting.needs_gradients:  # those of `total` are scaled
            for gradient in gradients:
                gradient /= scaler.get_scale()
        if all(gradient.isfinite().all() for gradient in gradients):
            self.optimizer.step()
        self.optimizer.zero_grad()

    def after_step(self, losses_again: Callable[[], list[Tensor]]) -> None:
        """Let the weighting learn from the step."""
        if not self.weighting.needs_losses_again:
            return

        @torch.no_grad()
        def again() -> Tensor:
            return self.fixed * torch.stack(losses_again())

        self._ask("after_step", self.losses, again)

    def end_epoch(self, means: dict[str, float]) -> None:
        """Tell the weighting the mean losses of an epoch."""
        values = torch.tensor([means[task] for task in self.tasks], dtype=torch.float64).float()
        self._ask("end_epoch", self.fixed * values.to(self.device))

    def weights(self) -> dict[str, float] | None:
        """Return the weight of each task in the last step; None where the weighting has none to tell."""
        found = self._ask("weights")
        return None if found is None else dict(zip(self.tasks, map(float, found), strict=True))

    def large_tensors(self) -> list[Tensor]:
        """Return what the weighting keeps that may be of the size of encoders."""
        return list_leaves(self._ask("state_dict"), Tensor)

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next step depends on."""
        learned = self.optimizer.state_dict()["state"] if self.optimizer else {}
        return {"own": self._ask("state_dict"), "optimizer": {str(k): v for k, v in learned.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self._ask("load_state_dict", state["own"])
        if self.optimizer is not None:
            optimizer = self.optimizer.state_dict()
            optimizer["state"] = {int(key): value for key, value in state["optimizer"].items()}
            self.optimizer.load_state_dict(optimizer)

    def _ask(self, hook: str, *given: Any) -> Any:
        return call_hook(self.weighting.name, hook, getattr(self.weighting, hook), *given)

    def _check(self, hook: str, value: Any, shape: tuple[int, ...]) -> None:
        if not isinstance(value, Tensor) or tuple(value.shape) != shape:
            came = str(tuple(value.shape)) if isinstance(value, Tensor) else kind_of(value)
            call_hook(self.weighting.name, hook, _complain, came, shape)


def _complain(came: str, shape: tuple[int, ...]) -> None:
    raise ValueError(f"it returned {came}, expected a tensor of shape {shape}")


def clients_without_choice(config: RunConfig, parties: Sequence[Party]) -> list[Party]:
    """Return the clients that train as if the weighting were `equal`, where it is another one."""
    network = network_of(config.model)
    if config.train.weighting == "equal":
        return []
    return [party for party in parties if not needs_weights(config.train, network.task_steps(party.tasks))]


def needs_weights(config: TrainConfig, steps: Sequence[Sequence[str]]) -> bool:
    """Say whether there is anything to weigh: losses of several tasks in one step, and a weighting other than equal."""
    return config.weighting != "equal" and len(steps) == 1 and len(steps[0]) > 1
