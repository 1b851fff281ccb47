"""Write folders of predictions that `fmtlbench evaluate` reads: <client>/<task>/<image id>.png, or .npy.

The format of a file depends on the task's kind of labels, see `fmtlbench.tasks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..base.errors import FmtlbenchError, UsageError
from ..base.files import check_folder, refuse_strangers, replace_folder
from ..runs.file_names import EXAMPLES

ABOUT = "predictions.json"  # in every folder of predictions: which run, round and split


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds anything but predictions, so that no other files are deleted."""
    if not folder.is_dir():
        check_folder(folder)
        return
    if any(folder.iterdir()) and not (folder / ABOUT).is_file():
        raise UsageError(f"{folder}: holds other files than predictions; choose an empty or a new folder")
    refuse_strangers(folder, _is_prediction, "the predictions")


def _is_prediction(name: str) -> bool:
    """Say whether a file lies where predictions do: <client>/<task>/<image>, or is about them."""
    return name == ABOUT or name.count("/") == 2 or name.startswith(f"{EXAMPLES}/")


@contextmanager
def replace_predictions(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill with predictions; it replaces `folder` at the end of the block.

    Raises:
        UsageError: The folder holds anything but predictions.
        FmtlbenchError: The folder could not be written.
    """
    check_replaceable(folder)
    try:
        with replace_folder(folder) as temporary:
            yield temporary
    except OSError as error:
        raise FmtlbenchError(f"could not write predictions to {folder}: {error.strerror or error}") from None
