"""Read a file of weights into named tensors. No code in the file is ever run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import FmtlbenchError, UsageError, first_line

if TYPE_CHECKING:
    from torch import Tensor

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
# In a training script's file the weights are under one of these names, beside optimiser and epoch.
WRAPPERS = ("model", "state_dict", "model_state_dict", "module", "net")
# Prefixes that wrapping modules add to every name.
PREFIXES = ("module.", "_orig_mod.", "model.", "backbone.", "encoder.", "body.")


def check_path(path: Path) -> Path:
    """Return `path` if it exists and has a suffix of weights files; refuse it otherwise."""
    if not path.is_file():
        raise UsageError(f"model.weights: no such file: {path}")
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"model.weights: {path}: expected a name ending in {', '.join(SUFFIXES)}")
    return path


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the named tensors of a .safetensors file, or of a state dict that torch saved."""
    _check_start(check_path(path))
    content = _read_safetensors(path) if path.suffix.lower() == ".safetensors" else _read_pickle(path)
    return _unwrap(content, path)


def _check_start(path: Path) -> None:
    """Refuse a file that is empty, a web page or a Git LFS pointer, as failed downloads leave behind."""
    try:
        with path.open("rb") as file:
            start = file.read(256).lstrip()
    except OSError as error:
        raise FmtlbenchError(f"model.weights: {path} cannot be read: {error.strerror or error}") from None
    if not start:
        raise FmtlbenchError(f"model.weights: {path} is empty")
    if start[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise FmtlbenchError(f"model.weights: {path} is a web page, not weights; was the download refused?")
    if start.startswith(b"version https://git-lfs"):
        raise FmtlbenchError(f"model.weights: {path} is a Git LFS pointer, not weights; fetch it with `git lfs pull`")


def _read_safetensors(path: Path) -> Any:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise _describe_unreadable(path, error) from None


def _read_pickle(path: Path) -> Any:
    from pickle import UnpicklingError

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about pickle's version before it refuses
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        foreign = re.search(r"GLOBAL ([\w.]+)", str(error))
        held = f"holds {foreign[1]}" if foreign else "is damaged, or holds more"
        raise FmtlbenchError(
            f"model.weights: {path} {held} besides tensors, and loading that could run code; "
            "expected a state dict alone, best as .safetensors"
        ) from None
    except Exception as error:  # torch raises many kinds of errors for a truncated file or another format
        raise _describe_unreadable(path, error) from None


def _describe_unreadable(path: Path, error: Exception) -> FmtlbenchError:
    return FmtlbenchError(f"model.weights: {path} cannot be read as weights (cut short?): {first_line(error)}")


def _unwrap(content: Any, path: Path) -> dict[str, Tensor]:
    import torch

    for name in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping):
        raise FmtlbenchError(f"model.weights: {path} holds a {type(content).__name__}, expected names and tensors")
    tensors = {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        names = ", ".join(map(str, list(content)[:5]))
        raise FmtlbenchError(f"model.weights: {path} holds no tensors" + (f", only {names}" if names else ""))
    return _strip_prefixes(tensors)


def _strip_prefixes(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    while prefix := next((p for p in PREFIXES if all(name.startswith(p) for name in tensors)), None):
        tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
    return tensors
