"""Folders of predictions that `fmtlbench evaluate` reads: <client>/<task>/<image id>.png, or .npy.

What a file holds is a matter of the task's kind of labels, see `fmtlbench.kinds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FmtlbenchError, UsageError
from ..files import check_folder, replace_folder

ABOUT = "predictions.json"  # in every folder of predictions: which run, round and split


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds anything but predictions: it is not ours to replace."""
    if folder.is_dir():
        if any(folder.iterdir()) and not (folder / ABOUT).is_file():
            raise UsageError(f"{folder}: holds other files than predictions; choose an empty or a new folder")
    else:
        check_folder(folder)


@contextmanager
def replace_predictions(folder: Path) -> Iterator[Path]:
    """Give a folder to fill with predictions, which then takes the place of `folder` as a whole.

    Raises:
        UsageError: The folder holds anything but predictions.
        FmtlbenchError: The disk refused.
    """
    check_replaceable(folder)
    try:
        with replace_folder(folder) as temporary:
            yield temporary
    except OSError as error:
        raise FmtlbenchError(f"could not write predictions to {folder}: {error.strerror or error}") from None
