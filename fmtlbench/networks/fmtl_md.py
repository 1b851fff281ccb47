"""FMTL-Bench MD (multi-decoder): a U-shaped decoder per task, a 1×1 convolution as its head."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from ._unet import UDecoder, instance_norm, outputs_at, rearranged_operations
from .backbones import Encoder
from .net import PerTaskNet


class ConvBlock(nn.Module):
    """Convolution, instance norm with scale and shift, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
        self.norm = nn.InstanceNorm2d(outputs, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(instance_norm(self.conv(x), self.norm.weight, self.norm.bias))


class MDNet(PerTaskNet):
    """One encoder; a decoder and a head for each of the client's tasks. Normals have unit length."""

    def __init__(self, encoder: Encoder, outputs: dict[str, int]) -> None:
        decoders = {task: UDecoder(encoder, ConvBlock) for task in outputs}
        heads = {task: nn.Conv2d(decoders[task].width, n, 1) for task, n in outputs.items()}
        super().__init__(encoder, decoders, heads)

    def decode(self, maps: list[Tensor], task: str, size: tuple[int, int]) -> Tensor:
        return outputs_at(self.heads[task](self.decoders[task](maps)), task, size)

    def further_table1_operations(self, task: str, size: tuple[int, int]) -> int:
        return rearranged_operations(self.encoder, self.heads[task], self.heads[task].out_channels, size)
