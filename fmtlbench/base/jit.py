"""Compile functions with numba: inner ones in memory, those that Python calls with a copy on disk if possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import numba

# error_model: divide as IEEE says, without a branch per division for Python's ZeroDivisionError
OPTIONS = {"error_model": "numpy"}


def jit(function: Callable, **options) -> Callable:
    """Compile a function that only compiled code calls."""
    return numba.njit(**OPTIONS, **options)(function)


def entry(function: Callable, **options) -> Callable:
    """Compile a function that Python calls; keep the code on disk unless that is full or read-only."""
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
