"""What every cache on disk has in common: where it lies, and what killed processes leave there."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

STALE_AFTER = 24 * 3600  # seconds; a build older than this was left by a killed process


class BrokenCacheError(Exception):
    """What lies in the cache is not what it says it is."""


def cache_root(cache_dir: str | os.PathLike | None = None) -> Path:
    """`cache_dir`, else $FMTLBENCH_CACHE, else the user's cache folder."""
    chosen = cache_dir or os.environ.get("FMTLBENCH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("fmtlbench"))


def sweep(folder: Path, pattern: str, age: float = STALE_AFTER) -> None:
    """Delete temporary files and folders that killed builds have left."""
    for left in folder.glob(pattern):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > age:
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()
