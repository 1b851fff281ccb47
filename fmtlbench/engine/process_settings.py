"""What a process must be told before its numbers are those of the config."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from ..config.run_config import TrainConfig
from .torch_compile import many_graphs


@contextmanager
def process_settings(train: TrainConfig, device: torch.device) -> Iterator[None]:
    """Apply the process-wide settings that move bits; put them back afterwards."""
    threads = torch.get_num_threads()
    deterministic, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    if train.threads is not None:
        torch.set_num_threads(train.threads)
    if device.type == "cuda":
        # warn_only: the backward of bilinear upsampling has no deterministic CUDA kernel
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with many_graphs() if train.compile else nullcontext():
            yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
