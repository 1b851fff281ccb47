"""The U-shaped decoder of both FMTL-Bench architectures, and the last steps on its output."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..base.errors import UsageError
from ..tasks import TASKS
from .backbones import Encoder
from .net import resize

# (input channels, output channels, kernel size) → convolution, instance norm, non-linearity
Block = Callable[[int, int, int], nn.Module]


class UDecoder(nn.Module):
    """A decoder from the deepest map upwards: double the size, join the next map's skip connection, convolve.

    Blocks are `skip0…` (1×1, one per map) and `up0…` (3×3); 0 is the largest map. They are direct children, so that
    methods that weigh layers see each one. The result has half the stride of the largest map and `width` channels.
    """

    def __init__(self, encoder: Encoder, block: Block) -> None:
        super().__init__()
        _check_positions(encoder)
        channels, widths = encoder.channels, decoder_widths(encoder)
        self.levels, self.width = len(channels), widths[0]
        for i, c in enumerate(channels):
            self.add_module(f"skip{i}", block(c, c, 1))
        below = [*widths[1:], channels[-1]]  # the deepest block takes the deepest skip connection
        for i, width in enumerate(widths):
            beside = channels[i - 1] if i > 0 else 0
            self.add_module(f"up{i}", block(beside + below[i], width, 3))

    def forward(self, maps: list[Tensor], *condition: Tensor) -> Tensor:
        # Swin's maps have their channels last in memory, a layout in which the CPU's group norm sums less exactly.
        maps = [m.contiguous() for m in maps]
        x = self._block(f"skip{self.levels - 1}", maps[-1], condition)
        for i in reversed(range(self.levels)):
            x = double(x)
            if i > 0:
                skip = self._block(f"skip{i - 1}", maps[i - 1], condition)
                assert x.shape[-2:] == skip.shape[-2:], f"maps {i - 1} and {i} are not a factor of 2 apart"
                x = torch.cat([x, skip], 1)
            x = self._block(f"up{i}", x, condition)
        return x

    def _block(self, name: str, x: Tensor, condition: tuple[Tensor, ...]) -> Tensor:
        return self.get_submodule(name)(x, *condition)


def instance_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalise every channel of every image by itself; group norm with one channel per group is the faster kernel."""
    return F.group_norm(x, x.shape[1], weight, bias)


def decoder_widths(encoder: Encoder) -> list[int]:
    """Return the output channels of `up0…`: fixed multiples if maps start at stride 2 (ResNet), else the encoder's."""
    if encoder.strides[0] != 2:
        return list(encoder.channels)
    c0 = encoder.channels[1]
    return [c0, 2 * c0, 4 * c0, 4 * c0, 8 * c0]


def double(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)


def outputs_at(raw: Tensor, task: str, size: tuple[int, int]) -> Tensor:
    """Return the last convolution's result resized to the image's size; normals get unit length.

    An encoder whose maps start at stride 4 leaves one doubling to do. It commutes with the 1×1 convolution and comes
    after it, so that the convolution sees a quarter of the pixels and the doubling mostly fewer channels.
    """
    raw = resize(raw, size, align_corners=True)
    return F.normalize(raw, dim=1) if TASKS[task].kind.unit_length else raw


def rearranged_operations(encoder: Encoder, last: nn.Conv2d, outputs: int, size: tuple[int, int]) -> int:
    """Return how many more operations the public networks need than ours for one task, as FMTL-Bench's Table 1 counts.

    They double the map before their last convolution instead of after it, and compute all outputs it has; ours computes
    only `outputs` of them. Both give the same values.
    """
    pixels, stride = size[0] * size[1], encoder.strides[0] // 2  # of the map that the last convolution sees
    filters = last.in_channels * (pixels * last.out_channels - pixels // stride**2 * outputs)
    return filters + (11 * pixels * (last.in_channels - outputs) if stride > 1 else 0)


def _check_positions(encoder: Encoder) -> None:
    """Refuse an image size whose deepest map has a single position, which instance norm would erase."""
    height, width = (edge // encoder.stride for edge in encoder.size)
    if height * width < 2:
        raise UsageError(
            f"data.size: instance norm needs two positions on the encoder's deepest map (stride {encoder.stride}), "
            f"got {list(encoder.size)}; the smallest size is [{encoder.stride}, {2 * encoder.stride}]"
        )
