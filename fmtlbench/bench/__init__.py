"""Many runs: which ones a request means (asked, grid, plan), how long they take (estimate), and doing them (workers).

Nothing here imports torch: every run is a process of its own, and this one only plans, watches and counts.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .request import Bench


class _Room(ModuleType):
    # Python sets `fmtlbench.bench` to this package as soon as anything of it is imported, whatever the name meant
    # before. So the package itself is what can be called, and it does not matter who imported what first.
    def __call__(self, *args: Any, **kwargs: Any) -> Bench:
        """Do a bench: `fmtlbench.bench(…)`, see `fmtlbench.api.bench`."""
        from .request import bench

        return bench(*args, **kwargs)


sys.modules[__name__].__class__ = _Room
