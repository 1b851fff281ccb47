"""The result of a run, the same object for the command line and the Python API. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from ..base.stored import DamagedRun
from .folder import RunFolder
from .records import Cost, Score, Summary
from .summary import title_method


@dataclass(frozen=True, repr=False)
class RunResult:
    """A finished run: where it lies and what it found."""

    COLUMNS: ClassVar = ("client", "dataset", "split", "task", "metric", "better", "value", "trivial")  # of `rows`

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

    def rows(self) -> list[tuple[str, ...]]:
        """Return the scores as people read them, in the order of `COLUMNS`."""
        rows: list[tuple[str, ...]] = []
        for r in self.scores:
            better = "up" if r["higher_is_better"] else "down"
            values = (format_value(r["value"], r["unit"]), format_value(r["trivial"], r["unit"]))
            rows.append((r["client"], r["dataset"], r["split"], r["task"], r["metric"], better, *values))
        return rows

    def _title(self) -> str:
        s = self.summary
        return f"{title_method(s)} on {s['scenario']}, preset {s['preset']}, seed {s['seed']}"

    def __repr__(self) -> str:
        lines = [f"{self._title()}: {self.folder}"]
        widths = [max(map(len, column)) for column in zip(self.COLUMNS, *self.rows())]
        for row in (self.COLUMNS, *self.rows()):
            lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the scores as a notebook shows them."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.COLUMNS)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows())
        return (
            f"<table><caption>{escape(self._title())}<br><code>{escape(str(self.folder))}</code></caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


def format_value(value: float | None, unit: str | None) -> str:
    """Format a value as the papers print it: metres with four decimals, all else with two."""
    if value is None:
        return "–"
    return f"{value:.4f}" if unit == "m" else f"{value:.2f}"
