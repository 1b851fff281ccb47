"""What the text formats share: a cell's parts as printed, and the lines below a table."""

from __future__ import annotations

from collections.abc import Callable

from ..table import BEST, MISSING, SECOND, Cell, Column, Table


def clean(text: str) -> str:
    """Return one line without control characters: a title must not steer a terminal or break a row."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def cell_text(
    cell: Cell, column: Column, style: Callable[[str, str], str], plus_minus: str = " ± ", superscript: Callable = str
) -> str:
    """Return value, signs, spread, interval; `style(text, mark)` dresses the value alone, `superscript` the signs."""
    if cell.value is None:
        return style(cell.word or MISSING, "")
    text = style(cell.printed or column.text(cell.value), cell.mark)
    text += superscript(cell.signs) if cell.signs else ""
    if cell.std is not None:
        text += f"{plus_minus}{cell.std:.{column.digits}f}"
    if cell.interval is not None:
        low, high = (column.text(end) for end in cell.interval)
        text += f" [{low}, {high}]"
    return text


def has_marks(table: Table) -> bool:
    return any(cell.mark in (BEST, SECOND) for row in table.rows for cell in row.cells)
