"""`leaderboard --fairness`: the worst client, the worst tenth of clients and the spread over clients, by hand."""

from __future__ import annotations

import math

import pytest
from made_runs import SETTING, write_absence, write_run
from report_kit import printed_rows, read_row

from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import Delta, Score, find_reference
from fmtlbench.reports.fairness import COLUMNS, fairness
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.settings import merge_settings

KEYS = [column.key for column in COLUMNS]
DUO = {("pascal-semseg", "semseg"): 50.0, ("nyud-multi", "semseg"): 40.0, ("nyud-multi", "depth"): 0.5}
SEMSEG, DEPTH = ("semseg", "mIoU"), ("depth", "RMSE")
UP = {SEMSEG: True, DEPTH: False}


def values(a, b, c):
    return dict(zip(DUO, (a, b, c)))


def fair(table, label):
    cells = read_row(table, label)
    return [cells[key] for key in KEYS]


def board(root, **given):
    (table,) = leaderboards(collect([root]), fair=True, **given)
    return table


@pytest.fixture
def duo(tmp_path):
    write_run(tmp_path, algorithm="local", seed=0, values=DUO)
    write_run(tmp_path, algorithm="local", seed=1, values=values(100.0, 40.0, 0.5))
    write_run(tmp_path, algorithm="fedavg", seed=0, values=values(55.0, 36.0, 0.4))  # +10; (−10 + 20) / 2 = +5
    write_run(tmp_path, algorithm="fedavg", seed=1, values=values(70.0, 44.0, 0.45))  # −30; (10 + 10) / 2 = +10
    return tmp_path


def test_a_clients_mean_over_tasks_and_seeds_then_the_lowest(duo):
    """PASCAL: (10 − 30) / 2 = −10. NYUD: (5 + 10) / 2 = 7.5. In seed 0 alone, NYUD would be the worst."""
    table = board(duo)
    worst, decile, spread = fair(table, "FedAvg")
    assert worst.value == pytest.approx(-10) and decile.value == pytest.approx(-10)
    assert spread.value == pytest.approx(math.sqrt(2 * 8.75**2))
    assert worst.note == "worst client: pascal-semseg" and (worst.n, decile.n, spread.n) == (2, 2, 2)
    assert [cell.value for cell in fair(table, "Local")] == [0, 0, 0]
    assert any("same client of Local" in note and "(n - 1)" in note for note in table.notes)
    keys = [column.key for column in table.columns]
    assert keys[keys.index("delta_m") + 1 :] == [*KEYS, "seeds"]


def test_without_the_flag_nothing_is_added(duo):
    (table,) = leaderboards(collect([duo]))
    assert not {column.key for column in table.columns} & set(KEYS)
    assert not any("worst client" in note for note in table.notes)


def test_weights_of_tasks_count_within_a_client(duo):
    worst, _, _ = fair(board(duo, delta=Delta(weights={"semseg": 1, "depth": 3})), "FedAvg")
    assert worst.value == pytest.approx(-10)  # one task: weighs whatever it does
    ours = {Score("a", "nyud", *SEMSEG): 44.0, Score("a", "nyud", *DEPTH): 0.6}
    base = {Score("a", "nyud", *SEMSEG): 40.0, Score("a", "nyud", *DEPTH): 0.5}
    assert Delta(weights={"depth": 3}).by_client(ours, base, UP) == pytest.approx({"a": (10 - 3 * 20) / 4})


@pytest.mark.parametrize(("clients", "lowest"), [(9, 1), (19, 1), (20, 2), (35, 3)])
def test_the_bottom_decile_is_a_tenth_of_the_clients_rounded_down_but_one_at_least(clients, lowest):
    base = {Score(f"c{i}", "nyud", *SEMSEG): 50.0 for i in range(clients)}
    ours = {at: 50.0 + i for i, at in enumerate(base)}  # +0, +2, +4, … percent
    worst, decile, _ = fairness({0: ours}, {0: base}, UP, "Local", Delta())
    assert worst.value == 0 and worst.note == "worst client: c0"
    assert decile.value == pytest.approx(sum(2 * i for i in range(lowest)) / lowest)


def test_one_client_has_no_spread():
    at = Score("alone", "nyud", *DEPTH)
    worst, decile, spread = fairness({0: {at: 0.4}}, {0: {at: 0.5}}, UP, "Local", Delta())
    assert (worst.value, decile.value) == pytest.approx((20, 20))
    assert spread.value is None and spread.note == "no spread: there is one client"


