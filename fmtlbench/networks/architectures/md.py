"""FMTL-Bench's MD (multi-decoder) network: per task a U-shaped decoder and a 1×1 convolution."""

from __future__ import annotations

from ._base import ARCHITECTURES, Architecture


@ARCHITECTURES.register("md")
class MultiDecoder(Architecture):
    """A U-shaped decoder per task."""

    title = "MD"
    description = "per task: U-shaped decoder with skip connections and instance norm"
    paper = "FMTL-Bench (Yang et al., ICMR 2024), section 3.2.2"
    maps = "all"

    def build(self, encoder, outputs, federation_outputs):
        from ..fmtl_md import MDNet

        return MDNet(encoder, outputs)
