"""The result of a run, the same object for the command line and the Python API. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .folder import DamagedRun, RunFolder
from .records import Cost, Score, Summary


@dataclass(frozen=True)
class RunResult:
    """A finished run: where it lies and what it found."""

    folder: Path
    summary: Summary
    reused: bool  # it was finished before and has only been read

    @property
    def scores(self) -> list[Score]:
        """Return the last round's primary scores: client, split, task, metric, value and trivial value."""
        return [record for record in self.summary["scores"] if record["primary"]]

    def cost(self) -> Cost | dict[str, Any]:
        """Read what the run took; {} where that is lost."""
        try:
            return RunFolder(self.folder).cost() or {}
        except DamagedRun:  # the scores are all there
            return {}

    def value(self, client: str, task: str, split: str = "global") -> float | None:
        """Return one primary score."""
        for record in self.scores:
            if (record["client"], record["task"], record["split"]) == (client, task, split):
                return record["value"]
        raise KeyError(f"no score for client {client!r}, task {task!r}, split {split!r}")
