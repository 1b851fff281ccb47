"""Keep other processes out of a run folder while one works on it, or removes it for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TextIO

from ..base.errors import FmtlbenchError
from ..base.files import remove_folder
from .folder import RunFolder

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no flock: two processes on one run are not kept apart there
    fcntl = None


class StoreError(FmtlbenchError):
    """The run folder could not be read or written."""


def take_lock(lock: TextIO, folder: Path) -> None:
    """Lock an open file until it is closed; refuse if another process holds it."""
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise StoreError(f"{folder}: another process is working on this run") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run that is there."""
    with RunFolder(folder).lock.open("w") as lock:
        take_lock(lock, folder)
        yield


def check_removable(folder: Path) -> None:
    """Refuse a run that another process is working on."""
    with locked(folder):
        pass


def remove_run(folder: Path) -> None:
    """Remove the folder of a run and everything in it; of links the link alone. A kill leaves all of it or nothing.

    Raises:
        StoreError: Another process is working on it.
    """
    with locked(folder):
        remove_folder(folder)
