"""FedHCA²'s network: per task a six-layer decoder over four scales and a head of transposed convolutions."""

from __future__ import annotations

from ._base import ARCHITECTURES, Architecture


@ARCHITECTURES.register("fedhca2")
class FedHCA2Network(Architecture):
    """FedHCA²'s decoder and head per task."""

    title = "FedHCA²"
    description = "per task: six-layer decoder and a head of transposed convolutions"
    paper = "Lu et al., CVPR 2024, arXiv:2311.13250"
    maps = "pyramid"

    def build(self, encoder, outputs, federation_outputs):
        from ..fedhca2 import MultiDecoderNet

        return MultiDecoderNet(encoder, outputs)
