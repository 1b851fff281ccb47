"""Encoders: timm networks that return one feature map per scale, channels first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..base.errors import UsageError
from .catalog import Backbone, Maps, find_backbone, misfit
from .timm_networks import Form, create_body, find_form, shared_options
from .weights import load_pretrained

if TYPE_CHECKING:
    from ..config.run_config import ModelConfig


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
        spec, self.size = find_backbone(name), tuple(size)
        form = _form_of(spec, self.size, drop_path, maps)
        self.channels_last = form.channels_last
        self.body = create_body(spec.timm, form.options)
        self.channels: list[int] = self.body.feature_info.channels()
        self.strides: list[int] = self.body.feature_info.reduction()
        self.stride = self.strides[-1]  # image sizes are multiples of it
        self.norms = nn.ModuleList(nn.LayerNorm(c) for c in self.channels) if spec.norms else None
        self.adapted: list[str] = []  # how the weights had to be changed, as notes for the user
        if pretrained:
            load_pretrained(self, name, pretrained, form.options)

    def train(self, mode: bool = True) -> Encoder:
        # While they evaluate, some of timm's attentions keep what they once computed from their weights. Only training
        # mode makes them drop it, and weights may have been installed since.
        super().train()
        return super().train(mode)

    def forward(self, image: Tensor) -> list[Tensor]:
        maps = self.body(image)
        if self.norms is not None:
            maps = [norm(m) for norm, m in zip(self.norms, maps)]
        return [m.permute(0, 3, 1, 2) for m in maps] if self.channels_last else maps


def body_options(name: str, size: tuple[int, int], drop_path: float, maps: Maps) -> dict[str, Any]:
    """Return the options with which timm makes the body of an encoder (with features_only=True)."""
    return _form_of(find_backbone(name), size, drop_path, maps).options


def _form_of(spec: Backbone, size: tuple[int, int], drop_path: float, maps: Maps) -> Form:
    """Return how to ask timm for a backbone with these maps."""
    if not spec.listed:
        return find_form(spec.timm, size, drop_path, maps)
    options = {**spec.options, **spec.maps[maps], **shared_options(size, drop_path, spec.sized)}
    return Form(options, spec.channels_last)


def check_sizes(model: ModelConfig, sizes: Iterable[tuple[int, int]], maps: Maps) -> None:
    """Refuse a backbone of timm's that has parameters of other shapes for some of a run's image sizes."""
    if find_backbone(model.backbone).listed:
        return
    shapes: dict[tuple[int, int], list[torch.Size]] = {}
    for size in sizes:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            encoder = Encoder(model.backbone, size, drop_path=model.drop_path, maps=maps)
        shapes[size] = [parameter.shape for parameter in encoder.parameters()]
        first = next(iter(shapes))
        if shapes[size] != shapes[first]:
            raise UsageError(
                f"model.backbone: {model.backbone} has parameters of other shapes for images of {list(size)} than of "
                f"{list(first)}, so that clients' encoders do not fit together; give all of data.size one value"
            )
