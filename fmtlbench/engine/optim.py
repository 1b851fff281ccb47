"""The optimiser of a client and the learning rate of an epoch (a pure function, so nothing of it needs saving)."""

from __future__ import annotations

import math

import torch
from torch import nn

from ..config import TrainConfig


def make_optimizer(config: TrainConfig, parameters: list[nn.Parameter], device: torch.device) -> torch.optim.Optimizer:
    """Build the configured optimiser; the fused kernels where the device has them."""
    fused = device.type in ("cpu", "cuda")
    common = {"lr": config.lr, "weight_decay": config.weight_decay}
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, momentum=0.9, fused=fused, **common)
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[config.optimizer]
    return kind(parameters, betas=config.betas, amsgrad=config.amsgrad, fused=fused, **common)


def learning_rate(config: TrainConfig, epoch: int, epochs: int, per_round: int = 1) -> float:
    """Cosine decay over the local epochs of the run, or a factor per round; the warm-up rises linearly instead."""
    if epoch < config.warmup_epochs:
        return config.warmup_lr + (config.lr - config.warmup_lr) * epoch / config.warmup_epochs
    if config.schedule == "exponential":
        return max(config.lr * config.decay ** (epoch // per_round), config.min_lr)
    before = config.warmup_epochs if config.schedule == "cosine_after_warmup" else 0
    way = (epoch - before) / max(epochs - before, 1)
    return config.min_lr + 0.5 * (config.lr - config.min_lr) * (1 + math.cos(math.pi * way))
