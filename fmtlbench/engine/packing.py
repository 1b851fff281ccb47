"""Messages between processes: tensors as plain arrays, which can be shared without a copy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .state_trees import list_leaves, map_leaves


@dataclass(frozen=True)
class Array:
    """A tensor's bytes, their type and their shape. `content` may be a stand-in that a reader knows how to fetch."""

    content: Any
    dtype: str
    shape: tuple[int, ...]


def pack(value: Any, keep: Callable[[np.ndarray], Any] = lambda content: content) -> Any:
    """Return a message with every tensor as an `Array`; `keep` puts the bytes where they shall lie."""

    def packed(tensor: Tensor) -> Array:
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        return Array(
            keep(flat.view(torch.uint8).numpy()), str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
        )

    return map_leaves(value, Tensor, packed)


def unpack(value: Any, fetch: Callable[[Any], np.ndarray] = lambda content: content) -> Any:
    """Undo `pack`. The tensors may be memory that others read too: copy them before you write."""

    def unpacked(array: Array) -> Tensor:
        content = fetch(array.content)
        dtype = getattr(torch, array.dtype)
        if not content.size:
            return torch.empty(array.shape, dtype=dtype)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(content).view(dtype).reshape(array.shape)

    return map_leaves(value, Array, unpacked)


def count_bytes(value: Any) -> int:
    """Count the bytes of a message's arrays."""
    return sum(array.content.nbytes for array in list_leaves(value, Array))
