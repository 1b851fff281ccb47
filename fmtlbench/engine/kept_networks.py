"""The networks that a finished run keeps, as tensors: exactly, or with large tensors in 8 bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor

from ..config.request import WEIGHTS
from ..runs.weights_file import SCALE, Explain, WeightsFile, WeightsWriter, writing_weights
from .federation import KeepWeights

SMALLEST = 1024  # values of a tensor that is worth rounding
LEVELS = 127  # of either sign
_KINDS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@contextmanager
def keeping_networks(file: Path, precision: str, done: int, explain: Explain = nullcontext) -> Iterator[KeepWeights]:
    """Give a function that takes a client's id and its network's tensors; `file` has them all when the block ends.

    `explain` turns a disk's refusal into an error of the caller's.
    """
    with writing_weights(file, {"precision": precision, "round": str(done)}, explain) as writer:

        def keep(client: str, tensors: dict[str, Tensor]) -> None:
            with explain():
                _add_network(writer, client, tensors, rounds=precision == WEIGHTS)

        yield keep


def _add_network(writer: WeightsWriter, client: str, tensors: dict[str, Tensor], rounds: bool) -> None:
    writer.clients.append(client)
    for name, tensor in tensors.items():
        if rounds and _is_large(tensor):
            numbers, scales = round_to_bytes(tensor)
            _add(writer, f"{client}/{name}", numbers)
            _add(writer, f"{client}/{name}{SCALE}", scales)
        else:
            _add(writer, f"{client}/{name}", tensor)


def _is_large(tensor: Tensor) -> bool:
    # Of a vector every value would have a scale of its own.
    large = tensor.is_floating_point() and tensor.dim() > 1 and tensor.numel() >= SMALLEST
    return large and bool(tensor.isfinite().all())


def _add(writer: WeightsWriter, name: str, tensor: Tensor) -> None:
    content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    writer.add(name, _KINDS[tensor.dtype], tuple(tensor.shape), content.data)


def round_to_bytes(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return whole numbers from -127 to 127 and a scale per output channel, [C, …] and [C]; their product is near."""
    rows = tensor.detach().reshape(len(tensor), -1).float()
    scales = rows.abs().amax(1) / LEVELS
    steps = scales.where(scales > 0, torch.ones_like(scales))
    return (rows / steps[:, None]).round().to(torch.int8).reshape(tensor.shape), scales


def restore_floats(numbers: Tensor, scales: Tensor) -> Tensor:
    """Return what `round_to_bytes` was given, up to half a step."""
    return numbers.float() * scales.reshape(-1, *[1] * (numbers.dim() - 1))


class KeptNetworks:
    """The networks in a weights file, read one client at a time.

    Raises:
        DamagedRun: It is not as it was written.
    """

    def __init__(self, path: Path) -> None:
        self._file = WeightsFile(path)
        self._file.check()
        self.precision, self.round, self.clients = self._file.precision, self._file.round, self._file.clients

    @property
    def is_rounded(self) -> bool:
        """Whether large tensors were rounded to 8 bits."""
        return self.precision == WEIGHTS

    def state(self, client: str) -> dict[str, Tensor]:
        """Return a client's tensors by their names in its network, as floating-point numbers."""
        names = self._file.stored_names(client)
        state = {}
        with safe_open(self._file.path, framework="pt") as tensors:
            for name, stored in names.items():
                if name.endswith(SCALE):
                    continue
                state[name] = tensors.get_tensor(stored)
                if scales := names.get(name + SCALE):
                    state[name] = restore_floats(state[name], tensors.get_tensor(scales))
        return state
