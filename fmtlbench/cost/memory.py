"""Peak memory: of the process, and of the device's allocator where it keeps count."""

from __future__ import annotations

import sys
from typing import Any


def peak_memory(device: Any) -> dict[str, int | None]:
    """Return peaks in bytes. `process`: resident size since the process began; `device`: since `reset_peak`."""
    return {"process": _process_peak(), "device": _device_peak(device)}


def reset_peak(device: Any) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _device_peak(device: Any) -> int | None:
    if device.type != "cuda":  # MPS counts what is allocated now, not the peak
        return None
    import torch

    return torch.cuda.max_memory_allocated(device)


def _process_peak() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return getattr(psutil.Process().memory_info(), "peak_wset", None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
