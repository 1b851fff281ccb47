"""The FedHCA² network: a shared encoder, and per task a six-layer decoder and a head of transposed convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .backbones import Encoder
from .net import PerTaskNet


class Decoder(nn.Module):
    """Four linear projections to one width (L1–L4), concatenation at stride 4, 1×1 fusion (L5), BatchNorm (L6)."""

    def __init__(self, channels: list[int], width: int) -> None:
        super().__init__()
        for level, c in enumerate(channels, 1):
            self.add_module(f"L{level}", nn.Linear(c, width))
        self.levels = len(channels)
        self.L5 = nn.Conv2d(width * len(channels), width, 1)
        self.L6 = nn.BatchNorm2d(width)

    def forward(self, maps: list[Tensor]) -> Tensor:
        size = maps[0].shape[-2:]
        projected = []
        for level, x in enumerate(maps, 1):
            y = getattr(self, f"L{level}")(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            projected.append(F.interpolate(y, size=size, mode="bilinear", align_corners=False))
        return F.leaky_relu(self.L6(self.L5(torch.cat(projected, 1))))


class Head(nn.Sequential):
    """Two transposed convolutions back to input resolution and a 1×1 convolution to the outputs."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__(
            nn.ConvTranspose2d(width, width // 2, 2, stride=2),
            nn.ConvTranspose2d(width // 2, width // 4, 2, stride=2),
            nn.Conv2d(width // 4, outputs, 1),
        )


class MultiDecoderNet(PerTaskNet):
    """One encoder; a decoder and a head for each of the client's tasks."""

    def __init__(self, encoder: Encoder, outputs: dict[str, int]) -> None:
        width = encoder.channels[0]
        decoders = {task: Decoder(encoder.channels, width) for task in outputs}
        super().__init__(encoder, decoders, {task: Head(width, n) for task, n in outputs.items()})
