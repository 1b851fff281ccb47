"""The base class of all networks: one pass through the encoder, then decoding of the requested tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor, nn
from torch.nn import functional as F

from ..base.errors import UsageError
from .backbones import Encoder

Part = tuple[str, str | None, nn.Module]


class DenseNet(nn.Module):
    """An encoder and the modules that turn its maps into the outputs of the client's tasks."""

    encoder: Encoder
    tasks: tuple[str, ...]

    def __init__(self, encoder: Encoder, tasks: Iterable[str]) -> None:
        super().__init__()
        self.encoder = encoder
        self.tasks = tuple(tasks)

    def decode(self, maps: list[Tensor], task: str, size: tuple[int, int]) -> Tensor:
        """Return the raw outputs of one task, [B, outputs, *size], from the encoder's maps."""
        raise NotImplementedError

    def parts(self) -> list[Part]:
        """Return the parts that are exchanged as a whole, in parameter order: (kind, task or None, module)."""
        raise NotImplementedError

    def listed_apart(self) -> dict[str, tuple[str, nn.Module]]:
        """Return modules whose parameters are counted apart: name → (kind of the part they belong to, module)."""
        return {}

    def further_table1_operations(self, task: str, size: tuple[int, int]) -> int:
        """Return the operations that FMTL-Bench's Table 1 counts for a task and this network does not execute."""
        return 0

    def forward(self, image: Tensor, tasks: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Return raw outputs by task (by default all of the client's), at the image's size."""
        height, width = image.shape[-2:]
        if height % self.encoder.stride or width % self.encoder.stride:
            raise UsageError(f"image size: expected multiples of {self.encoder.stride}, got {height}×{width}")
        maps = self.encoder(image)
        asked = self.tasks if tasks is None else tasks
        return {task: self.decode(maps, task, (height, width)) for task in asked}


class PerTaskNet(DenseNet):
    """A decoder and a head of its own for each task."""

    def __init__(self, encoder: Encoder, decoders: Mapping[str, nn.Module], heads: Mapping[str, nn.Module]) -> None:
        super().__init__(encoder, decoders)
        self.decoders = nn.ModuleDict(decoders)
        self.heads = nn.ModuleDict(heads)

    def decode(self, maps: list[Tensor], task: str, size: tuple[int, int]) -> Tensor:
        return resize(self.heads[task](self.decoders[task](maps)), size)

    def parts(self) -> list[Part]:
        decoders = [("decoder", task, module) for task, module in self.decoders.items()]
        heads = [("head", task, module) for task, module in self.heads.items()]
        return [("encoder", None, self.encoder), *decoders, *heads]


def resize(x: Tensor, size: tuple[int, int], align_corners: bool = False) -> Tensor:
    """Resize maps bilinearly; return `x` itself if it has the size already."""
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    return F.interpolate(x, size=size, mode="bilinear", align_corners=align_corners)
