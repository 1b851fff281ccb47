"""Figures of finished runs: one file per kind. Nothing of a kind is imported before it is asked for.

A kind is a file with `draw(collection, options, notes) -> Figure`, which adds to `notes` what a reader of the figure
must know. It may say `SHOWS_DELTA = True`, and in `reads(options)` what it needs of a run beside the summary, as
`collect` takes it. Its docstring begins with its line in `fmtlbench plot --help`.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ...base.errors import UsageError, unknown
from ...base.names import public_modules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..collect import Collection
    from ..delta import Delta

# In this order they are listed; a kind that is not here comes last.
ORDER = (
    "rounds", "clients", "sweep", "pareto", "hyperweights", "grouping", "updates", "cd", "pvalues", "distribution",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """What a figure can be asked for; each kind reads its own."""

    scenario: str | None = None
    split: str = "global"
    x: str = "rounds"
    task: str | None = None  # or all: a panel each
    dataset: str | None = None
    client: str | None = None
    option: str | None = None
    part: str | None = None  # of a figure of several: this one alone
    round: int | None = None
    updates: str = "encoder"
    normalise: bool = True
    method: str = "pca"
    cost: str = "seconds"
    alpha: float = 0.05
    correction: str = "holm"
    delta: Delta | None = None  # None: over columns, against the local runs


def find_kinds() -> dict[str, Path]:
    """Return the kinds of figures that there are, and the file of each."""
    return public_modules(__path__, ORDER)


def describe_kinds() -> dict[str, str]:
    """Return what each kind shows: the first line of its file's docstring."""
    lines = {}
    for kind, file in find_kinds().items():
        found = re.search(r'"""(.+?)\.?("""|\n)', file.read_text(encoding="utf-8"))
        lines[kind] = found[1] if found else ""
    return lines


def check_kind(kind: str) -> None:
    """Refuse what is no kind of figure."""
    if kind not in (kinds := find_kinds()):
        raise unknown("kind of figure", kind, kinds)


def make_figure(kind: str, collection: Collection, options: Options, notes: list[str]) -> Figure:
    """Draw a kind of figure from the runs; what a reader of it must know is added to `notes`."""
    check_kind(kind)
    if not collection.runs:
        raise UsageError("no finished run to draw")
    return _module(kind).draw(collection, options, notes)


def files_read(kind: str, options: Options) -> tuple[str, ...]:
    """Return what a figure reads of a run beside its summary, as `collect` takes it."""
    module = _module(kind)
    return module.reads(options) if hasattr(module, "reads") else ()


def shows_delta(kind: str) -> bool:
    """Return whether a figure shows Δm."""
    return getattr(_module(kind), "SHOWS_DELTA", False)


def _module(kind: str) -> ModuleType:
    return importlib.import_module(f".{kind}", __name__)


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    from ..figure_style import save

    return save(figure, path)
