"""The backbones: a list with their maps, and any network of timm by its name.

Does not import torch, so that a config can be checked without it. What is not in the list is looked up by name only;
whether it has the maps is found out where torch is loaded (timm_networks.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ..base.errors import nearest

# Which maps of the encoder an architecture decodes. pyramid: strides 4, 8, 16 and 32. all: every map there is, for a
# ResNet also that of stride 2, after the stem's ReLU. dilated: only the last one, kept at stride 8 by dilation.
Maps = Literal["pyramid", "all", "dilated"]
STRIDES: dict[Maps, int] = {"pyramid": 32, "all": 32, "dilated": 8}  # of the deepest map: image sizes are multiples
TIMM = "timm/"  # before the name of a network of timm that is not in the list


@dataclass(frozen=True)
class Backbone:
    """A timm model and how to ask for it."""

    timm: str
    options: dict[str, Any] = field(default_factory=dict)
    maps: dict[Maps, dict[str, Any]] = field(default_factory=dict)  # further options, by the maps asked for
    channels_last: bool = False  # timm's Swin returns [B, H, W, C]
    norms: bool = False  # a LayerNorm after every scale, as in the FedHCA² code's Swin
    sized: bool = False  # attention windows are laid out for one input size
    shipped: bool = False  # its pretrained weights come with the package, not from timm
    listed: bool = True  # its options and maps are known here; else timm_networks.py finds them


_SWIN = {"channels_last": True, "norms": True, "sized": True, "maps": {"pyramid": {}, "all": {}}}
_RESNET = {
    "maps": {
        "pyramid": {"out_indices": (1, 2, 3, 4)},
        "all": {"out_indices": (0, 1, 2, 3, 4)},
        "dilated": {"out_indices": (4,), "output_stride": 8},
    }
}
_SWIN_NANO = {"embed_dim": 24, "depths": (1, 1, 2, 1), "num_heads": (1, 2, 4, 8), "window_size": 4}
# A quarter of ResNet-18's widths. timm fixes the plain 7×7 stem at 64 channels, so three 3×3 convolutions replace it.
_RESNET_NANO = {"channels": (16, 32, 64, 128), "stem_type": "deep", "stem_width": 8}

# The part after the dot names timm's pretrained weights, so that a change of timm's defaults does not change results.
# FMTL-Bench and MaT-FL use torchvision's first ones; docs/data.md tells what FedHCA²'s code starts from.
BACKBONES: dict[str, Backbone] = {
    "swin_nano": Backbone("swin_tiny_patch4_window7_224", _SWIN_NANO, shipped=True, **_SWIN),
    "swin_tiny": Backbone("swin_tiny_patch4_window7_224.ms_in1k", **_SWIN),
    "swin_small": Backbone("swin_small_patch4_window7_224.ms_in1k", **_SWIN),
    "swin_base": Backbone("swin_base_patch4_window7_224.ms_in22k_ft_in1k", **_SWIN),
    "resnet_nano": Backbone("resnet18", _RESNET_NANO, shipped=True, **_RESNET),
    "resnet18": Backbone("resnet18.tv_in1k", **_RESNET),
    "mobilenetv2_100": Backbone("mobilenetv2_100.ra_in1k", **_RESNET),
    "tf_efficientnet_lite0": Backbone("tf_efficientnet_lite0.in1k", **_RESNET),
}


def find_backbone(name: str) -> Backbone:
    """Return the entry of a backbone that `misfit` accepts."""
    return Backbone(name.removeprefix(TIMM), listed=False) if name.startswith(TIMM) else BACKBONES[name]


@cache
def timm_names() -> tuple[str, ...]:
    """Return the names of timm's networks, from the decorators in its source files: importing timm imports torch."""
    folder = Path(find_spec("timm").origin).parent / "models"
    sources = (file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py")))
    return tuple(sorted(name for text in sources for name in re.findall(r"^@register_model\s+def (\w+)", text, re.M)))


def misfit(backbone: str, maps: Maps) -> str | None:
    """Return why a backbone cannot provide the maps that an architecture needs; None if it can, or may (`timm/…`)."""
    if backbone.startswith(TIMM):
        return _why_unknown_to_timm(backbone)
    if backbone not in BACKBONES:
        of_timm = backbone.partition(".")[0] in timm_names()
        choice = f"timm's is {TIMM + backbone!r}" if of_timm else nearest(backbone, BACKBONES)
        return f"no backbone {backbone!r}; {choice}"
    if maps in BACKBONES[backbone].maps:
        return None
    fitting = ", ".join(sorted(name for name, spec in BACKBONES.items() if maps in spec.maps))
    return f"this architecture needs {maps} maps, which {backbone!r} lacks; valid: {fitting}"


def _why_unknown_to_timm(backbone: str) -> str | None:
    name = backbone.removeprefix(TIMM).partition(".")[0]  # what follows the dot names its weights
    if name in timm_names():
        return None
    choice = nearest(name, timm_names(), otherwise=f"`fmtlbench list backbones '{TIMM}*'` lists them")
    return f"timm has no network {name!r}; {choice}"
