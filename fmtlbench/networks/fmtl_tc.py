"""FMTL-Bench TC (task conditions): one U-shaped decoder for all tasks, conditioned on an embedding of the task.

Nothing in it depends on the client's own tasks, so the models of any two clients have the same shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._unet import UDecoder, instance_norm, outputs_at, rearranged_operations
from .backbones import Encoder
from .net import DenseNet, Part

CODE = 120  # entries of a task's code and of its embedding; 1 to 6 tasks share them evenly


class TaskEmbedding(nn.Sequential):
    """Eight linear layers with LeakyReLU on the code scaled to unit mean square."""

    def __init__(self) -> None:
        super().__init__(*(m for _ in range(8) for m in (nn.Linear(CODE, CODE), nn.LeakyReLU(0.2))))

    def forward(self, code: Tensor) -> Tensor:
        return super().forward(code * (code.square().mean() + 1e-8).rsqrt())


class FromEmbedding(nn.Module):
    """A linear layer from the embedding to one value per channel, whose bias starts at a given constant.

    It is not an nn.Linear, so that an initialisation of all linear layers does not overwrite the constant.
    """

    def __init__(self, channels: int, start: float) -> None:
        super().__init__()
        self.start = start
        self.weight = nn.Parameter(torch.empty(channels, CODE))
        self.bias = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight, -(CODE**-0.5), CODE**-0.5)  # torch's own rule for linear layers
        nn.init.constant_(self.bias, self.start)

    def forward(self, embedding: Tensor) -> Tensor:
        return F.linear(embedding, self.weight, self.bias)


class ConditionedBlock(nn.Module):
    """Convolution, instance norm with the task's scale γ and shift β (AdaIN), LeakyReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)
        self.gamma = FromEmbedding(outputs, 1.0)
        self.beta = FromEmbedding(outputs, 0.0)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        # A batch has one task, so γ and β can be the norm's own affine parameters, which saves a pass over the map.
        return F.leaky_relu(instance_norm(self.conv(x), self.gamma(embedding), self.beta(embedding)))


class ConditionedDecoder(UDecoder):
    """Task embedding, decoder and last convolution: all that follows the encoder."""

    def __init__(self, encoder: Encoder, all_tasks: Sequence[str], width: int) -> None:
        super().__init__(encoder, ConditionedBlock)
        self.embedding = TaskEmbedding()
        self.last = nn.Conv2d(self.width, width, 1)
        self.rows = {task: row for row, task in enumerate(all_tasks)}
        self.register_buffer("codes", task_codes(len(all_tasks)), persistent=False)

    def forward(self, maps: list[Tensor], task: str, outputs: int) -> Tensor:
        x = super().forward(maps, self.embedding(self.codes[self.rows[task]]))
        return F.conv2d(x, *pooled(self.last, outputs))


class TCNet(DenseNet):
    """One encoder and one decoder. Normals have unit length.

    Args:
        encoder: Maps at every stride.
        outputs: Number of outputs of each of the client's own tasks.
        all_tasks: All tasks of the federation, in an order that is the same on every client.
        width: The largest number of outputs in the federation.
    """

    def __init__(self, encoder: Encoder, outputs: dict[str, int], all_tasks: Sequence[str], width: int) -> None:
        super().__init__(encoder, outputs)
        if missing := set(outputs) - set(all_tasks):
            raise ValueError(f"tasks without a code: {sorted(missing)}; the federation's are {list(all_tasks)}")
        if max(outputs.values()) > width:
            raise ValueError(f"{max(outputs.values())} outputs do not fit into a last convolution of {width}")
        self.outputs = dict(outputs)
        self.decoder = ConditionedDecoder(encoder, all_tasks, width)

    def decode(self, maps: list[Tensor], task: str, size: tuple[int, int]) -> Tensor:
        return outputs_at(self.decoder(maps, task, self.outputs[task]), task, size)

    def parts(self) -> list[Part]:
        return [("encoder", None, self.encoder), ("decoder", None, self.decoder)]

    def listed_apart(self) -> dict[str, tuple[str, nn.Module]]:
        """Return the embedding, which Table 1 lists as "TC module"."""
        return {"task_embedding": ("decoder", self.decoder.embedding)}

    def further_table1_operations(self, task: str, size: tuple[int, int]) -> int:
        # Channels are averaged before the last convolution here, not after it.
        return rearranged_operations(self.encoder, self.decoder.last, self.outputs[task], size)


def task_codes(tasks: int) -> Tensor:
    """Return the codes [tasks, 120]: row t is 1 on the t-th block of 120 // tasks entries, 0 elsewhere."""
    return (torch.arange(CODE) // (CODE // tasks) == torch.arange(tasks)[:, None]).float()


def pooled(conv: nn.Conv2d, outputs: int) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a 1×1 convolution followed by adaptive average pooling of its channels to `outputs`.

    Pooling is linear, so the filters are pooled instead of the wide map, which is never computed.
    """
    if outputs == conv.out_channels:
        return conv.weight, conv.bias
    filters = torch.cat([conv.weight.flatten(1), conv.bias[:, None]], 1)  # [width, inputs + 1]
    filters = F.adaptive_avg_pool1d(filters.t(), outputs).t()
    return filters[:, :-1, None, None], filters[:, -1]