def test_clients_that_are_equally_bad_are_all_named():
    base = {Score(f"c{i}", "nyud", *SEMSEG): 50.0 for i in range(5)}
    worst, _, spread = fairness({0: dict.fromkeys(base, 40.0)}, {0: base}, UP, "Local", Delta())
    assert worst.note == "worst client: c0, c1, c2 and 2 more" and spread.value == 0


def test_what_is_missing_stays_missing_and_says_why(duo):
    write_run(duo, algorithm="fedper", seed=0, values=values(50.0, 41.0, None))
    write_run(duo, algorithm="fedprox", seed=0, values=values(60.0, 40.0, 0.5))
    write_absence(duo, algorithm="ditto")
    table = board(duo)
    for cell in fair(table, "FedPer"):
        assert cell.value is None and "every score: nyud-multi/depth/RMSE missing" in cell.note
    assert fair(table, "FedProx")[0].value == 0  # of seed 0, which is the only one
    assert [cell.word for cell in fair(table, "Ditto")] == ["NULL"] * 3
    zero = {Score("a", "nyud", *SEMSEG): 0.0}
    assert "is 0" in fairness({0: {**zero}}, {0: zero}, UP, "Local", Delta()).worst.note


def test_without_a_baseline_there_is_nothing(tmp_path):
    write_run(tmp_path, algorithm="fedavg")
    assert {cell.note for cell in fair(board(tmp_path), "FedAvg")} == {"no Δm: no local run in this setting"}


def test_a_reference_with_other_clients_is_told_and_one_with_the_same_is_used(duo):
    other = {"nyud-multi": ("nyud", ("semseg", "depth"))}
    write_run(duo, algorithm="local", clients=other, scenario="solo", setting="b" * 64)
    twin = values(50.0, 40.0, 0.4)
    write_run(duo, algorithm="local", seed=7, values=twin, scenario="twin", setting="c" * 64)
    collection = collect([duo])
    for scenario in ("solo", "twin"):
        reference = find_reference(collection, f"algo=local,scenario={scenario}")
        (table,) = leaderboards(collection, "duo", delta=Delta(reference=reference), fair=True)
        cells = fair(table, "FedAvg")
        if scenario == "solo":
            assert {cell.value for cell in cells} == {None}
            assert {cell.note for cell in cells} == {
                "no Δm of clients: Local of solo does not have pascal-semseg as here"
            }
        else:  # PASCAL +10 and +40 %, NYUD −10 and 0, +10 and −12.5: clients' means 25 and −3.125
            assert cells[0].value == pytest.approx(-3.125)
            assert cells[0].note.startswith("worst client: nyud-multi; Δm against the mean of Local of twin")


def test_a_client_of_the_same_name_with_another_dataset_is_another():
    ours, theirs = ({Score("a", dataset, *SEMSEG): 50.0} for dataset in ("nyud", "pascal"))
    worst, _, _ = fairness({0: ours}, {0: theirs}, UP, "Local", Delta())
    assert worst.value is None and "does not have a as here" in worst.note


def test_rows_of_several_settings_are_each_against_their_own_baseline(tmp_path):
    for architecture, setting, score in (("md", SETTING, 45.0), ("tc", "7" * 64, 60.0)):
        text = {"architecture": architecture}
        write_run(tmp_path, algorithm="local", values=DUO, setting=setting, setting_text=text)
        write_run(
            tmp_path, algorithm="fedavg", values=values(score, 40.0, 0.5), setting=setting, setting_text=text
        )  # fmt: skip
    (table,) = leaderboards(merge_settings(collect([tmp_path]), ["architecture"]), fair=True)
    assert {row.labels: read_row(table, *row.labels)["worst_client"].value for row in table.rows} == {
        ("Local", "md"): 0, ("FedAvg", "md"): pytest.approx(-10), ("Local", "tc"): 0, ("FedAvg", "tc"): 0,
    }  # fmt: skip


def test_every_format_and_the_site(duo, tmp_path, capsys):
    for style in ("table", "csv", "md", "latex"):
        assert main(["leaderboard", str(duo), "--fairness", "--sort", "worst_client", "--format", style]) == 0
        if style != "csv":
            out = capsys.readouterr().out
            assert "10.00" in out and "worst client: pascal-semseg" in out, style
        else:
            records = printed_rows(capsys)
            assert [(r["method"], float(r["worst_client"])) for r in records] == [("Local", 0), ("FedAvg", -10)]
            assert set(KEYS) <= set(records[0])
    assert main(["leaderboard", str(duo), "--fairness", "--format", "html", "-o", str(tmp_path / "site")]) == 0
    (page,) = (tmp_path / "site").glob("duo*.html")
    text = page.read_text(encoding="utf-8")
    assert "bottom 10 %" in text and "worst client: pascal-semseg" in text
