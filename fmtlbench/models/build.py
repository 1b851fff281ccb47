"""A client's network from the config, with an initialisation that is named, not drawn from a global generator."""

from __future__ import annotations

import torch
from torch import nn

from ..config import ModelConfig
from ..errors import UsageError
from ..seeds import seed_of
from .backbones import Encoder
from .fedhca2 import MultiDecoderNet


def build_model(config: ModelConfig, size: tuple[int, int], outputs: dict[str, int], seed: int) -> MultiDecoderNet:
    """Build the network for one client.

    Every client starts from the same encoder and every decoder from the same weights, whatever the task, so that
    the first average is of relatives; heads start alike per (task, number of outputs).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(seed, "init", "encoder"))
        encoder = Encoder(config.backbone, size, config.pretrained, config.drop_path)
        if any(edge % encoder.stride for edge in size):
            raise UsageError(f"data.size: {config.backbone} needs multiples of {encoder.stride}, got {list(size)}")
        model = MultiDecoderNet(encoder, outputs)
        if config.init == "lecun" and not config.pretrained:
            _reset(encoder, seed_of(seed, "init", "encoder weights"), config.init)
        for task, n in outputs.items():
            _reset(model.decoders[task], seed_of(seed, "init", "decoder"), config.init)
            _reset(model.heads[task], seed_of(seed, "init", "head", task, n), config.init)
    return model


def _reset(module: nn.Module, seed: int, init: str) -> None:
    torch.manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)) and init == "lecun":
            nn.init.normal_(layer.weight, std=_inputs(layer) ** -0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def _inputs(layer: nn.Module) -> int:
    """How many values each output is a sum of; the transposed convolutions here do not overlap."""
    return layer.in_channels if isinstance(layer, nn.ConvTranspose2d) else layer.weight[0].numel()
