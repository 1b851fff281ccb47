"""The MaT-FL network: a dilated ResNet whose last map, at stride 8, goes to one DeepLab decoder and head per task."""

from __future__ import annotations

from torch import Tensor, nn
from torchvision.models.segmentation.deeplabv3 import ASPP
from torchvision.ops import Conv2dNormActivation

from ..base.errors import UsageError
from .backbones import Encoder
from .net import PerTaskNet

RATES = (12, 24, 36)


class DeepLabDecoder(nn.Module):
    """Atrous spatial pyramid pooling (dropout 0.5 after its projection) and a 3×3 block, `width` channels each."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.aspp = ASPP(channels, RATES, width)
        self.conv = Conv2dNormActivation(width, width, 3)

    def forward(self, maps: list[Tensor]) -> Tensor:
        x = maps[-1]
        if self.training and len(x) == 1:
            raise UsageError("train.batch_size: BatchNorm of the pooled image needs two images at least, got 1")
        return self.conv(self.aspp(x))


class MaTFLNet(PerTaskNet):
    """One dilated encoder; a decoder and a head for each of the client's tasks."""

    def __init__(self, encoder: Encoder, outputs: dict[str, int]) -> None:
        channels = encoder.channels[-1]
        width = channels // 2  # the paper's 256 for ResNet-18's 512
        decoders = {task: DeepLabDecoder(channels, width) for task in outputs}
        super().__init__(encoder, decoders, {task: nn.Conv2d(width, n, 1) for task, n in outputs.items()})
