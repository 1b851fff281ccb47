"""Batches of tensors from a view: shuffled and augmented from a named stream, labels in one convention.

In every label 255 means "ignore"; where nothing was measured (depth 0, a normal of zero length) it is written here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..tasks import IGNORE
from .views import View

# ImageNet statistics: what pretrained encoders expect, and as good as any from scratch.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SCALE = np.array([[[1 / (255 * s)]] for s in STD], np.float32)
SHIFT = np.array([[[-m / s]] for m, s in zip(MEAN, STD)], np.float32)


def train_batches(
    view: View, tasks: tuple[str, ...], size: int, rng: np.random.Generator, augment: tuple[str, ...], device
) -> Iterator[dict[str, Tensor]]:
    """One epoch in random order. A last, smaller batch is dropped unless it is the only one."""
    order = view.indices[rng.permutation(len(view))]
    for start in range(0, batch_count(len(view), size) * size, size):
        arrays = view.dataset.batch(order[start : start + size], keys=("image", *tasks))
        if "flip" in augment:
            flip(arrays, rng.random(len(arrays["image"])) < 0.5)
        yield to_tensors(arrays, device)


def test_batches(view: View, tasks: tuple[str, ...], size: int, device) -> Iterator[dict[str, Tensor]]:
    """Every image once, in order."""
    for start in range(0, len(view), size):
        yield to_tensors(view.dataset.batch(view.indices[start : start + size], keys=("image", *tasks)), device)


def batch_count(images: int, size: int) -> int:
    """Training batches per epoch."""
    return max(1, images // size)


def flip(arrays: dict[str, np.ndarray], which: np.ndarray) -> None:
    """Mirror the chosen samples left to right; a mirrored normal points the other way along x."""
    for key, value in arrays.items():
        value[which] = value[which, :, ::-1]
        if key == "normals":
            value[which, ..., 0] *= -1


def to_tensors(arrays: dict[str, np.ndarray], device) -> dict[str, Tensor]:
    """Arrays [B, H, W(, C)] → tensors, channels first, image normalised."""
    tensors = {}
    for key, value in arrays.items():
        if value.ndim == 4:
            value = value.transpose(0, 3, 1, 2)
        if key == "image":
            # (x / 255 - mean) / std in one pass and one shift: this runs for every training step
            value = np.multiply(value, SCALE, dtype=np.float32, order="C")
            value += SHIFT
        elif key == "normals":
            value = np.where((value == 0).all(1, keepdims=True), np.float32(IGNORE), value)
        elif key == "depth":
            value = np.where(value > 0, value, np.float32(IGNORE))
        tensors[key] = torch.from_numpy(np.ascontiguousarray(value)).to(device, non_blocking=True)
    return tensors
