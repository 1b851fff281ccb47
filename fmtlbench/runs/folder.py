"""Reading a run folder: one method per file. Nothing is written here, and nothing is filled in."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FmtlbenchError
from ..yamlfile import load_yaml
from . import layout

if TYPE_CHECKING:
    from ..config import RunConfig


class DamagedRun(FmtlbenchError):
    """A file of a run folder that cannot be read as what it should be; `reason` begins with the file's name."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder}{os.sep}{reason}")
        self.folder, self.reason = folder, reason


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, finished or not. Files that are not there are None or have no rows."""

    path: Path

    def summary(self) -> dict[str, Any] | None:
        """Read what a finished run found; None: it is not finished."""
        return read_record(self.path / layout.SUMMARY)

    def cost(self) -> dict[str, Any] | None:
        """Read what the run took."""
        return read_record(self.path / layout.COST)

    def manifest(self) -> dict[str, Any] | None:
        """Read where the numbers came from."""
        return read_record(self.path / layout.MANIFEST)

    def rounds(self) -> list[dict[str, Any]]:
        """Read what every round found."""
        return read_rows(self.path / layout.ROUNDS)

    def timing(self) -> list[dict[str, Any]]:
        """Read what every round took."""
        return read_rows(self.path / layout.TIMING)

    def repeated(self) -> list[dict[str, Any]]:
        """Read what rounds took that had to be made again."""
        return read_rows(self.path / layout.REPEATED)

    def config(self) -> dict[str, Any]:
        """Read the config as nested plain values.

        Raises:
            UsageError: There is none, or it is no YAML.
        """
        tree, _ = load_yaml(self.path / layout.CONFIG)
        return tree

    def run_config(self) -> RunConfig:
        """Build the run's config from its file.

        Raises:
            UsageError: There is none, or not one that this version understands; the line is named.
        """
        from ..config import RunConfig

        return RunConfig.from_tree(*load_yaml(self.path / layout.CONFIG))

    def config_text(self) -> str:
        """Read the config as it is written; OSError where it is lost."""
        return (self.path / layout.CONFIG).read_text(encoding="utf-8", errors="replace")

    def has_config(self) -> bool:
        """Whether there is a config, so a run."""
        return (self.path / layout.CONFIG).is_file()

    def is_finished(self) -> bool:
        """Whether the folder holds a result by now."""
        return (self.path / layout.SUMMARY).exists()

    @property
    def checkpoints(self) -> Path:
        """Where the run keeps its checkpoints."""
        return self.path / layout.CHECKPOINTS

    @property
    def lock(self) -> Path:
        """The file that a process holds locked while it works on the run."""
        return self.path / layout.LOCK

    def predictions(self, split: str) -> Path:
        """Where the run keeps its predictions for a split."""
        return self.path / (layout.PREDICTIONS if split == "global" else f"{layout.PREDICTIONS}-{split}")


def read_record(file: Path) -> dict[str, Any] | None:
    """Read a .json file that holds one object; None if there is none."""
    try:
        value = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise DamagedRun(file.parent, f"{file.name} holds {type(value).__name__}, expected an object")
    return value


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Read the complete lines of a .jsonl file; a last line cut short by a kill is not one. No file: no rows."""
    try:
        lines = file.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise DamagedRun(file.parent, f"{file.name} cannot be read: {error}") from None
