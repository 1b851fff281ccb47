"""Hand the pixels of a batch to compiled loops.

Torch and numba are imported only when a tensor comes, so that tasks and metrics can be listed without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def compiled(kernel: str, tensors: Sequence[Tensor], *options: Any) -> tuple[Tensor, ...] | None:
    """Run a pass of `_pixel_passes.py` and return its results; None if there are numbers that it cannot use.

    Passes read float32 and float64 in the processor's memory: tensors elsewhere, or of other dtypes, are copied.
    """
    import numpy as np
    import torch

    from . import _pixel_passes

    # no code is compiled for mixtures
    common = torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32
    arrays = [tensor.detach().to("cpu", common).contiguous().numpy() for tensor in tensors]
    holds, *results = getattr(_pixel_passes, kernel)(*arrays, *options)
    return tuple(torch.from_numpy(np.asarray(result)) for result in results) if holds else None
