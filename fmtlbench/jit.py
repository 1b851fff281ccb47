"""How the project compiles: helpers in memory, entry points with a copy on disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numba

# error_model: divide as IEEE says, without a branch per division for Python's ZeroDivisionError
OPTIONS = {"error_model": "numpy"}


def jit(function: Callable, **options) -> Callable:
    """For functions that compiled code calls."""
    return numba.njit(**OPTIONS, **options)(function)


def entry(function: Callable, **options) -> Callable:
    """For functions that Python calls; compiled code is kept on disk, unless the disk is full or read-only."""
    try:
        chosen = numba.njit(cache=True, **OPTIONS, **options)(function)
    except RuntimeError:  # numba found no writable folder
        return jit(function, **options)

    @wraps(function)
    def call(*arguments):
        nonlocal chosen
        try:
            return chosen(*arguments)
        except OSError:  # the folder was there, but writing failed; numbers alone never raise this
            chosen = jit(function, **options)
            return chosen(*arguments)

    return call
