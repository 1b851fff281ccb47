"""Units that people read: chosen by the largest value, the same number behind them."""

from __future__ import annotations

import pytest

from fmtlbench.reports.table import Cell, Column, Row, Table
from fmtlbench.reports.units import choose_unit, in_readable_units


@pytest.mark.parametrize(
    "unit, values, wanted",
    [
        ("kWh", [3.1e-6], ("mWh", 1e6)),
        ("kWh", [0.002, 0.5], ("Wh", 1e3)),
        ("kWh", [1e-12], ("µWh", 1e9)),
        ("MB", [1088.0, 3.0], ("GB", 1e-3)),
        ("GB", [0.743], ("MB", 1e3)),
        ("s", [522.0], ("min", 1 / 60)),
        ("h", [0.01], ("s", 3600)),
        ("min", [0.5], ("s", 60)),
        ("rounds", [0.1], ("rounds", 1)),
        ("kWh", [], ("kWh", 1)),
    ],
)
def test_the_largest_value_decides(unit, values, wanted):
    chosen, factor = choose_unit(unit, values)
    assert (chosen, factor) == (wanted[0], pytest.approx(wanted[1]))


def table(*columns):
    rows = [Row((f"m{i}",), tuple(cells)) for i, cells in enumerate(zip(*(cells for _, cells in columns)))]
    return Table("t", "t", "", ("Method",), tuple(column for column, _ in columns), tuple(rows))


def test_a_column_keeps_its_key_and_scales_value_and_spread():
    energy = (Column("kwh", "kWh est.", digits=8), [Cell(2e-6, 1e-6, 3), Cell(word="not reached")])
    other = (Column("seeds", "seeds", digits=0), [Cell(3.0), Cell(3.0)])
    made = in_readable_units(table(energy, other))
    assert (made.columns[0].key, made.columns[0].title, made.columns[0].digits) == ("kwh", "mWh est.", 2)
    assert (made.rows[0].cells[0].value, made.rows[0].cells[0].std) == (pytest.approx(2.0), pytest.approx(1.0))
    assert made.rows[1].cells[0] == Cell(word="not reached") and made.columns[1] == other[0]


def test_one_column_can_come_first():
    made = table((Column("a", "a"), [Cell(1.0)]), (Column("b", "b"), [Cell(2.0)]))
    assert [c.key for c in made.with_first("b").columns] == ["b", "a"]
    assert [c.value for c in made.with_first("b").rows[0].cells] == [2.0, 1.0]
    assert made.with_first("c") == made
