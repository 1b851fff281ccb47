"""Encoders: timm networks that return one feature map per scale, channels first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ..errors import FmtlbenchError, unknown


@dataclass(frozen=True)
class Backbone:
    """A timm model and how to ask for it."""

    timm: str
    options: dict[str, Any] = field(default_factory=dict)
    channels_last: bool = False  # timm's Swin returns [B, H, W, C]
    norms: bool = False  # a LayerNorm after every scale, as in the FedHCA² code's Swin
    sized: bool = False  # attention windows are laid out for one input size
    stride: int = 32


_SWIN = {"channels_last": True, "norms": True, "sized": True}
_NANO = {"embed_dim": 24, "depths": (1, 1, 2, 1), "num_heads": (1, 2, 4, 8), "window_size": 4}

BACKBONES: dict[str, Backbone] = {
    "swin_nano": Backbone("swin_tiny_patch4_window7_224", _NANO, **_SWIN),
    "swin_tiny": Backbone("swin_tiny_patch4_window7_224", **_SWIN),
    "swin_small": Backbone("swin_small_patch4_window7_224", **_SWIN),
    "swin_base": Backbone("swin_base_patch4_window7_224", **_SWIN),
    "resnet18": Backbone("resnet18", {"out_indices": (1, 2, 3, 4)}),
}


class Encoder(nn.Module):
    """Feature maps at strides 4, 8, 16 and 32."""

    def __init__(self, name: str, size: tuple[int, int], pretrained: bool = False, drop_path: float = 0.0) -> None:
        super().__init__()
        if name not in BACKBONES:
            raise unknown("backbone", name, BACKBONES, "model.backbone")
        spec = BACKBONES[name]
        self.channels_last, self.stride = spec.channels_last, spec.stride
        options = {**spec.options, "drop_path_rate": drop_path}  # always: timm's own default is not 0
        if spec.sized:
            # Windows keep their size on maps smaller than they are: else clients with other image sizes would have
            # encoders of other shapes, which nobody could average.
            options |= {"img_size": size, "always_partition": True}
        self.body = _create(spec.timm, pretrained, options)
        self.channels: list[int] = self.body.feature_info.channels()
        self.norms = nn.ModuleList(nn.LayerNorm(c) for c in self.channels) if spec.norms else None

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = self.body(image)
        if self.norms is not None:
            maps = [norm(m) for norm, m in zip(self.norms, maps)]
        return [m.permute(0, 3, 1, 2) for m in maps] if self.channels_last else maps


def _create(name: str, pretrained: bool, options: dict[str, Any]) -> nn.Module:
    import timm

    try:
        return timm.create_model(name, pretrained=pretrained, features_only=True, **options)
    except Exception as error:
        if not pretrained:
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FmtlbenchError(
            f"no pretrained weights for {name}: {reason}. They come from the timm hub on first use; "
            "with no network, fill its cache elsewhere, or train from scratch with --set model.pretrained=false"
        ) from None
