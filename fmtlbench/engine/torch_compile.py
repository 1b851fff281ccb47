"""`train.compile`: training steps through torch.compile, wholly or not at all.

The network keeps its parameters and their names; what is compiled is held beside it and called in training steps.
Scoring and prediction call the network itself, so that a stored run can be asked where nothing can be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..base.errors import FmtlbenchError, one_line, shorten

BACKEND = "inductor"
MANY = 100_000  # graphs: one per kind of client, image size, batch size and set of trained kinds
COMPILER = ("torch._dynamo.", "torch._inductor.", "torch._functorch.")  # where its errors are at home


def compile_fully(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what computes the same, to be compiled at the first call with new shapes.

    `fullgraph`: what cannot be compiled is an error, and not left uncompiled in silence. `dynamic=False`: a graph for
    every shape; otherwise the code for a shape would depend on those seen before it, and a resumed run could differ
    from one never interrupted.
    """
    return torch.compile(function, fullgraph=True, dynamic=False, backend=BACKEND)


def check_compile(wanted: bool, device: torch.device) -> None:
    """Refuse, in one line, to compile where that does not work; a small function is tried."""
    if not wanted:
        return
    if device.type == "mps":
        raise _refusal("torch does not compile for mps yet")
    try:
        compile_fully(_small)(torch.ones(8, device=device))
    except Exception as error:  # also of other kinds: a version of Python that is too new, a folder it cannot write to
        raise _refusal(f"torch cannot compile here: {_reason(error)}") from error


@contextmanager
def many_graphs() -> Iterator[None]:
    """Let clients of many kinds be compiled, where torch would give up after the eighth graph."""
    with torch._dynamo.config.patch(recompile_limit=MANY, accumulated_recompile_limit=MANY):
        yield


@contextmanager
def compiler_errors() -> Iterator[None]:
    """Turn what the compiler says of a network, on the way forward or back, into one line."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(COMPILER):
            raise
        raise _refusal(f"torch cannot compile this network: {_reason(error)}") from error


def _small(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + x.cos()


def _reason(error: Exception) -> str:
    """Take the first paragraph; what follows is advice to those who work on the compiler."""
    return shorten(one_line(str(error).strip().partition("\n\n")[0]) or type(error).__name__, longest=300)


def _refusal(why: str) -> FmtlbenchError:
    return FmtlbenchError(f"train.compile=true: {why}; --set train.compile=false works everywhere")
