"""Encoders: timm networks that return one feature map per scale, channels first."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..errors import UsageError
from .catalog import BACKBONES, Maps, misfit
from .weights import load_pretrained


class Encoder(nn.Module):
    """Image → feature maps, largest first, each [B, channels, H / stride, W / stride].

    `pretrained`: True for the backbone's own weights (timm's or the package's), or the path of a file.
    """

    def __init__(
        self,
        name: str,
        size: tuple[int, int],
        pretrained: bool | str = False,
        drop_path: float = 0.0,
        maps: Maps = "pyramid",
    ) -> None:
        super().__init__()
        if reason := misfit(name, maps):
            raise UsageError(f"model.backbone: {reason}")
        spec = BACKBONES[name]
        self.channels_last, self.size = spec.channels_last, tuple(size)
        # The drop path rate is always given, because timm's default is not 0.
        options = {**spec.options, **spec.maps[maps], "drop_path_rate": drop_path}
        if spec.sized:
            # Windows keep their size even on maps smaller than they are. Otherwise clients with other image sizes would
            # have encoders of other shapes, which cannot be averaged.
            options |= {"img_size": size, "always_partition": True}
        self.body = _create(spec.timm, options)
        self.channels: list[int] = self.body.feature_info.channels()
        self.strides: list[int] = self.body.feature_info.reduction()
        self.stride = self.strides[-1]  # image sizes are multiples of it
        self.norms = nn.ModuleList(nn.LayerNorm(c) for c in self.channels) if spec.norms else None
        self.adapted: list[str] = []  # how the weights had to be changed, as notes for the user
        if pretrained:
            load_pretrained(self, name, pretrained, options)

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = self.body(image)
        if self.norms is not None:
            maps = [norm(m) for norm, m in zip(self.norms, maps)]
        return [m.permute(0, 3, 1, 2) for m in maps] if self.channels_last else maps


def _create(name: str, options: dict[str, Any]) -> nn.Module:
    import timm

    return timm.create_model(name, pretrained=False, features_only=True, **options)
