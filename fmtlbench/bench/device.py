"""Which device the runs will use, and how many there are of it, found out without importing torch here."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import FmtlbenchError
from ..cost.tracker import gpu_name
from ..engine.device import check_device

# Without any of these, Linux has no GPU that torch calls "cuda": NVIDIA's driver, AMD's, or the one of WSL.
GPU_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_PROBE = """
import sys
import torch
from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.engine.device import pick_device
try:
    print(pick_device(sys.argv[1]).type, torch.cuda.device_count())
except FmtlbenchError as error:
    sys.exit(str(error))
"""


@dataclass(frozen=True)
class Device:
    """What was found: the kind, which is part of a run's config, and how many GPUs runs may be spread over."""

    kind: str  # "cpu", "cuda" or "mps"
    gpus: int = 0  # none where the user names one

    def names(self) -> list[str]:
        """Return what CUDA_VISIBLE_DEVICES calls each GPU, as far as it lets us see them."""
        return [gpu_name(index) for index in range(self.gpus)]


def find_device(name: str, here: bool = True) -> Device:
    """Find out what `auto`, `cuda:1` … means; one that is missing is an error.

    Args:
        name: As the user gave it.
        here: The runs will be on this machine; on others, a device that is named is taken at its word.
    """
    check_device(name)
    if name == "cpu" or (name == "auto" and not _may_have_gpu()):
        return Device("cpu")
    if not here and name != "auto":
        return Device(name.partition(":")[0])
    probe = subprocess.run([sys.executable, "-c", _PROBE, name], capture_output=True, text=True)
    if probe.returncode:
        lines = probe.stderr.strip().splitlines() or [f"exit code {probe.returncode}"]
        raise FmtlbenchError(lines[-1])
    kind, count = probe.stdout.split()[-2:]
    return Device(kind, int(count) if name in ("auto", "cuda") else 0)


def _may_have_gpu() -> bool:
    if sys.platform == "darwin":  # auto never means mps
        return False
    return sys.platform != "linux" or any(Path(file).exists() for file in GPU_FILES)
