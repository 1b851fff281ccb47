"""Folders of predictions that `fmtlbench evaluate` reads: <client>/<task>/<image id>.png, or .npy.

What a file holds is a matter of the task's kind of labels, see `fmtlbench.kinds`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..cache_folder import sweep
from ..errors import FmtlbenchError, UsageError
from ..files import check_folder, sync_folder

ABOUT = "predictions.json"  # in every folder of predictions: which run, round and split


def check_replaceable(folder: Path) -> None:
    """A folder that holds anything but predictions is not ours to replace."""
    if folder.is_dir():
        if any(folder.iterdir()) and not (folder / ABOUT).is_file():
            raise UsageError(f"{folder}: holds other files than predictions; choose an empty or a new folder")
    else:
        check_folder(folder)


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """A temporary sibling to fill, which then takes the place of `folder`: all of the old one stays, or all goes."""
    folder = Path(folder).resolve()  # what a link points at is replaced, the link stays
    partial, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{word}") for word in ("partial", "old"))
    try:
        _tidy(folder)
        check_replaceable(folder)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        sync_folder(partial)
        if folder.exists():
            folder.rename(old)
        try:
            partial.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
        sync_folder(folder.parent)
    except OSError as error:
        raise FmtlbenchError(f"could not write predictions to {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)


def _tidy(folder: Path) -> None:
    """What a process that was killed has left: between its two renames the old predictions had no name of theirs."""
    left = sorted(folder.parent.glob(f".{folder.name}.*.old"))
    if left and not folder.exists():
        left.pop().rename(folder)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    sweep(folder.parent, f".{folder.name}.*.partial")
