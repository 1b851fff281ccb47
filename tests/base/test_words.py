"""Times, quantities and counts as people write and read them."""

from __future__ import annotations

import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.base.words import (
    dataset_title,
    parse_duration,
    say_bytes,
    say_count,
    say_duration,
    say_measured_time,
    say_quantity,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("90m", 5400), ("30s", 30), ("1h30m", 5400), ("1.5h", 5400), ("1d", 86400), ("1H 5s", 3605)],
)
def test_times_are_read(text, seconds):
    assert parse_duration(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "0s", "-1h", "30m1h", "2 hours", "1h1h"])
def test_bad_times_are_named(text):
    with pytest.raises(UsageError, match=r"^--budget .*: expected a time such as 2h, 90m, 30s or 1h30m"):
        parse_duration(text, "--budget")


def test_times_for_planning_have_two_units():
    shown = [say_duration(seconds) for seconds in (0.4, 59.6, 61, 3599, 3725, 90000)]
    assert shown == ["0 s", "1 min 00 s", "1 min 01 s", "59 min 59 s", "1 h 02 min", "1 d 1 h"]


def test_measured_times_show_fractions():
    assert [say_measured_time(seconds) for seconds in (0.0124, 5.25, 61)] == ["12 ms", "5.2 s", "1 min 01 s"]


def test_quantities_have_three_digits_and_a_prefix():
    sizes = [say_bytes(n) for n in (0, 999, 999.9, 1500, 2.5e9, 3e15, 4e21)]
    assert sizes == ["0 B", "999 B", "1 kB", "1.5 kB", "2.5 GB", "3 PB", "4e+06 PB"]
    assert [say_quantity(value, "Wh") for value in (0.0123, 4.2e-6, -1234)] == ["12.3 mWh", "4.2 µWh", "-1.23 kWh"]


def test_counts_and_names_of_data():
    assert [say_count(number, "round") for number in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
    titles = [dataset_title("nyud"), dataset_title("pascal", "synth"), dataset_title("mine")]
    assert titles == ["NYUD-v2", "synth-pascal", "mine"]
