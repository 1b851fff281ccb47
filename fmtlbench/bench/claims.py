"""Who does which run: a lock per run, held while its process works, so that two benches can share the work."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from ..runs.folder import RunFolder

try:
    import fcntl
except ImportError:  # Windows has no flock: only the run's own folder says that it is finished
    fcntl = None


class Claim:
    """One run taken. The run's process inherits the lock: it stays taken until both let go or end."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle

    def fileno(self) -> int:
        return self._handle.fileno()

    def release(self) -> None:
        """Let others have it, even if a leftover process still holds the file open."""
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._handle.close()


def claim(folder: Path, key: str) -> Claim | None:
    """Take run `key`; None if another process has it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = (folder / f"{key}.lock").open("wb")
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return None
    return Claim(handle)


def worked_on(folder: Path) -> bool:
    """Whether a process has a run's folder open: a plain `fmtlbench run`, which knows no claims."""
    lock = RunFolder(folder).lock
    if fcntl is None or not lock.exists():
        return False
    with lock.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
