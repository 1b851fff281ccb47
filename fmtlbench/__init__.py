"""Benchmark suite and baseline zoo for hetero-client federated multi-task learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base.errors import FmtlbenchError, UsageError

if TYPE_CHECKING:
    __version__: str
    from .api import bench, load, run
    from .reports.ask import frame, leaderboard, plot, stats
    from .runs.result import RunResult

REPORTS = ("frame", "leaderboard", "plot", "stats")
__all__ = [
    "FmtlbenchError",
    "RunResult",
    "UsageError",
    "__version__",
    "bench",
    "frame",
    "leaderboard",
    "load",
    "plot",
    "run",
    "stats",
]


def __getattr__(name: str) -> Any:
    # Imported when asked for: a plain `import fmtlbench` pulls in neither configuration nor pandas. To look for the
    # version takes longer than all else that the package itself imports.
    if name == "__version__":
        from importlib.metadata import version

        return version("fmtlbench")
    if name in ("load", "run"):
        from . import api

        return getattr(api, name)
    if name == "bench":  # the package, which can be called
        from importlib import import_module

        return import_module(".bench", __name__)
    if name in REPORTS:
        from .reports import ask

        return getattr(ask, name)
    if name == "RunResult":
        from .runs.result import RunResult

        return RunResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
