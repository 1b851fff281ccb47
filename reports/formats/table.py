"""Tables for people at a terminal; a wide one is cut between columns and goes on below."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from ..table import BEST, SECOND, Row, Table
from ._words import cell_text, clean, has_marks

_CODES = {BEST: "\x1b[1m", SECOND: "\x1b[4m"}
_GAP = "  "


def render(tables: Sequence[Table], width: int | None = None, styled: bool = False) -> str:
    """Return the tables for a terminal of `width` (None: never cut); unless `styled`, * and ' mark the best."""
    return "\n".join(_table(table, width, styled) for table in tables)


def _table(table: Table, width: int | None, styled: bool) -> str:
    letters = table.footnotes()
    title = clean(table.title)
    lines = [f"{_CODES[BEST]}{title}\x1b[0m" if styled else title, *_wrapped(table.caption, width), ""]
    parts = _parts(table, letters, width, styled)
    if len(parts) > 1:  # what tables are read for comes first, not behind the cut
        parts = _parts(table.with_first("delta_m"), letters, width, styled)
    for part in parts:
        lines += [*_grid(part, letters, styled), ""]
    legend = "bold: best, underlined: second" if styled else "*: best, ': second"
    notes = [f"{legend}, compared as printed"] if has_marks(table) else []
    notes += [f"[{letter}] {note}" for note, letter in letters.items()]
    for note in [*notes, *table.notes]:
        lines += _wrapped(note, width)
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(text: str, width: int | None) -> list[str]:
    text = clean(text)
    return textwrap.wrap(text, width, subsequent_indent="  ") if width and width > 20 else [text]


def _body(table: Table, letters: dict[str, str], styled: bool) -> list[list[str]]:
    """Return the rows as text, labels first."""

    def refer(note: str) -> str:
        return f" [{letters[note]}]" if note else ""

    def dress(text: str, mark: str) -> str:
        if styled:
            return f"{_CODES[mark]}{text}\x1b[0m" if mark else clean(text)
        return clean(text) + {BEST: "*", SECOND: "'"}.get(mark, "")

    body = []
    for row in table.rows:
        labels = [clean(label) for label in row.labels]
        labels[0] += refer(row.note)
        cells = [cell_text(cell, c, dress) + refer(cell.note) for c, cell in zip(table.columns, row.cells)]
        body.append([*labels, *cells])
    return body


def _head(table: Table) -> list[list[str]]:
    """Return two lines: titles, then metrics with arrows; one where no column has either."""
    titles = [*map(clean, table.heads), *(clean(c.title) for c in table.columns)]
    under = [*[""] * len(table.heads), *(clean(f"{c.metric} {c.arrow}") for c in table.columns)]
    return [titles, under] if any(under) else [titles]


def _widths(table: Table, letters: dict[str, str], styled: bool) -> list[int]:
    columns = zip(*_head(table), *_body(table, letters, styled))
    return _with_headings([max(map(_len, column)) for column in columns], table)


def _with_headings(widths: list[int], table: Table) -> list[int]:
    widths, at = list(widths), len(table.heads)
    for heading, span in table.headings():  # the last column of a span makes room for a long heading
        have = sum(widths[at : at + span]) + len(_GAP) * (span - 1)
        widths[at + span - 1] += max(0, _len(clean(heading)) - have)
        at += span
    return widths


def _grid(table: Table, letters: dict[str, str], styled: bool) -> list[str]:
    widths, labels = _widths(table, letters, styled), len(table.heads)
    lines = []
    if any(c.heading for c in table.columns):
        names, at = [_GAP.join(" " * w for w in widths[:labels])], labels
        rules = list(names)
        for heading, span in table.headings():
            room = sum(widths[at : at + span]) + len(_GAP) * (span - 1)
            text = clean(heading)
            left = (room - _len(text)) // 2
            names.append(" " * left + text + " " * (room - left - _len(text)))
            rules.append(("─" if heading else " ") * room)
            at += span
        lines += [_GAP.join(names), _GAP.join(rules)]
    for line in _head(table):
        lines.append(_aligned(line, widths, labels))
    lines.append("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)))
    lines += [_aligned(line, widths, labels) for line in _body(table, letters, styled)]
    return [line.rstrip() for line in lines]


def _aligned(line: list[str], widths: list[int], labels: int) -> str:
    padded = []
    for i, (text, width) in enumerate(zip(line, widths)):
        pad = " " * (width - _len(text))
        padded.append(text + pad if i < labels else pad + text)
    return _GAP.join(padded)


def _parts(table: Table, letters: dict[str, str], width: int | None, styled: bool) -> list[Table]:
    """Split into pieces that fit the width, as far as one column beside the labels does."""
    labels, free = len(table.heads), replace(table, columns=tuple(replace(c, heading="") for c in table.columns))
    own = _widths(free, letters, styled)

    def fits(piece: list[int]) -> bool:
        """Say whether columns fit, with their headings: a span that is cut may have too few for its own."""
        widths = [*own[:labels], *(own[labels + i] for i in piece)]
        widths = _with_headings(widths, replace(table, columns=tuple(table.columns[i] for i in piece), rows=()))
        return sum(widths) + len(_GAP) * (len(widths) - 1) <= (width or 10**9)

    pieces: list[list[int]] = [[]]
    for i in range(len(table.columns)):
        if pieces[-1] and not fits([*pieces[-1], i]):
            pieces.append([])
        pieces[-1].append(i)
    return [
        replace(
            table,
            columns=tuple(table.columns[i] for i in piece),
            rows=tuple(Row(row.labels, tuple(row.cells[i] for i in piece), row.note) for row in table.rows),
        )
        for piece in pieces
    ]


def _len(text: str) -> int:
    """Return the width in terminal cells, not characters; colour codes take none."""
    from rich.cells import cell_len

    return cell_len(re.sub(r"\x1b\[\d*m", "", text))
