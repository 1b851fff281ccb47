"""Which kind of device the runs will use, found out without importing torch here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..api import check_device
from ..errors import FmtlbenchError

# Without any of these, Linux has no GPU that torch calls "cuda": NVIDIA's driver, AMD's, or the one of WSL.
GPU_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_PROBE = """
import sys
from fmtlbench.api import pick_device
from fmtlbench.errors import FmtlbenchError
try:
    print(pick_device(sys.argv[1]).type)
except FmtlbenchError as error:
    sys.exit(str(error))
"""


def device_kind(name: str) -> str:
    """`auto`, `cuda:1` … → "cpu", "cuda" or "mps", which is part of a run's config; one that is missing is an error."""
    check_device(name)
    if name == "cpu" or (name == "auto" and not _may_have_gpu()):
        return "cpu"
    probe = subprocess.run([sys.executable, "-c", _PROBE, name], capture_output=True, text=True)
    if probe.returncode:
        lines = probe.stderr.strip().splitlines() or [f"exit code {probe.returncode}"]
        raise FmtlbenchError(lines[-1])
    return probe.stdout.split()[-1]


def _may_have_gpu() -> bool:
    if sys.platform == "darwin":  # auto never means mps
        return False
    return sys.platform != "linux" or any(Path(file).exists() for file in GPU_FILES)
