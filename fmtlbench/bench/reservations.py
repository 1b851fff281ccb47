"""Reserve runs: a lock file each, held while its process works, so that several benches share one plan."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from ..runs.folder import RunFolder

try:
    import fcntl
except ImportError:  # Windows has no flock: only the run's own folder says that it is finished
    fcntl = None


class Reservation:
    """One run, kept from other benches. Its process inherits the lock: it lasts until both let go or end."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle

    def fileno(self) -> int:
        return self._handle.fileno()

    def release(self) -> None:
        """Let others have it, even if a leftover process still holds the file open."""
        if fcntl is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._handle.close()


def reserve(bench: Path, key: str) -> Reservation | None:
    """Reserve run `key` in a bench's folder; None if another process has it."""
    folder = bench / "claims"  # called so since the first version, whose benches may be at work beside
    folder.mkdir(parents=True, exist_ok=True)
    handle = (folder / f"{key}.lock").open("wb")
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return None
    return Reservation(handle)


def worked_on(folder: Path) -> bool:
    """Whether a process has a run's folder open: a plain `fmtlbench run`, which reserves nothing."""
    lock = RunFolder(folder).lock
    if fcntl is None or not lock.exists():
        return False
    with lock.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
