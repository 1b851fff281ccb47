"""A `Table` as HTML: the content of the text formats, with what sorting and filtering need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..formats._words import cell_text, has_marks
from ..table import BEST, SECOND, Cell, Column, Row, Table
from .legend import explain_column
from .markup import Html, escape, join, tag

_DRESS = {BEST: "b", SECOND: "u"}
_HERE = "\0"  # `escape` lets no such character through, so it can mark where the value ends


def html_table(
    table: Table,
    address: Callable[[Row], str | None] = lambda row: None,
    last: tuple[str, Callable[[Row], Any]] | None = None,
    tools: bool = True,
    number: int = 1,
    lead: bool = False,
) -> Html:
    """Make the table with its tools and notes.

    Args:
        table: What to show.
        address: Where a row's first label leads.
        last: Head and content of one more column.
        tools: With a filter, and boxes to hide columns.
        number: Of the table on its page: keeps ids apart.
        lead: The first column of numbers stays in view beside the labels when the table is scrolled.
    """
    letters = table.footnotes()

    def refer(note: str) -> Html | None:
        if not note:
            return None
        return tag("sup", tag("a", letters[note], href=f"#t{number}-{letters[note]}"))

    groups = _groups(table)
    body = []
    for row in table.rows:
        to = address(row)
        first = tag("a", row.labels[0], href=to) if to else escape(row.labels[0])
        cells = [tag("th", first, refer(row.note), scope="row")]
        cells += [tag("td", label) for label in row.labels[1:]]
        for place, (column, cell, group) in enumerate(zip(table.columns, row.cells, groups)):
            kind = _kind(lead and place == 0)
            attributes = {"class_": kind, "data_group": group, "data_value": _sortable(cell)}
            cells.append(tag("td", _value(cell, column), refer(cell.note), **attributes))
        if last:
            cells.append(tag("td", last[1](row), class_="seeds"))
        body.append(tag("tr", cells))
    parts = [
        tag("caption", table.title, class_="out"),
        tag("thead", _head(table, groups, last[0] if last else None, lead)),
        tag("tbody", join(body, "\n")),
    ]
    grid = tag("table", parts, class_="grid", id=f"t{number}")
    frame = tag("div", grid, class_="frame", tabindex="0", role="region", aria_label=table.title)
    return join([_tools(table, number) if tools else None, frame, _notes(table, letters, number)], "\n")


def notebook_table(table: Table) -> Html:
    """Make the table for a page that has neither our style nor our script."""
    grid = html_table(table, tools=False)
    return tag("div", tag("p", tag("b", table.title), tag("br"), tag("small", table.caption)), grid)


def _value(cell: Cell, column: Column) -> Html:
    def dress(text: str, mark: str) -> str:
        return (tag(_DRESS[mark], text) if mark in _DRESS else escape(text)) + _HERE

    value, _, spread = cell_text(cell, column, dress).partition(_HERE)
    return join([Html(value), tag("span", spread.strip(), class_="spread") if spread else None], " ")


def _sortable(cell: Cell) -> str | None:
    return None if cell.value is None else f"{cell.value:.12g}"  # the last bits differ from machine to machine


def _groups(table: Table) -> list[str | None]:
    """Return for every column the number of its heading; columns without one cannot be hidden."""
    groups: list[str | None] = []
    for number, (heading, span) in enumerate(table.headings()):
        groups += [str(number) if heading else None] * span
    return groups


def _kind(leads: bool) -> str:
    return "num lead" if leads else "num"


def _head(table: Table, groups: list[str | None], last: str | None, lead: bool) -> Html:
    rows = []
    if any(c.heading for c in table.columns):
        spans = [tag("td", colspan=len(table.heads))]
        for number, (heading, span) in enumerate(table.headings()):
            kind = {"colspan": span, "data_group": number, "scope": "colgroup", "class_": "group"}
            empty = tag("td", colspan=span, class_="lead" if lead and not number else None)
            spans.append(tag("th", heading, **kind) if heading else empty)
        if last:
            spans.append(tag("td"))
        rows.append(tag("tr", spans))
    heads = [tag("th", head, scope="col", data_sort="text") for head in table.heads]
    for i, (column, group) in enumerate(zip(table.columns, groups)):
        under = f"{column.metric} {column.arrow}".strip()
        meaning = explain_column(column) or None
        metric = tag("span", under, class_="metric") if under else None
        order = "up" if column.higher_is_better is False else "down"  # the best first
        if all(row.cells[i].value is None for row in table.rows):  # words only; among numbers they count as missing
            order = "text"
        kind = {"scope": "col", "class_": _kind(lead and i == 0), "data_sort": order, "data_group": group}
        kind["title"] = meaning
        heads.append(tag("th", join([column.title, metric], " "), **kind))
    if last:
        heads.append(tag("th", last, scope="col"))
    rows.append(tag("tr", heads))
    return join(rows, "\n")


def _tools(table: Table, number: int) -> Html:
    """Make the tools, hidden until the script that makes them work has come."""
    name = table.heads[0].lower()
    find = tag("label", f"Filter by {name} ", tag("input", type="search", data_filter=f"t{number}", autocomplete="off"))
    boxes = [
        tag("label", tag("input", type="checkbox", checked=True, data_table=f"t{number}", value=place), " ", heading)
        for place, (heading, _) in enumerate(table.headings())
        if heading
    ]
    shown = tag("fieldset", tag("legend", "Columns"), boxes) if len(boxes) > 1 else None
    count = tag("output", "", data_count=f"t{number}", aria_live="polite")
    return tag("div", find, count, shown, class_="tools", hidden=True)


def _notes(table: Table, letters: dict[str, str], number: int) -> Html | None:
    notes = []
    if has_marks(table):
        notes.append(tag("li", tag("b", "best"), ", ", tag("u", "second"), ", compared as printed"))
    notes += [
        tag("li", tag("sup", letter), " ", note, id=f"t{number}-{letter}", class_="foot")
        for note, letter in letters.items()
    ]
    notes += [tag("li", note) for note in table.notes]
    return tag("ul", join(notes, "\n"), class_="notes") if notes else None
