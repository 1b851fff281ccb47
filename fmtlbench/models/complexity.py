"""How large a network is and how much it computes, from its shapes alone: no data, no weights, no time.

Operations are those of convolutions, matrix products and attention, 2 per multiply–accumulate; norms, activations and
interpolation are not counted.

FMTL-Bench's Table 1 counts 1 per multiply–accumulate, so its GFLOPs are `flops / 2e9`, on one 448×576 image with
NYUD-v2's four tasks. MD is one pass through everything; TC "per task" is one pass for the task with 40 outputs, and
its total is four times that, each with its own encoder pass. The table is 1 % higher because its counter (the rules
are those of the thop package) adds 11 per interpolated value and 2 per normalised one, 4 where the norm has scale and
shift; with these the ResNet-18 rows agree to the last digit.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from .fmtl_tc import TCNet
from .net import DenseNet


def parameters(model: DenseNet) -> dict[str, int]:
    """Number of parameters by kind; they add up to the whole.

    `task_embedding` (only the task-conditioned network has one) is the part of the decoder that Table 1 lists as
    "TC module", and is not counted in `decoder`.
    """
    counts: dict[str, int] = {}
    for kind, _, module in model.parts():
        counts[kind] = counts.get(kind, 0) + _count(module)
    if isinstance(model, TCNet):
        counts["task_embedding"] = _count(model.decoder.embedding)
        counts["decoder"] -= counts["task_embedding"]
    return counts


def flops(
    model: DenseNet, size: tuple[int, int], tasks: Iterable[str] | None = None, batch: int = 1, backward: bool = False
) -> int:
    """Floating-point operations of one pass for `tasks` (default: all), with the encoder running once.

    Args:
        model: Stays as it is; a copy without storage is run.
        size: Height and width of the images.
        tasks: The tasks to decode.
        batch: Images in the batch.
        backward: Add the gradients of all parameters: a training step without the optimiser's share.
    """
    shadow = _without_storage(model)
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(backward):
        raw = shadow(torch.empty(batch, 3, *size, device="meta"), None if tasks is None else tuple(tasks))
        if backward and raw:
            sum(z.sum() for z in raw.values()).backward()
    return counter.get_total_flops()


def step_flops(
    model: DenseNet, size: tuple[int, int], tasks: Iterable[str] | None = None, batch: int = 1
) -> dict[str, int]:
    """Forward and backward for `tasks` on one batch: `joint` runs the encoder once, `sequential` once per task."""
    asked = model.tasks if tasks is None else tuple(tasks)
    return {
        "joint": flops(model, size, asked, batch, backward=True),
        "sequential": sum(flops(model, size, (task,), batch, backward=True) for task in asked),
    }


def _count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _without_storage(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode whose tensors are only shapes, all parameters trainable."""
    memo: dict[int, object] = {id(b): torch.empty_like(b, device="meta") for b in model.buffers()}
    memo |= {id(p): nn.Parameter(torch.empty_like(p, device="meta")) for p in model.parameters()}
    return copy.deepcopy(model, memo).eval()
