"""Choose the units that people read: 3.1 mWh instead of 0.0000031 kWh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import floor, log10

from .table import Cell, Column, Row, Table

# From large to small; a number says how many of the unit make one of the first that has 1.
LADDERS = (
    {"MWh": 1e-3, "kWh": 1.0, "Wh": 1e3, "mWh": 1e6, "µWh": 1e9},
    {"TB": 1e-6, "GB": 1e-3, "MB": 1.0, "kB": 1e3, "B": 1e6},
    {"h": 1 / 3600, "min": 1 / 60, "s": 1.0, "ms": 1e3},
    {"kg": 1e-3, "g": 1.0, "mg": 1e3, "µg": 1e6},
)
DIGITS = 3  # of the smallest number of a column


def choose_unit(unit: str, values: Iterable[float]) -> tuple[str, float]:
    """Return the largest unit in which the largest value is at least 1, and the factor from the given unit to it."""
    ladder = next((ladder for ladder in LADDERS if unit in ladder), {})
    largest = max((abs(value) for value in values), default=0.0)
    if not ladder or not largest:
        return unit, 1.0
    factors = {name: many / ladder[unit] for name, many in ladder.items()}
    fitting = [name for name, factor in factors.items() if largest * factor >= 1]
    chosen = fitting[0] if fitting else list(factors)[-1]
    return chosen, factors[chosen]


def in_readable_units(table: Table) -> Table:
    """Return the table with every column whose title begins with a known unit in the unit that suits its values."""
    for index, column in enumerate(table.columns):
        unit, _, rest = column.title.partition(" ")
        values = [row.cells[index].value for row in table.rows]
        known = [value for value in values if value]
        chosen, factor = choose_unit(unit, known)
        if factor != 1.0:
            title = f"{chosen} {rest}".strip()
            digits = digits_of([value * factor for value in known])
            table = _replace_column(table, index, replace(column, title=title, digits=digits), factor)
    return table


def digits_of(values: Sequence[float], most: int = 8) -> int:
    """Return the decimals that show three digits of the smallest value."""
    smallest = min((abs(value) for value in values if value), default=1.0)
    return min(most, max(0, DIGITS - 1 - floor(log10(smallest))))


def _replace_column(table: Table, index: int, column: Column, factor: float) -> Table:
    columns = (*table.columns[:index], column, *table.columns[index + 1 :])
    rows = [
        Row(row.labels, (*row.cells[:index], _scale(row.cells[index], factor), *row.cells[index + 1 :]), row.note)
        for row in table.rows
    ]
    return replace(table, columns=columns, rows=tuple(rows))


def _scale(cell: Cell, factor: float) -> Cell:
    if cell.value is None:
        return cell
    std = None if cell.std is None else cell.std * factor
    return replace(cell, value=cell.value * factor, std=std)
