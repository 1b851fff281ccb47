"""Markdown tables: best in bold, second underlined."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..table import BEST, SECOND, Table
from ._words import cell_text, clean, has_marks

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render(tables: Sequence[Table]) -> str:
    return "\n".join(map(_table, tables))


def _table(table: Table) -> str:
    letters = table.footnotes()

    def mark(note: str) -> str:
        return f"<sup>{letters[note]}</sup>" if note else ""

    heads = [escape(head) for head in table.heads]
    for c in table.columns:
        heads.append(escape(" ".join(word for word in (c.heading, c.title, c.metric, c.arrow) if word)))
    lines = [f"### {escape(table.title)}", "", escape(table.caption), ""]
    lines.append(_line(heads))
    lines.append(_line([":---"] * len(table.heads) + ["---:"] * len(table.columns)))
    for row in table.rows:
        first = escape(row.labels[0]) + mark(row.note)
        cells = [cell_text(cell, c, _dress) + mark(cell.note) for c, cell in zip(table.columns, row.cells)]
        lines.append(_line([first, *map(escape, row.labels[1:]), *cells]))
    notes = ["**best**, <u>second</u>, compared as printed"] if has_marks(table) else []
    notes += [f"<sup>{letter}</sup> {escape(note)}" for note, letter in letters.items()]
    notes += map(escape, table.notes)
    lines += ["", *(f"- {note}" for note in notes)] if notes else []
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _dress(text: str, mark: str) -> str:
    return {BEST: f"**{text}**", SECOND: f"<u>{text}</u>"}.get(mark, escape(text))


def escape(text: str) -> str:
    """Return text that Markdown and HTML leave alone, on one line."""
    text = re.sub(r"[&<>]", lambda found: _ENTITIES[found[0]], clean(text))
    return re.sub(r"([\\`*_|\[\]#~])", r"\\\1", text)
