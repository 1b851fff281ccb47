"""A `Table` as HTML: the content of the text formats, with what sorting and filtering need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..formats._words import cell_text, clean, has_marks
from ..table import Cell, Column, Row, Table
from .legend import explain_column
from .markup import Markup, fill

_HERE = "\0"  # `clean` lets no such character through, so it can mark where the value ends
Link = tuple[str, str, str]  # its text, where it leads, and what it is called aloud


def html_table(
    table: Table,
    address: Callable[[Row], str | None] = lambda row: None,
    last: tuple[str, Callable[[Row], Sequence[Link]]] | None = None,
    tools: bool = True,
    number: int = 1,
    lead: bool = False,
) -> Markup:
    """Make the table with its tools and notes.

    Args:
        table: What to show.
        address: Where a row's first label leads.
        last: Head of one more column, and the links in it.
        tools: With a filter, and boxes to hide columns.
        number: Of the table on its page: keeps ids apart.
        lead: The first column of numbers stays in view beside the labels when the table is scrolled.
    """
    headings = table.headings()
    return fill(
        "table.html",
        table=table,
        address=address,
        last=last,
        tools=tools,
        number=number,
        lead=lead,
        groups=[group if heading else None for group, (heading, span) in enumerate(headings) for _ in range(span)],
        headings=headings,
        letters=table.footnotes(),
        explain=explain_column,
        order=_order,
        print_cell=_print_cell,
        has_marks=has_marks(table),
    )


def notebook_table(table: Table) -> Markup:
    """Make the table for a page that has neither our style nor our script."""
    return fill("notebook.html", table=table, grid=html_table(table, tools=False))


def _order(table: Table, place: int) -> str:
    """Say how a click sorts a column: the best first; one that has words only among numbers, as text."""
    if all(row.cells[place].value is None for row in table.rows):
        return "text"
    return "up" if table.columns[place].higher_is_better is False else "down"


def _print_cell(cell: Cell, column: Column) -> tuple[str, str]:
    """Return a cell's value, and what is said behind it."""
    value, _, spread = cell_text(cell, column, lambda text, mark: clean(text) + _HERE).partition(_HERE)
    return value, spread.strip()
