"""Intervals and tests over seeds: they cover what they say, also where all columns of a run move together."""

from __future__ import annotations

import numpy as np
import pytest
from made_runs import write_run
from report_kit import read_row
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from fmtlbench.base.errors import UsageError
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import Delta, Unit, gain
from fmtlbench.reports.intervals import corrected, interval_method, mean_interval, mean_p
from fmtlbench.reports.leaderboard import leaderboards


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_the_interval_of_delta_covers_the_truth_when_columns_are_correlated(seeds):
    """2 000 tables of nine columns that a run's luck moves together: 95 % intervals hold the true Δm in 93–97 %."""
    units = [Unit("nyud", f"task{i}", "mIoU") for i in range(9)]
    up = {(unit.task, unit.metric): True for unit in units}
    rng, hits, repetitions, truth = np.random.default_rng(seeds), 0, 2000, 2.0
    for _ in range(repetitions):
        luck = rng.normal(0, 3, size=(seeds, 1)) + rng.normal(0, 1, size=(seeds, 9))  # percent of the baseline
        ours = {s: dict(zip(units, 50 * (1 + (truth + luck[s]) / 100))) for s in range(seeds)}
        base = {s: dict.fromkeys(units, 50.0) for s in range(seeds)}
        low, high = gain(ours, base, up, "Local", Delta()).cell.interval
        hits += low <= truth <= high
    assert 0.93 <= hits / repetitions <= 0.97


def test_more_columns_of_the_same_runs_do_not_make_it_narrower():
    changes = [1.0, -2.0, 4.0]
    found = []
    for columns in (1, 50):
        units = [Unit("nyud", f"task{i}", "mIoU") for i in range(columns)]
        up = {(unit.task, unit.metric): True for unit in units}
        ours = {s: dict.fromkeys(units, 100.0 + change) for s, change in enumerate(changes)}
        found.append(gain(ours, {s: dict.fromkeys(units, 100.0) for s in range(3)}, up, "Local", Delta()).cell.interval)
    assert found[0] == pytest.approx(found[1])


def test_few_seeds_have_students_interval_and_more_a_seeded_bootstrap():
    low, high = mean_interval([1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-5)  # t(2) 4.302653 · 1/√3
    assert "Student's t over 3" in interval_method(3) and "bootstrap of 12" in interval_method(12)
    values = np.random.default_rng(0).normal(size=12)
    assert mean_interval(values) == mean_interval(values)
    assert mean_interval([5.0]) is None
    assert mean_interval([0.3, 0.3, 0.3]) == pytest.approx((0.3, 0.3))
    assert mean_interval([0.3] * 9) == pytest.approx((0.3, 0.3))
    low, high = mean_interval([0.0] * 7 + [1.0])  # a third of the draws are all zeros: Student's t instead
    assert high - 0.125 == pytest.approx(0.125 - low) and high > 0.4


def test_p_is_the_t_tests_and_corrections_are_statsmodels():
    values = [0.5, 1.5, -0.2, 0.9]
    assert mean_p(values) == pytest.approx(ttest_1samp(values, 0).pvalue)
    assert mean_p([1.0]) is None and mean_p([0.0, 0.0]) == 1 and mean_p([2.0, 2.0]) == 0
    p = [0.01, 0.04, 0.03, 0.2, 0.5]
    for name in ("holm", "bonferroni"):
        assert corrected(p, name) == pytest.approx(multipletests(p, method=name)[1])
    with pytest.raises(UsageError, match="did you mean 'holm'"):
        corrected(p, "hom")


def test_tables_mark_what_differs_from_the_reference_and_from_the_best(tmp_path):
    """Five seeds: FedAvg clearly better, FedPer the same as FedAvg, Ditto lost in its own noise."""
    for seed in range(5):
        base = 50.0 + seed
        noise = [0.1, -0.1, 0.05, -0.05, 0.0][seed]
        wild = [20.0, -20.0, 10.0, -8.0, 0.0][seed]
        for name, change in (
            ("local", 0), ("fedavg", 5 + noise), ("fedper", 5 - noise), ("fedprox", -5 + noise), ("ditto", wild),
        ):  # fmt: skip
            values = {("pascal-semseg", "semseg"): base * (1 + change / 100), ("nyud-multi", "semseg"): base}
            write_run(tmp_path, algorithm=name, seed=seed, values=values)
    (table,) = leaderboards(collect([tmp_path]))
    signs = {row.labels[0]: read_row(table, *row.labels)["delta_m"].signs for row in table.rows}
    assert signs["Ditto"] == ""
    assert signs["FedProx"] == "†‡" and signs["Local"] == "‡"
    assert {signs["FedAvg"], signs["FedPer"]} == {"†"}
    assert any(note.startswith("† differs from Local at 95 % (t-test over seeds, Holm over 4") for note in table.notes)
    assert any(note.startswith("‡ differs at 95 % from FedAvg, the highest Δm") for note in table.notes)


def test_one_seed_is_not_tested(tmp_path):
    for name in ("local", "fedavg"):
        write_run(tmp_path, algorithm=name)
    (table,) = leaderboards(collect([tmp_path]))
    assert not any("differs" in note for note in table.notes)
    assert not any(cell.signs for row in table.rows for cell in row.cells)
