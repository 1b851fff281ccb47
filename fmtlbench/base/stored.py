"""The form of stored files: each carries the number of its format; one that cannot be read is damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .errors import FmtlbenchError

FORMAT = 2
FIRST_FORMAT = 1  # as FORMAT, but its files do not say so


class DamagedRun(FmtlbenchError):
    """A file of a run folder that cannot be read as what it should be; `reason` begins with the file's name."""

    advice = "; bring the file back, or make the run again (fmtlbench run --fresh)"

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder}{os.sep}{reason}")
        self.folder, self.reason = folder, reason


class NewerFormat(DamagedRun):
    """A file that a later version wrote in a form this one does not know."""

    advice = ""


def check_format(folder: Path, name: str, number: Any) -> None:
    """Refuse a file whose format this version does not know."""
    if type(number) is int and number > FORMAT:
        raise NewerFormat(folder, f"{name} has format {number}, newer than this version's {FORMAT}; update fmtlbench")
    if type(number) is not int or number < FIRST_FORMAT:
        raise DamagedRun(folder, f"{name} has format {number!r}, expected a number from {FIRST_FORMAT} to {FORMAT}")
