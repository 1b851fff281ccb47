"""Networks for the tests of this room, built without configuration."""

from __future__ import annotations

import torch

from fmtlbench.models.backbones import Encoder
from fmtlbench.models.fedhca2 import MultiDecoderNet
from fmtlbench.models.fmtl_md import MDNet
from fmtlbench.models.fmtl_tc import TCNet
from fmtlbench.models.matfl import MaTFLNet
from fmtlbench.models.net import DenseNet

NYUD = {"semseg": 40, "normals": 3, "edge": 1, "depth": 1}
SMALL = {"semseg": 7, "normals": 3, "edge": 1}

# Every architecture with every small backbone it takes.
PAIRS = [
    ("fedhca2", "swin_nano"), ("fedhca2", "resnet_nano"), ("md", "swin_nano"), ("md", "resnet_nano"),
    ("tc", "swin_nano"), ("tc", "resnet_nano"), ("matfl", "resnet_nano"),
]  # fmt: skip


def network(architecture: str, backbone: str, size=(64, 64), outputs=SMALL, all_tasks=None) -> DenseNet:
    torch.manual_seed(0)
    maps = {"fedhca2": "pyramid", "md": "all", "tc": "all", "matfl": "dilated"}[architecture]
    encoder = Encoder(backbone, size, maps=maps)
    if architecture == "tc":
        return TCNet(encoder, outputs, all_tasks or tuple(outputs), max(outputs.values()))
    return {"fedhca2": MultiDecoderNet, "md": MDNet, "matfl": MaTFLNet}[architecture](encoder, outputs)


def shapes_only(architecture: str, backbone: str, size=(448, 576), outputs=NYUD) -> DenseNet:
    """The full-size networks, without storage."""
    with torch.device("meta"):
        return network(architecture, backbone, size, outputs)
