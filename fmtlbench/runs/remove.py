"""Remove a run for good."""

from __future__ import annotations

from pathlib import Path

from ..base.errors import UsageError
from ..base.files import remove_folder
from .lock import locked


def check_removable(folder: Path) -> None:
    """Refuse a link, and a run that another process is working on."""
    if folder.is_symlink():
        raise UsageError(
            f"{folder}: a link to {folder.readlink()}, expected a run's own folder; links are not followed"
        )
    with locked(folder):
        pass


def remove_run(folder: Path) -> None:
    """Remove the folder of a run and everything in it; of links the link alone. A kill leaves all of it or nothing.

    Raises:
        StoreError: Another process is working on it.
    """
    with locked(folder):
        remove_folder(folder)
