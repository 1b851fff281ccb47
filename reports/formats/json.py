"""Tables as JSON: every number unrounded, and with it all that the printed table says."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..table import Cell, Row, Table


def render(tables: Sequence[Table]) -> str:
    """Return {"tables": […]}; docs/reports.md says what is in one."""
    return json.dumps({"tables": list(map(_table, tables))}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _table(table: Table) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "caption": table.caption,
        "columns": [
            {
                "key": c.key,
                "title": c.title,
                "heading": c.heading,
                "metric": c.metric,
                "higher_is_better": c.higher_is_better,
            }
            for c in table.columns
        ],
        "rows": [_row(table, row) for row in table.rows],
        "notes": list(table.notes),
    }


def _row(table: Table, row: Row) -> dict[str, Any]:
    labels = dict(zip((head.lower() for head in table.heads), row.labels))
    cells = {column.key: _cell(cell) for column, cell in zip(table.columns, row.cells)}
    return {"labels": labels, "cells": cells, **({"note": row.note} if row.note else {})}


def _cell(cell: Cell) -> dict[str, Any]:
    """Return what is known of a cell; a missing value is null."""
    low, high = cell.interval or (None, None)
    known = {
        "value": _number(cell.value),
        "std": _number(cell.std),
        "n": cell.n,
        "low": _number(low),
        "high": _number(high),
        "printed": cell.printed,
        "word": cell.word,
        "mark": cell.mark,
        "signs": cell.signs,
        "note": cell.note,
    }
    return {name: value for name, value in known.items() if name == "value" or value not in (None, "")}


def _number(value: float | None) -> float | None:
    """Return a number that JSON can hold: it has no infinity and no NaN."""
    return value if value is not None and math.isfinite(value) else None
