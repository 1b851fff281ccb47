"""MaT-FL's network: a dilated ResNet whose last map, at stride 8, goes to a DeepLab decoder per task."""

from __future__ import annotations

from ._base import ARCHITECTURES, Architecture


@ARCHITECTURES.register("matfl")
class MaTFLNetwork(Architecture):
    """A DeepLab decoder per task."""

    title = "MaT-FL"
    description = "per task: DeepLab decoder on a ResNet kept at stride 8"
    paper = "Cai et al., CVPR Workshops 2023"
    maps = "dilated"

    def build(self, encoder, outputs, federation_outputs):
        from ..matfl import MaTFLNet

        return MaTFLNet(encoder, outputs)
