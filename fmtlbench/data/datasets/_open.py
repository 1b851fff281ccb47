"""Open a split of a dataset: find its files, choose the reader of their layout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import FmtlbenchError, describe_error

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._info import DatasetInfo


def open_split(
    info: DatasetInfo, split: str, data_root: str | Path | None = None, layout: str | None = None, **options: Any
) -> Dataset:
    """Find and open a split of a dataset; refuse it if files are missing.

    Args:
        info: The dataset.
        split: "train" or "test".
        data_root: The value of --data-root; without it $FMTLBENCH_DATA or the user's config file decides.
        layout: The name of an archive, to choose one of several.
        options: Arguments of `Dataset`: size, tasks, limit, purpose, complete, progress, resize, …
    """
    try:
        return info.readers[0].open(info, split, data_root, layout, **options)
    except SystemExit as error:  # of a user's reader, which must not end the command as if all were well
        raise FmtlbenchError(f"{info.name} {split}: opening it failed: {describe_error(error)}") from error
