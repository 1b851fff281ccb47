"""One `Table` value feeds every exporter: columns with direction and digits, cells with spread, marks and notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

MISSING = "–"
BEST, SECOND = "best", "second"


@dataclass(frozen=True)
class Column:
    """One column of numbers. `key` is its machine name; columns with one `heading` stand under it together."""

    key: str
    title: str
    metric: str = ""
    heading: str = ""
    digits: int = 2
    higher_is_better: bool | None = None  # None: not compared, so no arrow and no marks
    signed: bool = False  # a plus before gains

    @property
    def arrow(self) -> str:
        return {True: "↑", False: "↓", None: ""}[self.higher_is_better]

    def text(self, number: float) -> str:
        """Return a value as printed; zero has no sign."""
        text = f"{number:{'+' if self.signed else ''}.{self.digits}f}"
        return text.lstrip("+-") if float(text) == 0 else text


@dataclass(frozen=True)
class Cell:
    """One value with what is known about its spread, or a word in its place. All empty: missing."""

    value: float | None = None
    std: float | None = None
    n: int | None = None
    interval: tuple[float, float] | None = None
    printed: str = ""  # a published number as the paper prints it
    word: str = ""
    note: str = ""
    mark: str = ""
    signs: str = ""  # stand behind the value; the table's notes say what they mean

    @property
    def says_something(self) -> bool:
        return self.value is not None or bool(self.word)


@dataclass(frozen=True)
class Row:
    """A method, or whatever the rows of a table are; `labels` fill the table's `heads`."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Everything an exporter needs. `name` is for files and labels, `caption` says the setting."""

    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        from .formats import render

        return render([self], "table")

    def _repr_html_(self) -> str:
        """Return the table as a notebook shows it."""
        from .site.tables import notebook_table

        return notebook_table(self)

    def footnotes(self) -> dict[str, str]:
        """Note → its letter, in reading order."""
        letters: dict[str, str] = {}
        for row in self.rows:
            for note in (row.note, *(cell.note for cell in row.cells)):
                if note and note not in letters:
                    letters[note] = _letter(len(letters))
        return letters

    def headings(self) -> list[tuple[str, int]]:
        """Join neighbouring columns under one heading: (heading, how many), in order."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.heading:
                spans[-1] = (column.heading, spans[-1][1] + 1)
            else:
                spans.append((column.heading, 1))
        return spans

    def column(self, key: str) -> int | None:
        """Return the place of the column with this machine name; None where there is none."""
        return next((place for place, column in enumerate(self.columns) if column.key == key), None)

    def with_first(self, key: str) -> Table:
        """Return the table with one column before the others; unchanged where there is no such column."""
        at = self.column(key)
        if at is None:
            return self
        order = [at, *(place for place in range(len(self.columns)) if place != at)]
        rows = tuple(replace(row, cells=tuple(row.cells[place] for place in order)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in order), rows=rows)

    def marked(self, block: int = 0) -> Table:
        """Mark best and second best of every column with a direction, compared as printed, so that ties share a mark.

        Rows are compared with those that have the same first `block` labels.
        """
        blocks: dict[tuple[str, ...], list[int]] = {}
        for r, row in enumerate(self.rows):
            blocks.setdefault(row.labels[:block], []).append(r)
        rows = list(self.rows)
        for members in blocks.values():
            marks = [_marks(c, [self.rows[r].cells[i] for r in members]) for i, c in enumerate(self.columns)]
            for place, r in enumerate(members):
                cells = tuple(replace(cell, mark=marks[i][place]) for i, cell in enumerate(rows[r].cells))
                rows[r] = replace(rows[r], cells=cells)
        return replace(self, rows=tuple(rows))


class Tables(list[Table]):
    """Tables that are printed, and shown in a notebook, as such."""

    def __repr__(self) -> str:
        from .formats import render

        return render(self, "table")

    def _repr_html_(self) -> str:
        """Return the tables as a notebook shows them, one after the other."""
        return "\n".join(table._repr_html_() for table in self)


def _marks(column: Column, cells: Sequence[Cell]) -> list[str]:
    printed = [None if c.value is None else float(c.printed or column.text(c.value)) for c in cells]
    known = [number for number in printed if number is not None]
    if column.higher_is_better is None or len(known) < 2:  # alone is not best
        return [""] * len(cells)
    ranked = sorted(set(known), reverse=column.higher_is_better)
    names = dict(zip(ranked, (BEST, SECOND)))
    return [names.get(number, "") if number is not None else "" for number in printed]


def mean_cell(values: Sequence[float | None], over: str = "seeds") -> Cell:
    """Mean and, from two values on, the sample standard deviation (n − 1). None among them: not counted, and noted."""
    known = [float(v) for v in values if v is not None and not math.isnan(v)]
    if not known:
        return Cell(note="no value was measured" if len(values) else "")
    mean = math.fsum(known) / len(known)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1)) if len(known) > 1 else None
    note = (
        "" if len(known) == len(values) else f"mean of {len(known)} of {len(values)} {over}; the others have no value"
    )
    return Cell(mean, spread, len(known), note=note)


def _letter(index: int) -> str:
    """Return a footnote's letter: a … z, then aa, ab and so on."""
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(ord("a") + rest) + text
    return text
