"""Count a network's parameters and operations from its shapes alone, without data or weights.

There are two ways to count. `flops`: convolutions, matrix products and attention, 2 per multiply–accumulate; norms,
activations and interpolation are not counted. `table1_operations`: as FMTL-Bench's Table 1, whose four rows it
reproduces exactly on one 448×576 image with NYUD-v2's four tasks.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from .net import DenseNet


def parameters(model: DenseNet) -> dict[str, int]:
    """Count the parameters by kind, and apart those of modules the network lists apart; the counts sum to the total."""
    counts: dict[str, int] = {}
    for kind, _, module in model.parts():
        counts[kind] = counts.get(kind, 0) + _count_parameters(module)
    for name, (kind, module) in model.listed_apart().items():
        counts[name] = _count_parameters(module)
        counts[kind] -= counts[name]
    return counts


def flops(
    model: DenseNet, size: tuple[int, int], tasks: Iterable[str] | None = None, batch: int = 1, backward: bool = False
) -> int:
    """Return the floating-point operations of one pass for `tasks` (default: all), with the encoder running once.

    Args:
        model: Is not changed; a copy without storage is run.
        size: Height and width of the images.
        tasks: The tasks to decode.
        batch: Images in the batch.
        backward: Also count the gradients of all parameters, as in a training step without the optimiser.
    """
    shadow = _copy_without_storage(model)
    with FlopCounterMode(display=False) as counter, torch.set_grad_enabled(backward):
        raw = shadow(torch.empty(batch, 3, *size, device="meta"), None if tasks is None else tuple(tasks))
        if backward and raw:
            sum(z.sum() for z in raw.values()).backward()
    return counter.get_total_flops()


def step_flops(
    model: DenseNet, size: tuple[int, int], tasks: Iterable[str] | None = None, batch: int = 1
) -> dict[str, int]:
    """Return the operations of a training step: `joint` runs the encoder once, `sequential` once per task."""
    asked = model.tasks if tasks is None else tuple(tasks)
    return {
        "joint": flops(model, size, asked, batch, backward=True),
        "sequential": sum(flops(model, size, (task,), batch, backward=True) for task in asked),
    }


def table1_operations(model: DenseNet, size: tuple[int, int], tasks: Iterable[str] | None = None) -> int:
    """Return the operations of one pass for `tasks` (default: all) on one image, counted as in FMTL-Bench's Table 1.

    1 per multiply–accumulate of a layer (convolution, linear), none for the two products inside attention; 11 per
    interpolated value, 2 per normalised one, 4 if the norm has its own scale and shift, 3 per value of a softmax.
    The thop package counts like this; the paper does not name its counter. Networks are counted as the public code
    builds them (`further_table1_operations`).

    The table's total is one pass for all tasks, or one pass per task if the tasks share a decoder.
    """
    asked = model.tasks if tasks is None else tuple(tasks)
    with _Table1Counter() as counter, torch.no_grad():
        _copy_without_storage(model)(torch.empty(1, 3, *size, device="meta"), asked)
    return counter.total + sum(model.further_table1_operations(task, size) for task in asked)


class _Table1Counter(TorchDispatchMode):
    """A context in which the operations of every torch call are added up."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.total += _count_operations(func.overloadpacket, args, out[0] if isinstance(out, tuple) else out)
        return out


def _count_operations(name: Any, args: tuple, made: Any) -> int:
    aten = torch.ops.aten
    if name is aten.convolution:
        image, weight, transposed = args[0], args[1], args[6]
        return (image if transposed else made).numel() * weight[0].numel()
    if name in (aten.mm, aten.addmm):
        return made.numel() * args[-1].shape[0]
    if name is aten.upsample_bilinear2d:
        return 11 * made.numel()
    if name in (aten.native_batch_norm, aten.native_group_norm, aten.native_layer_norm):
        weight = args[2 if name is aten.native_layer_norm else 1]
        # a scale and shift computed from the task are not parameters of the norm
        return (4 if isinstance(weight, nn.Parameter) else 2) * made.numel()
    return 3 * made.numel() if name is aten._softmax else 0


def _count_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def _copy_without_storage(model: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode whose tensors have shapes but no data, with all parameters trainable."""
    memo: dict[int, object] = {id(b): torch.empty_like(b, device="meta") for b in model.buffers()}
    memo |= {id(p): nn.Parameter(torch.empty_like(p, device="meta")) for p in model.parameters()}
    return copy.deepcopy(model, memo).eval()
