"""What a run keeps of its networks, and how much that takes."""

from __future__ import annotations

import os
from pathlib import Path

from ..config.keep import LAST, NONE
from .folder import RunFolder


def available(folder: Path) -> list[int]:
    """Return the numbers of rounds that a checkpoint exists for, oldest first; damaged ones included."""
    return sorted(int(path.name[6:]) for path in folder.glob("round-*") if path.name[6:].isdigit())


def kept_in(run: RunFolder) -> str:
    """Return what a run keeps now; a checkpoint gives networks too."""
    return LAST if run.has_networks() or available(run.checkpoints) else NONE


def size_on_disk(folder: Path) -> int:
    """Return the bytes of all files of a run; links are not followed."""
    return sum((Path(here) / name).lstat().st_size for here, _, names in os.walk(folder) for name in names)
