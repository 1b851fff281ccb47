"""What a finished run keeps of its networks, and how much that takes.

`last`: the networks as the last round scored them, in every bit; `none`: nothing but the records.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..base.errors import UsageError, unknown
from ..base.settings_file import config_path, read_user_config
from .folder import RunFolder

LAST, NONE = KEEP = ("last", "none")
FORMER = ("weights", "exact")  # of earlier versions: in 8 bits, and as `last` is now


def choose_keep(asked: str | None) -> str:
    """Return what is asked for; else what the user's config file says; else last."""
    if asked is not None:
        return check_keep(asked, "--keep")
    return check_keep(read_user_config().keep or LAST, f"{config_path()}: keep")


def check_keep(asked: str, where: str = "") -> str:
    """Return a way to keep networks if it is one; `where` names what gave it."""
    if asked in FORMER:
        prefix = f"{where}: " if where else ""
        raise UsageError(
            f"{prefix}{asked!r} was a way to keep networks in earlier versions; did you mean {LAST!r}, which keeps "
            f"those of the last round exactly? (or {NONE!r})"
        )
    if asked not in KEEP:
        raise unknown("way to keep networks", str(asked), KEEP, where)
    return asked


def available(folder: Path) -> list[int]:
    """Return the numbers of rounds that a checkpoint exists for, oldest first; damaged ones included."""
    return sorted(int(path.name[6:]) for path in folder.glob("round-*") if path.name[6:].isdigit())


def kept_in(run: RunFolder) -> str:
    """Return what a run keeps now; a checkpoint gives networks too."""
    return LAST if run.has_networks() or available(run.checkpoints) else NONE


def size_on_disk(folder: Path) -> int:
    """Return the bytes of all files of a run; links are not followed."""
    return sum((Path(here) / name).lstat().st_size for here, _, names in os.walk(folder) for name in names)
