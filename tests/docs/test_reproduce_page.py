"""docs/reproduce.md says what the recipes are, what they need, and what was run."""

from __future__ import annotations

from statistics import median

import pytest

from fmtlbench.bench.operations import Operations
from fmtlbench.reports.papers.recipes import recipe_names


@pytest.fixture(scope="module")
def writer():
    import write_reproduce

    return write_reproduce


def test_the_page_is_fresh(writer):
    """Hours are taken as they stand there: counting all of them takes minutes."""
    page = writer.PAGE.read_text(encoding="utf-8")
    made = writer.make_page(writer.read_hours(page), writer.read_speeds(page), writer.count_done())
    assert page == made, "run python docs/write_reproduce.py"
    assert all(f"`fmtlbench papers reproduce {name}" in page for name in recipe_names())


def test_the_hours_of_the_table_of_costs_are_those_that_it_prints(writer):
    """Operations ÷ speed gives back the seconds that the speed was taken from."""
    counter = Operations()
    speeds = writer.measure_speeds(counter)
    page = writer.PAGE.read_text(encoding="utf-8")
    assert writer.read_speeds(page) == pytest.approx([min(speeds), median(speeds), max(speeds)], abs=0.051)
    (planned,) = writer.plan([writer.COST_TABLE])
    hours = writer.count_hours(planned, counter, median(speeds))
    rows = planned.recipe.table.rows
    printed = sum(float(row["time_per_round_s"]) for row in rows) * 100 * writer.GPUS / 3600
    assert len(hours) == 18 and sum(hours.values()) == pytest.approx(printed, rel=0.05)
    assert writer.read_hours(page)[writer.COST_TABLE] == pytest.approx(sum(hours.values()), abs=0.51)
