"""Decide whether a compiled kernel or torch goes through the pixels of a batch.

Torch and numba are imported only when a tensor comes, so that tasks and metrics can be listed without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def compiled(kernel: str, tensors: Sequence[Tensor], *options: Any) -> tuple[Tensor, ...] | None:
    """Run a pass of `_pixel_passes.py` and return its results; None if torch must do the work.

    Kernels read float32 and float64 in the processor's memory. Torch does other dtypes and devices, tensors without
    elements, and numbers that a kernel cannot use, for which it raises the error.
    """
    import numpy as np
    import torch

    dtypes = {tensor.dtype for tensor in tensors}
    readable = all(tensor.device.type == "cpu" and tensor.numel() for tensor in tensors)
    if not readable or not dtypes <= {torch.float32, torch.float64}:
        return None
    from . import _pixel_passes

    common = torch.float32 if dtypes == {torch.float32} else torch.float64  # no code is compiled for mixtures
    arrays = [tensor.detach().to(common).contiguous().numpy() for tensor in tensors]
    holds, *results = getattr(_pixel_passes, kernel)(*arrays, *options)
    return tuple(torch.from_numpy(np.asarray(result)) for result in results) if holds else None
