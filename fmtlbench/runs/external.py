"""Folders of scores of predictions that were made elsewhere: a summary, where they came from, and no training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..base.errors import FmtlbenchError, one_line
from ..base.files import replace_folder, sha256_file, write_json, write_text
from ..base.names import check_name
from ..base.stored import FORMAT
from . import file_names
from .folder import with_format
from .records import External, Summary
from .sums_file import ScoreSums, write_sums


@dataclass(frozen=True)
class Listing:
    """Which files predictions were read from: path below their folder → sha256."""

    hashes: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, files: list[Path]) -> Listing:
        """Hash the files."""
        return cls({file.relative_to(folder).as_posix(): sha256_file(file) for file in sorted(files)})

    @property
    def text(self) -> str:
        """Return the listing as `sha256sum --check` reads it."""
        return "".join(f"{digest}  {one_line(name)}\n" for name, digest in self.hashes.items())

    @property
    def digest(self) -> str:
        """Return one hash of all files and their names."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def describe_external(summary: Mapping[str, object]) -> str:
    """Return in one line where the predictions of a summary came from; "" for a run of our own."""
    told = cast("External | None", summary.get("external"))
    if told is None:
        return ""
    by = f" by {told['by']}" if told.get("by") else ""
    doubts = f"; scored though {'; '.join(told['doubts'])}" if told.get("doubts") else ""
    return (
        f"external predictions{by}, not trained here: {told['files']} files (sha256 {told['sha256'][:8]}), "
        f"scored {told['scored'][:10]}{doubts}"
    )


def write_external(out: Path, summary: Summary, listing: Listing, sums: ScoreSums, config_text: str | None) -> Path:
    """Write the folder of external scores below `out`, where leaderboards find it; return it.

    The same predictions in the same setting replace what was written of them before.
    """
    name = check_name(summary["algorithm"], "method", "--name")
    identity = hashlib.sha256(f"{summary.get('setting')} {summary['seed']} {listing.digest}".encode()).hexdigest()
    leaf = f"{summary['preset']}-{summary['data']}-s{summary['seed']}-{identity[:8]}"
    folder = Path(out) / summary["scenario"] / name / leaf
    try:
        with replace_folder(folder) as new:
            if config_text is not None:
                write_text(new / file_names.CONFIG, f"format: {FORMAT}\n{config_text}")
            write_text(new / file_names.LISTING, listing.text)
            write_sums(new / file_names.SUMS, sums)
            write_json(new / file_names.SUMMARY, with_format(summary))
    except OSError as error:
        raise FmtlbenchError(f"could not write {folder}: {error.strerror or error}") from None
    return folder
