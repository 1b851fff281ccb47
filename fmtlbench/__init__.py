"""Benchmark suite and baseline zoo for hetero-client federated multi-task learning."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from .errors import FmtlbenchError, UsageError

if TYPE_CHECKING:
    from .api import run
    from .runs.result import RunResult

__version__ = version("fmtlbench")
__all__ = ["FmtlbenchError", "RunResult", "UsageError", "__version__", "run"]


def __getattr__(name: str):
    # `fmtlbench.run` pulls in the configuration machinery; a plain import does not
    if name == "run":
        from .api import run

        return run
    if name == "RunResult":
        from .runs.result import RunResult

        return RunResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
