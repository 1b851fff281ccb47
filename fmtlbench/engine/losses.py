"""The papers' training losses. Label 255 is ignored everywhere; a batch without valid pixels gives 0."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..base.errors import FmtlbenchError, unknown
from ..tasks import IGNORE, TaskSpec


def cross_entropy(raw: Tensor, label: Tensor) -> Tensor:
    """Return the cross-entropy, mean over valid pixels. raw [B, C, H, W], label [B, H, W]."""
    total = F.cross_entropy(raw, label.long(), ignore_index=IGNORE, reduction="sum")
    return total / (label != IGNORE).sum().clamp(min=1)


def balanced_cross_entropy(raw: Tensor, label: Tensor) -> Tensor:
    """Return the cross-entropy of two classes, each weighted by the other's share of the batch's valid pixels.

    The sum is divided by the number of valid pixels, not by the sum of weights.
    """
    valid = label != IGNORE
    count = valid.sum().clamp(min=1)
    positive = (label == 1).sum() / count
    weight = torch.stack([positive, 1 - positive]).to(raw.dtype)
    return F.cross_entropy(raw, label.long(), weight=weight, ignore_index=IGNORE, reduction="sum") / count


def weighted_bce(raw: Tensor, label: Tensor, positive: float | Tensor) -> Tensor:
    """Return the binary cross-entropy of logits, edges weighted by `positive`, others by 1 − `positive`.

    Mean over valid pixels. Labels may be fractions, as in resized edge maps.
    """
    valid = label != IGNORE
    target = torch.where(valid, label, 0).to(raw.dtype)
    z = raw[:, 0]
    loss = positive * target * F.softplus(-z) + (1 - positive) * (1 - target) * F.softplus(z)
    return (loss * valid).sum() / valid.sum().clamp(min=1)


def balanced_bce(raw: Tensor, label: Tensor) -> Tensor:
    """Return `weighted_bce` with the share of negatives among the batch's valid pixels as weight of the positives."""
    valid = label != IGNORE
    positive = (label == 1).sum() / valid.sum().clamp(min=1)
    return weighted_bce(raw, label, 1 - positive)


def l1(raw: Tensor, label: Tensor) -> Tensor:
    """Return the absolute error summed over channels, mean over valid pixels. label [B, H, W] or [B, C, H, W].

    A pixel is invalid if any channel is 255: the loader writes that where nothing was measured.
    """
    label = label if label.dim() == raw.dim() else label[:, None]
    valid = (label != IGNORE).all(1, keepdim=True)
    return ((raw - label).abs() * valid).sum() / valid.sum().clamp(min=1)


def l1_unit(raw: Tensor, label: Tensor) -> Tensor:
    """Return the `l1` loss of the prediction scaled to unit length."""
    return l1(F.normalize(raw, dim=1), label)


LOSSES: dict[str, Callable[..., Tensor]] = {
    f.__name__: f for f in (cross_entropy, balanced_cross_entropy, weighted_bce, balanced_bce, l1, l1_unit)
}


def task_loss(spec: TaskSpec, raw: Tensor, label: Tensor) -> Tensor:
    """Return the unweighted loss of one task, in float32 whatever the autocast type."""
    if isinstance(spec.loss, str) and spec.loss not in LOSSES:
        raise unknown("loss", spec.loss, LOSSES, f"task {spec.name!r}")
    loss = LOSSES[spec.loss] if isinstance(spec.loss, str) else spec.loss
    value = loss(raw.float(), label, **spec.loss_options)
    if not isinstance(value, Tensor) or value.dim():
        gave = f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise FmtlbenchError(f"task {spec.name!r}: its loss gave {gave}, expected a tensor of one number")
    return value
