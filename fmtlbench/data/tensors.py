"""Turn arrays into tensors: channels first, images normalised, unlabelled pixels marked the same way for every task.

In every label 255 means "ignore"; this file writes it where nothing was measured (depth 0, a normal of zero length).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..tasks import TASKS

# ImageNet statistics, because pretrained encoders expect them.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SCALE = np.array([[[1 / (255 * s)]] for s in STD], np.float32)
SHIFT = np.array([[[-m / s]] for m, s in zip(MEAN, STD)], np.float32)

STRIP = 64  # rows handled at a time, few enough to stay in the processor's cache between passes


def to_tensors(arrays: dict[str, np.ndarray], device) -> dict[str, Tensor]:
    """Return arrays [B, H, W(, C)] as tensors [B, (C,) H, W], with the image normalised."""
    tensors = {}
    for key, value in arrays.items():
        out = empty_batch(key, value, len(value))
        fill(out, key, value)
        tensors[key] = torch.from_numpy(out).to(device, non_blocking=True)
    return tensors


def empty_batch(key: str, like: np.ndarray, count: int) -> np.ndarray:
    """Return an uninitialised array [count, (C,) H, W] for samples of the shape of `like` [B, H, W(, C)]."""
    height, width, *channels = like.shape[1:]
    return np.empty((count, *channels, height, width), np.float32 if key == "image" else like.dtype)


def fill(out: np.ndarray, key: str, value: np.ndarray) -> None:
    """Write `value` [B, H, W(, C)] into `out` [B, (C,) H, W], normalised and with unlabelled pixels marked."""
    if value.ndim == 4:
        value = value.transpose(0, 3, 1, 2)
    for start in range(0, out.shape[-2], STRIP):
        rows = np.s_[..., start : start + STRIP, :]
        _fill_rows(out[rows], key, value[rows])


def _fill_rows(out: np.ndarray, key: str, value: np.ndarray) -> None:
    if key == "image":
        # (x / 255 - mean) / std as one multiplication and one addition, because this runs in every training step
        np.multiply(value, SCALE, out=out, dtype=np.float32)
        out += SHIFT
        return
    out[...] = value
    TASKS[key].kind.mark_unlabelled(out)
