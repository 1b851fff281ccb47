"""Encoders: timm networks that return one feature map per scale, channels first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn

from ..errors import UsageError, unknown
from .weights import load_pretrained

# Which maps an architecture asks for. pyramid: strides 4, 8, 16 and 32. all: every map there is, for a ResNet also
# that of stride 2, after the stem's ReLU. dilated: only the last one, kept at stride 8 by dilated convolutions.
Maps = Literal["pyramid", "all", "dilated"]


@dataclass(frozen=True)
class Backbone:
    """A timm model and how to ask for it."""

    timm: str
    options: dict[str, Any] = field(default_factory=dict)
    maps: dict[Maps, dict[str, Any]] = field(default_factory=dict)  # further options, by the maps asked for
    channels_last: bool = False  # timm's Swin returns [B, H, W, C]
    norms: bool = False  # a LayerNorm after every scale, as in the FedHCA² code's Swin
    sized: bool = False  # attention windows are laid out for one input size
    stride: int = 32  # of the deepest map, unless dilated


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

# The part after the dot names the pretrained weights, so that a change of timm's defaults moves no number. Those of
# FMTL-Bench and MaT-FL are torchvision's first ones; docs/data.md says what FedHCA²'s code starts from.
BACKBONES: dict[str, Backbone] = {
    "swin_nano": Backbone("swin_tiny_patch4_window7_224", _SWIN_NANO, **_SWIN),
    "swin_tiny": Backbone("swin_tiny_patch4_window7_224.ms_in1k", **_SWIN),
    "swin_small": Backbone("swin_small_patch4_window7_224.ms_in1k", **_SWIN),
    "swin_base": Backbone("swin_base_patch4_window7_224.ms_in22k_ft_in1k", **_SWIN),
    "resnet_nano": Backbone("resnet18", _RESNET_NANO, **_RESNET),
    "resnet18": Backbone("resnet18.tv_in1k", **_RESNET),
    "mobilenetv2_100": Backbone("mobilenetv2_100.ra_in1k", **_RESNET),
    "tf_efficientnet_lite0": Backbone("tf_efficientnet_lite0.in1k", **_RESNET),
}


class Encoder(nn.Module):
    """Image → feature maps, largest first, each [B, channels, H / stride, W / stride]."""

    def __init__(
        self, name: str, size: tuple[int, int], pretrained: bool | str = False, drop_path: float = 0.0,
        maps: Maps = "pyramid",
    ) -> None:  # fmt: skip
        super().__init__()
        if name not in BACKBONES:
            raise unknown("backbone", name, BACKBONES, "model.backbone")
        spec = BACKBONES[name]
        if maps not in spec.maps:
            valid = ", ".join(sorted(other for other, b in BACKBONES.items() if maps in b.maps))
            raise UsageError(
                f"model.backbone: this architecture needs {maps} maps, which {name!r} lacks; valid: {valid}"
            )
        self.channels_last, self.size = spec.channels_last, tuple(size)
        options = {**spec.options, **spec.maps[maps], "drop_path_rate": drop_path}  # always: timm's default is not 0
        if spec.sized:
            # Windows keep their size on maps smaller than they are: else clients with other image sizes would have
            # encoders of other shapes, which nobody could average.
            options |= {"img_size": size, "always_partition": True}
        self.body = _create(spec.timm, pretrained, options)
        self.channels: list[int] = self.body.feature_info.channels()
        self.strides: list[int] = self.body.feature_info.reduction()
        self.stride = self.strides[-1]  # image sizes are multiples of it
        self.norms = nn.ModuleList(nn.LayerNorm(c) for c in self.channels) if spec.norms else None

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = self.body(image)
        if self.norms is not None:
            maps = [norm(m) for norm, m in zip(self.norms, maps)]
        return [m.permute(0, 3, 1, 2) for m in maps] if self.channels_last else maps


def _create(name: str, pretrained: bool | str, options: dict[str, Any]) -> nn.Module:
    """`pretrained`: True for timm's weights, or the path of a file."""
    import timm

    body = timm.create_model(name, pretrained=False, features_only=True, **options)
    if pretrained:
        load_pretrained(body, name, pretrained, options)
    return body
