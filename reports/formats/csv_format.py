"""Comma-separated values: one header row, numbers as they are, nothing rounded."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from ..table import Cell, Column, Table
from ._words import clean


def render(tables: Sequence[Table]) -> str:
    """Return one line per row of every table; a table without some column leaves it empty."""
    records = [record for table in tables for record in _records(table)]
    names = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _records(table: Table) -> list[dict[str, Any]]:
    heads = [head.lower() for head in table.heads]
    spreads = {c.key: _spreads(c, [row.cells[i] for row in table.rows]) for i, c in enumerate(table.columns)}
    signed = {c.key for i, c in enumerate(table.columns) if any(row.cells[i].signs for row in table.rows)}
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
