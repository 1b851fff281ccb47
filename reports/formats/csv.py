"""Comma-separated values: one header row, numbers as they are, nothing rounded."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from ..code_notes import CodeNote
from ..table import Cell, Column, Table
from ._words import clean

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet calculates cells that begin so


def render(tables: Sequence[Table], spreadsheet: bool = False) -> str:
    """Return one line per row of every table; a table without some column leaves it empty.

    For a `spreadsheet`, text that it would take for a formula is quoted.
    """
    records = [record for table in tables for record in _records(table)]
    if spreadsheet:
        records = [{quote_formula(name): quote_formula(value) for name, value in r.items()} for r in records]
    names = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def quote_formula(value: Any) -> Any:
    """Return text that a spreadsheet shows as it is: before what it would calculate stands an apostrophe."""
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value  # a number


def _records(table: Table) -> list[dict[str, Any]]:
    heads = [head.lower() for head in table.heads]
    spreads = {c.key: _spreads(c, [row.cells[i] for row in table.rows]) for i, c in enumerate(table.columns)}
    signed = {c.key for i, c in enumerate(table.columns) if any(row.cells[i].signs for row in table.rows)}
    about_code = "; ".join(clean(note) for note in table.notes if isinstance(note, CodeNote))
    records = []
    for row in table.rows:
        record: dict[str, Any] = {"table": table.name, **dict(zip(heads, map(clean, row.labels)))}
        for column, cell in zip(table.columns, row.cells):
            record[column.key] = cell.word or cell.printed or _number(cell.value)
            low, high = cell.interval or (None, None)
            parts = {"std": cell.std, "low": low, "high": high}
            record |= {f"{column.key}_{name}": _number(parts[name]) for name in spreads[column.key]}
            if column.key in signed:
                record[f"{column.key}_signs"] = cell.signs
        if about_code:
            record["code"] = about_code
        records.append(record)
    return records


def _spreads(column: Column, cells: Sequence[Cell]) -> list[str]:
    """Return which extra columns a column needs."""
    names = ["std"] if any(cell.std is not None for cell in cells) else []
    return names + (["low", "high"] if any(cell.interval for cell in cells) else [])


def _number(value: float | None) -> Any:
    if value is None:
        return ""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
