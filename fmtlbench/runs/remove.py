"""Remove a run for good."""

from __future__ import annotations

from pathlib import Path

from ..base.files import remove_folder
from .lock import locked


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
