"""Which device clients work on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..base.errors import FmtlbenchError, UsageError

if TYPE_CHECKING:
    import torch


def check_device(name: str) -> None:
    """Refuse a name that no device can have; needs no torch."""
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        raise UsageError(f"--device {name}: expected auto, cpu, cuda, cuda:<number> or mps")


def pick_device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise FmtlbenchError(f"--device {name}: {count} CUDA devices here; --device cpu works everywhere")
        return torch.device("cuda", device.index or 0)
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise FmtlbenchError("--device mps: not available here; --device cpu works everywhere")
    return device
