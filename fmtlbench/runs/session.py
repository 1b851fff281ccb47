"""Where numbers came from: versions, hardware, command. Written beside every run."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .code_identity import SOURCES, CodeIdentity
from .git_state import read_git_state
from .records import Session, SessionCode

# Which kernels a CPU takes, so in which order it sums: set, they make one machine calculate as another does.
KERNEL_CHOICES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
PACKAGES = ("fmtlbench", "torch", "torchvision", "timm", "numpy", "scipy", "numba", "scikit-image", "safetensors")


def versions() -> dict[str, str]:
    """Return the installed versions of everything that can move a number."""
    from importlib.metadata import PackageNotFoundError, version  # here: a start without it is quicker

    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def hardware(device: str) -> dict[str, Any]:
    """Describe the machine by what is in it, not by its name."""
    info: dict[str, Any] = {
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
    """Return what decides the order of summation beside the config: the CPU's kernels and the number of threads."""
    import torch

    return {
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        **{name: os.environ[name] for name in KERNEL_CHOICES if name in os.environ},
    }


def session(device: str, first_round: int, code: CodeIdentity, command: str) -> Session:
    """Describe the work on a run that begins now; a resumed run has several sessions."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "from_round": first_round,
        "versions": versions(),
        "hardware": hardware(device),
        "arithmetic": arithmetic(),
        "code": describe_code(code),
        "command": command.encode("utf-8", errors="replace").decode(),  # of a path that is no UTF-8
    }


def describe_code(code: CodeIdentity) -> SessionCode:
    """Describe the code that a run is made by, and where it is from."""
    commit, is_clean = read_git_state(SOURCES.deciding_paths())
    return {
        "sha256": code.sha256,
        "parts": code.parts,
        "version": versions()["fmtlbench"],
        "commit": commit,
        "clean": is_clean,
        "files": {part: dict(files) for part, files in code.files.items()},
    }
