"""What a finished run keeps of its networks, and how much that takes.

From most to least: `last`, the last checkpoint with all that training needs; `exact`, the scored networks in every bit;
`weights`, the same with large tensors in 8 bits; `none`, nothing but the records.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..base.errors import UsageError, unknown
from ..base.files import remove_folder
from ..base.settings_file import config_path, read_user_config
from ..config.request import KEEP, LAST, NONE, WEIGHTS
from .folder import RunFolder
from .lock import locked
from .weights_file import WeightsFile


def choose_keep(asked: str | None) -> str:
    """Return what is asked for; else what the user's config file says; else weights."""
    where = "--keep"
    if asked is None:
        asked, where = read_user_config().keep or WEIGHTS, f"{config_path()}: keep"
    if asked not in KEEP:
        raise unknown("way to keep networks", str(asked), KEEP, where)
    return asked


def can_become(now: str, wanted: str) -> bool:
    """Say whether a run that keeps `now` has all that `wanted` is made of."""
    return KEEP.index(wanted) >= KEEP.index(now)


def check_change(run: RunFolder, keep: str) -> None:
    """Refuse to change what an unfinished run keeps, or to make more of it than there is."""
    if run.summary() is None:
        raise UsageError(f"{run.path}: not finished, so it needs its checkpoints")
    if not can_become(now := kept_in(run), keep):
        raise UsageError(f"{run.path}: keeps {now}, from which {keep} cannot be made any more")


def available(folder: Path) -> list[int]:
    """Return the numbers of rounds that a checkpoint exists for, oldest first; damaged ones included."""
    return sorted(int(path.name[6:]) for path in folder.glob("round-*") if path.name[6:].isdigit())


def kept_in(run: RunFolder) -> str:
    """Return what a run keeps now: the most of what is there.

    Raises:
        DamagedRun: Its weights file cannot be read.
    """
    if available(run.checkpoints):
        return LAST
    return WeightsFile(run.weights).precision if run.weights.is_file() else NONE


def is_being_changed(run: RunFolder) -> bool:
    """Say whether a run was stopped between writing its weights file and removing its checkpoints."""
    return run.weights.is_file() and bool(available(run.checkpoints))


def remove_surplus(run: RunFolder, keep: str) -> None:
    """Remove what goes beyond `keep`; what `keep` stands for must be there. The run must be locked."""
    rounds = available(run.checkpoints)
    if keep == LAST:
        for number in rounds[:-1]:
            remove_folder(run.checkpoints / f"round-{number:05d}")
    else:
        remove_folder(run.checkpoints)
    if keep in (LAST, NONE):
        run.weights.unlink(missing_ok=True)


def drop_networks(folder: Path, keep: str) -> None:
    """Make a finished run keep `last` or `none`, for which nothing has to be written."""
    run = RunFolder(folder)
    with locked(folder):
        check_change(run, keep)
        remove_surplus(run, keep)


def size_on_disk(folder: Path) -> int:
    """Return the bytes of all files of a run; links are not followed."""
    return sum((Path(here) / name).lstat().st_size for here, _, names in os.walk(folder) for name in names)
