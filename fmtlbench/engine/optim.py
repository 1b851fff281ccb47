"""The optimiser of a client and the learning rate of an epoch (a pure function, so nothing of it needs saving)."""

from __future__ import annotations

import math

import torch
from torch import nn

from ..config.run_config import TrainConfig


def make_optimizer(config: TrainConfig, parameters: list[nn.Parameter], device: torch.device) -> torch.optim.Optimizer:
    """Build the configured optimiser; the fused kernels where the device has them."""
    fused = device.type in ("cpu", "cuda")
    lr, decay = config.lr, config.weight_decay
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr, momentum=0.9, weight_decay=decay, fused=fused)
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[config.optimizer]
    return kind(parameters, lr, config.betas, weight_decay=decay, amsgrad=config.amsgrad, fused=fused)


def learning_rate(config: TrainConfig, epoch: int, epochs: int, per_round: int = 1, dataset: str = "") -> float:
    """Return the rate of an epoch: cosine decay over the run, or a factor per round, after a linear warm-up.

    Args:
        config: the schedule.
        epoch: of the client's local epochs in the whole run, from 0 on.
        epochs: how many those are.
        per_round: how many of them are in a round.
        dataset: the client's, where the warm-up differs by dataset.
    """
    warmup = config.warmup(dataset, per_round)
    if epoch < warmup:
        return config.warmup_lr + (config.lr - config.warmup_lr) * epoch / warmup
    if config.schedule == "exponential":
        return max(config.lr * config.decay ** (epoch // per_round), config.min_lr)
    before = warmup if config.schedule == "cosine_after_warmup" else 0
    way = (epoch - before) / max(epochs - before, 1)
    return config.min_lr + 0.5 * (config.lr - config.min_lr) * (1 + math.cos(math.pi * way))
