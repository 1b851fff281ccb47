"""Find the real datasets: below --data-root, else $FMTLBENCH_DATA, else the root in the user's config file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...base.errors import FmtlbenchError, unknown
from ...base.settings_file import config_path, read_user_config

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._info import DatasetInfo

VARIABLE = "FMTLBENCH_DATA"


class RootSetting(NamedTuple):
    """One of the three settings that can name a data root; `path` is None if it is not set."""

    origin: str
    path: Path | None


def root_settings(data_root: str | Path | None) -> list[RootSetting]:
    """Return the three settings by falling priority; relative paths are taken from the working directory."""
    variable = os.environ.get(VARIABLE)
    return [
        RootSetting("--data-root", _make_absolute(data_root)),
        RootSetting(f"${VARIABLE}", _make_absolute(variable)),
        RootSetting(f"data_root in {config_path()}", _make_absolute(read_user_config().data_root)),
    ]


def find_archive(
    info: DatasetInfo, data_root: str | Path | None = None, layout: str | None = None
) -> tuple[Path | None, type[Dataset]]:
    """Return the folder of a dataset's archive and the reader of its layout.

    Only the first setting that names a folder is searched, so that data never come from an unexpected place.
    """
    readers = _choose_readers(info, layout)
    looked = root_settings(data_root)
    chosen = next((place for place in looked if place.path), None)
    if not readers[0].archive:  # such a reader finds its own files
        return (chosen.path if chosen else None), readers[0]
    if chosen:
        for reader in readers:
            if (chosen.path / reader.archive).is_dir():
                return chosen.path / reader.archive, reader
        for reader in readers:
            if reader.marks and all(next(chosen.path.glob(mark), None) for mark in reader.marks):
                return chosen.path, reader
    raise FmtlbenchError(_describe_search(info, readers, looked, chosen))


def _choose_readers(info: DatasetInfo, layout: str | None) -> tuple[type[Dataset], ...]:
    if layout is None:
        return info.readers
    by_name = {reader.archive: reader for reader in info.readers}
    if layout not in by_name:
        raise unknown(f"layout of {info.name}", layout, by_name, "--layout")
    return (by_name[layout],)


def _make_absolute(path: str | Path | None) -> Path | None:
    return Path(path).expanduser().absolute() if path else None


def _describe_search(
    info: DatasetInfo, readers: tuple[type[Dataset], ...], looked: list[RootSetting], chosen: RootSetting | None
) -> str:
    names = " or ".join(f"{reader.archive}/" for reader in readers)
    said = []
    for place in looked:
        if place.path is None:
            said.append(f"{place.origin}: not set")
        elif place is not chosen:
            said.append(f"{place.origin}: {place.path}, not searched because of {chosen.origin}")
        elif place.path.is_dir():
            said.append(f"{place.origin}: {place.path} neither holds {names} nor is such a folder itself")
        else:
            said.append(f"{place.origin}: {place.path} is not a folder")
    sources = ", or ".join(reader.distributed for reader in readers if reader.distributed)
    unpack = f"Unpack {sources}, and name" if sources else "Name"
    return (
        f"dataset {info.name!r}: no {names} found. Looked at {'; '.join(said)}. {unpack} the folder that holds it. "
        "The embedded data need no files: --preset nano"
    )
