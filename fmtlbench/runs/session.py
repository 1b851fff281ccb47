"""Where numbers came from: versions, hardware, data. Written beside every run."""

from __future__ import annotations

import os
import platform
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Which kernels a CPU takes, so in which order it sums: set, they make one machine calculate as another does.
KERNEL_CHOICES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
PACKAGES = ("fmtlbench", "torch", "torchvision", "timm", "numpy", "scipy", "numba", "scikit-image", "safetensors")


def versions() -> dict[str, str]:
    """Installed versions of everything that can move a number."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def hardware(device: str) -> dict[str, Any]:
    """The machine, by what is in it and not by its name."""
    info = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "device": device,
    }
    if device.startswith("cuda"):
        import torch

        info["gpu"] = torch.cuda.get_device_name(device)
        info["cuda"] = torch.version.cuda
    return info


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def arithmetic() -> dict[str, Any]:
    """What decides the order of summation beside the config: the CPU's kernels and the number of threads."""
    import torch

    return {
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        **{name: os.environ[name] for name in KERNEL_CHOICES if name in os.environ},
    }


def session(device: str, first_round: int) -> dict[str, Any]:
    """One stretch of work on a run: a resumed run has several."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "from_round": first_round,
        "versions": versions(),
        "hardware": hardware(device),
        "arithmetic": arithmetic(),
        "command": Path(sys.argv[0]).name + " " + " ".join(sys.argv[1:]) if sys.argv else "",
    }
