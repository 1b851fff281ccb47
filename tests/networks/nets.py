"""Networks for the tests of this room, built without configuration."""

from __future__ import annotations

import torch

from fmtlbench.networks.architectures import ARCHITECTURES
from fmtlbench.networks.backbones import Encoder
from fmtlbench.networks.net import DenseNet

NYUD = {"semseg": 40, "normals": 3, "edge": 1, "depth": 1}
SMALL = {"semseg": 7, "normals": 3, "edge": 1}

# Every architecture with every small backbone it takes.
PAIRS = [
    ("fedhca2", "swin_nano"), ("fedhca2", "resnet_nano"), ("md", "swin_nano"), ("md", "resnet_nano"),
    ("tc", "swin_nano"), ("tc", "resnet_nano"), ("matfl", "resnet_nano"),
]  # fmt: skip


def network(architecture: str, backbone: str, size=(64, 64), outputs=SMALL) -> DenseNet:
    torch.manual_seed(0)
    chosen = ARCHITECTURES[architecture]
    return chosen(chosen.Params()).build(Encoder(backbone, size, maps=chosen.maps), outputs, outputs)


def shapes_only(architecture: str, backbone: str, size=(448, 576), outputs=NYUD) -> DenseNet:
    """The full-size networks, without storage."""
    with torch.device("meta"):
        return network(architecture, backbone, size, outputs)
