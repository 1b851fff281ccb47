"""What every cache on disk has in common: where it lies, and the error for what cannot be trusted."""

from __future__ import annotations

import os
from pathlib import Path


class BrokenCacheError(Exception):
    """What lies in the cache is not what it says it is."""


def cache_root(cache_dir: str | os.PathLike | None = None) -> Path:
    """`cache_dir`, else $FMTLBENCH_CACHE, else the user's cache folder."""
    chosen = cache_dir or os.environ.get("FMTLBENCH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("fmtlbench"))
