"""Mixed precision: the types by name, and a check that a CPU survives them.

On some (mostly virtual) CPUs torch picks half-precision matrix instructions that the machine then refuses, which
ends the process without a word. A child process finds out first.
"""

from __future__ import annotations

import subprocess
import sys

import torch

from ..base.errors import FmtlbenchError

AMP_TYPES = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}

PROBE = """
import torch
torch.set_num_threads(1)
for rows, inside, outside in ((2048, 24, 72), (128, 96, 288), (32, 192, 576), (7, 33, 65)):
    x = torch.randn(rows, inside, requires_grad=True)
    with torch.autocast("cpu", torch.{name}):
        y = torch.nn.Linear(inside, outside)(x)
    y.float().sum().backward()
"""


def check_amp(name: str, device: torch.device) -> None:
    """Refuse, in one line, a precision that this CPU cannot do."""
    dtype = AMP_TYPES[name]
    if dtype is None or device.type != "cpu":
        return
    code = PROBE.format(name=str(dtype).removeprefix("torch."))
    probe = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if probe.returncode:
        raise FmtlbenchError(
            f"train.amp={name}: {name} arithmetic ends the process on this CPU (probe: exit code {probe.returncode}); "
            "use train.amp=none, or try again with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment"
        )
