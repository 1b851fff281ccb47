"""What every cache on disk has in common: its folder, and the error for damaged content."""

from __future__ import annotations

import os
from pathlib import Path


class BrokenCacheError(Exception):
    """The content of a cache is damaged or belongs to other data."""


def cache_root(cache_dir: str | os.PathLike | None = None) -> Path:
    """Return the folder of caches: `cache_dir`, else $FMTLBENCH_CACHE, else the user's cache folder."""
    chosen = cache_dir or os.environ.get("FMTLBENCH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("fmtlbench"))
