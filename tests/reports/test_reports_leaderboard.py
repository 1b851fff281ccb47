"""Leaderboards: means, Δm, marks, what is missing, and what never shares a table."""

from __future__ import annotations

import math
import re

import pytest
from made_runs import ST_MT_1, summary, write_run
from report_kit import read_row

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import Delta, Unit, gain
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.table import BEST, SECOND, Cell, Column, Row, Table, mean_cell

SEMSEG, NYUD_SEMSEG, DEPTH = ("pascal-semseg", "semseg"), ("nyud-multi", "semseg"), ("nyud-multi", "depth")


def values(a, b, c):
    return {SEMSEG: a, NYUD_SEMSEG: b, DEPTH: c}


@pytest.fixture
def two_seeds(tmp_path):
    write_run(tmp_path, algorithm="local", seed=0, values=values(50.0, 40.0, 0.5))
    write_run(tmp_path, algorithm="local", seed=1, values=values(52.0, 42.0, 0.4))
    write_run(tmp_path, algorithm="fedavg", seed=0, values=values(55.0, 36.0, 0.45))  # +10, −10, +10 %
    write_run(tmp_path, algorithm="fedavg", seed=1, values=values(52.0, 46.2, 0.48))  # 0, +10, −20 %
    return tmp_path


def rows(table):
    return {row.labels[0]: read_row(table, *row.labels) for row in table.rows}


def board(root, baseline="local", **given):
    (table,) = leaderboards(collect([root]), delta=Delta(baseline=baseline), **given)
    return table


def test_means_deviations_and_delta_by_hand(two_seeds):
    table = board(two_seeds)
    found = rows(table)
    cell = found["FedAvg"]["pascal/semseg/mIoU"]
    assert (cell.value, cell.n) == (53.5, 2)
    assert cell.std == pytest.approx(3 / math.sqrt(2))
    gain = found["FedAvg"]["delta_m"]
    assert gain.value == pytest.approx((10 / 3 - 10 / 3) / 2, abs=1e-9)
    assert gain.n == 2
    assert found["Local"]["delta_m"].value == 0
    assert [row.labels[0] for row in table.rows] == ["Local", "FedAvg"]
    assert found["FedAvg"]["seeds"].value == 2
    assert "over seeds 0, 1" in table.caption


def test_one_seed_has_no_deviation_and_no_interval(tmp_path):
    write_run(tmp_path, algorithm="local", values=values(50.0, 40.0, 0.5))
    write_run(tmp_path, algorithm="fedavg", values=values(55.0, 36.0, 0.45))
    found = rows(board(tmp_path))
    assert found["FedAvg"]["delta_m"].value == pytest.approx(10 / 3)
    assert found["FedAvg"]["delta_m"].interval is None
    assert all(cell.std is None for cell in found["FedAvg"].values())


def test_delta_is_paired_by_seed_and_says_where_it_cannot_be():
    a, b = Unit("pascal", "semseg", "mIoU"), Unit("nyud", "depth", "RMSE")
    up = {("semseg", "mIoU"): True, ("depth", "RMSE"): False}

    def cell(ours, base):
        return gain(ours, base, up, "Local", Delta()).cell

    base = {0: {a: 10.0, b: 2.0}, 1: {a: 20.0, b: 4.0}}
    ours = {0: {a: 11.0, b: 2.0}, 1: {a: 20.0, b: 3.0}, 2: {a: 99.0, b: 9.0}}
    found = cell(ours, base)
    assert found.value == pytest.approx((5 + 12.5) / 2)
    assert found.n == 2
    assert "seeds 0, 1 only" in found.note and "no run of seed 2" in found.note
    low, high = found.interval
    assert low <= found.value <= high
    apart = cell({5: {a: 15.0, b: 3.0}}, base)
    assert apart.value == pytest.approx(0) and apart.interval is None
    assert "no pairs of seeds" in apart.note
    lost = cell({0: {a: math.nan, b: 2.0}}, base)
    assert lost.value is None and "pascal/semseg/mIoU missing" in lost.note
    zero = cell({0: {a: 1.0, b: 2.0}}, {0: {a: 0.0, b: 2.0}})
    assert zero.value is None and "is 0" in zero.note


def test_missing_scores_and_seeds_stay_missing_and_are_said(two_seeds):
    write_run(two_seeds, algorithm="fedper", seed=0, values=values(60.0, 41.0, None))
    write_run(two_seeds, algorithm="fedprox", seed=0, values=values(51.0, None, 0.4))
    write_run(two_seeds, algorithm="fedprox", seed=1, values=values(51.0, 40.0, 0.4))
    table = board(two_seeds)
    found = rows(table)
    assert found["FedPer"]["nyud/depth/RMSE"] == Cell(note="no value was measured")
    assert found["FedPer"]["delta_m"].value is None
    assert "nyud/depth/RMSE missing" in found["FedPer"]["delta_m"].note
    partial = found["FedProx"]["nyud/semseg/mIoU"]
    assert (partial.value, partial.std, partial.n) == (40.0, None, 1)
    assert partial.note.startswith("mean of 1 of 2 seeds")
    assert "FedPer: no finished run of seed 1" in table.notes


def test_without_a_baseline_delta_is_missing(tmp_path):
    write_run(tmp_path, algorithm="fedavg")
    cell = rows(board(tmp_path))["FedAvg"]["delta_m"]
    assert cell == Cell(note="no Δm: no local run in this setting")


def test_another_baseline_by_name_or_label(two_seeds):
    found = rows(board(two_seeds, baseline="fedavg"))
    assert found["FedAvg"]["delta_m"].value == 0
    assert found["Local"]["delta_m"].value != 0
    assert rows(board(two_seeds, baseline="FedAvg"))["FedAvg"]["delta_m"].value == 0
    with pytest.raises(UsageError, match="did you mean 'fedavg'"):
        board(two_seeds, baseline="fedavgg")


def test_variants_are_rows_of_their_own_and_a_baseline_must_be_one_of_them(two_seeds):
    for c in (0.2, 0.6):
        write_run(two_seeds, algorithm="fedhca2", options={"c": c}, config_hash=f"{c}")
    assert [row.labels[0] for row in board(two_seeds).rows] == [
        "Local", "FedAvg", "FedHCA² (c=0.2)", "FedHCA² (c=0.6)",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="several variants"):
        board(two_seeds, baseline="fedhca2")
    assert rows(board(two_seeds, baseline="FedHCA² (c=0.6)"))["FedHCA² (c=0.6)"]["delta_m"].value == 0


@pytest.mark.parametrize(
    "other",
    [
        {"preset": "paper"}, {"data": "real"}, {"rounds": 41}, {"scenario_version": 2}, {"setting": "f" * 64},
        {"data_fingerprints": {"nyud/test": "another"}}, {"scenario": "trio"},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_settings_never_share_a_table(tmp_path, other):
    write_run(tmp_path, algorithm="local")
    write_run(tmp_path, algorithm="fedavg", **other)
    tables = leaderboards(collect([tmp_path]))
    assert sorted([row.labels[0] for row in table.rows] for table in tables) == [["FedAvg"], ["Local"]]


def test_captions_tell_the_setting_apart(tmp_path):
    write_run(tmp_path, algorithm="local", setting="a" * 64, setting_text={"backbone": "swin", "size": 64})
    write_run(tmp_path, algorithm="fedavg", setting="b" * 64, setting_text={"backbone": "resnet", "size": 64})
    first, second = leaderboards(collect([tmp_path]))
    for words in ("preset nano", "synth data", "40 rounds", "cpu", "seed 0", "fmtlbench 0.1.0"):
        assert words in first.caption
    assert "(backbone swin)" in first.caption and "(backbone resnet)" in second.caption


def test_captions_name_the_scenario_s_parameters(tmp_path):
    for clients in (4, 8):
        text = {"backbone": "swin", "scenario_parameters": {"clients": clients}}
        write_run(tmp_path, setting=f"{clients}" * 64, setting_text=text, config_hash=f"{clients}")
    first, second = (table.caption for table in leaderboards(collect([tmp_path])))
    assert first.startswith("scenario with clients=4 · preset nano")
    assert second.startswith("scenario with clients=8 · preset nano")
    assert "{" not in first + second and "swin" not in first + second


def test_settings_that_the_summaries_do_not_tell_apart_are_told_by_their_configs(tmp_path):
    for rate, setting in ((0.1, "a"), (0.2, "b")):
        folder = write_run(tmp_path, setting=setting * 64, config_hash=setting)
        text = f"seed: {rate}\ntrain: {{lr: {rate}, batch_size: 8}}\nalgorithm: {{name: x{rate}}}\n"
        (folder / "config.yaml").write_text(text)
    first, second = (table.caption for table in leaderboards(collect([tmp_path])))
    assert "(train.lr 0.1)" in first and "(train.lr 0.2)" in second
    (folder / "config.yaml").unlink()
    assert "train.lr" not in leaderboards(collect([tmp_path]))[0].caption


def test_losses_keep_the_digits_in_which_they_differ(tmp_path):
    loss = {"client": "nyud-multi", "dataset": "nyud", "split": "global", "task": "edge", "metric": "edge_loss_public",
            "value": 0.0477, "unit": "", "higher_is_better": False, "primary": True}  # fmt: skip
    write_run(tmp_path, extra_scores=[loss])
    column = next(c for c in board(tmp_path).columns if c.metric == "edge_loss_public")
    assert column.text(0.0477) == "0.0477"


def test_identical_runs_are_refused_by_name(tmp_path):
    made = summary()
    one = write_run(tmp_path / "one", made)
    two = write_run(tmp_path / "two", made)
    with pytest.raises(FmtlbenchError, match=re.escape(f"{one} and {two}")):
        leaderboards(collect([tmp_path]))


def test_unfinished_runs_are_noted_in_their_scenario_s_table(tmp_path):
    write_run(tmp_path)
    (write_run(tmp_path, algorithm="fedavg") / "summary.json").write_text("{")
    table = board(tmp_path)
    assert any("fedavg" in note and "cannot be read" in note for note in table.notes)


def test_columns_follow_the_papers(tmp_path):
    write_run(tmp_path, clients=ST_MT_1, scenario="st_mt_1")
    table = board(tmp_path)
    assert [c.title for c in table.columns[:9]] == [
        "SemSeg", "Parts", "Sal", "Normals", "Edge", "SemSeg", "Depth", "Normals", "Edge",
    ]  # fmt: skip
    assert table.headings() == [("synth-pascal (ST)", 5), ("synth-nyud (MT)", 4), ("", 2)]
    assert [c.arrow for c in table.columns[:9]] == list("↑↑↑↓↑↑↓↓↑")
    assert [c.digits for c in table.columns[5:8]] == [2, 4, 2]


def test_real_data_have_their_own_names_and_a_datasets_task_is_one_column(tmp_path):
    clients = {"nyud-a": ("nyud", ("semseg", "depth")), "nyud-b": ("nyud", ("semseg", "edge")),
               "nyud-c": ("nyud", ("semseg",))}  # fmt: skip
    write_run(tmp_path, clients=clients, data="real", values={("nyud-c", "semseg"): 80.0})
    table = board(tmp_path)
    assert table_headings(table) == ["NYUD-v2", "NYUD-v2 (MT)"]  # semseg: of single- and of multi-task clients
    assert rows(table)["Local"]["nyud/semseg/mIoU"].value == 60.0
    write_run(tmp_path / "more", data="real", preset="other")
    assert table_headings(board(tmp_path / "more")) == ["PASCAL-Context (ST)", "NYUD-v2 (MT)"]


def table_headings(table):
    return [heading for heading, _ in table.headings() if heading]


def test_sorting(two_seeds):
    write_run(two_seeds, algorithm="fedper", seed=0, values=values(90.0, 80.0, 0.1))
    write_run(two_seeds, algorithm="ditto", seed=0, values=values(10.0, 10.0, None))
    names = lambda sort: [row.labels[0] for row in board(two_seeds, sort=sort).rows]
    assert names("zoo") == ["Local", "FedAvg", "FedPer", "Ditto"]
    assert names("name") == ["Ditto", "FedAvg", "FedPer", "Local"]
    assert names("delta")[0] == "FedPer" and names("delta")[-1] == "Ditto"  # missing comes last
    assert names("nyud/depth/RMSE") == ["FedPer", "Local", "FedAvg", "Ditto"]
    with pytest.raises(UsageError, match="no column to sort by 'dlta'; did you mean 'delta"):
        names("dlta")


def test_a_column_that_only_some_tables_have_sorts_those(two_seeds):
    alone = {"nyud-edge": ("nyud", ("edge",))}
    for name, value in (("local", 40.0), ("fedavg", 60.0)):
        write_run(two_seeds, algorithm=name, scenario="other", clients=alone, values={("nyud-edge", "edge"): value})
    names = {}
    for table in leaderboards(collect([two_seeds]), sort="nyud/edge/odsF"):
        names[table.title.split()[0]] = [row.labels[0] for row in table.rows]
    assert names == {"duo": ["Local", "FedAvg"], "other": ["FedAvg", "Local"]}
    with pytest.raises(UsageError, match="no column to sort by 'nyud/edge/odsf'"):
        leaderboards(collect([two_seeds]), sort="nyud/edge/odsf")


def test_scenario_and_split_are_chosen_or_refused(two_seeds):
    write_run(two_seeds, scenario="trio", splits=("global", "personal"))
    tables = leaderboards(collect([two_seeds]), split="personal")
    assert [table.title for table in tables] == ["trio version 1, personal test split"]
    assert len(leaderboards(collect([two_seeds]), scenario="duo")) == 1
    with pytest.raises(UsageError, match="did you mean 'duo'"):
        leaderboards(collect([two_seeds]), scenario="dou")
    with pytest.raises(UsageError, match="splits: global"):
        leaderboards(collect([two_seeds]), scenario="duo", split="personal")


def test_marks_compare_as_printed_and_ties_share():
    columns = (Column("up", "Up", higher_is_better=True), Column("down", "Down", digits=1, higher_is_better=False),
               Column("plain", "Plain"))  # fmt: skip
    numbers = [(1.004, 0.26, 1.0), (1.001, 0.34, 2.0), (0.5, None, 3.0), (0.499, 0.4, 4.0), (0.2, 0.9, 5.0)]
    rows_ = tuple(Row((str(i),), tuple(Cell(v) for v in line)) for i, line in enumerate(numbers))
    marked = Table("t", "", "", ("Method",), columns, rows_).marked()
    assert [row.cells[0].mark for row in marked.rows] == [BEST, BEST, SECOND, SECOND, ""]
    assert [row.cells[1].mark for row in marked.rows] == [BEST, BEST, "", SECOND, ""]
    assert [row.cells[2].mark for row in marked.rows] == [""] * 5
    alone = Table("t", "", "", ("Method",), columns, rows_[:1]).marked()
    assert alone.rows[0].cells[0].mark == ""


def test_marks_stay_within_a_block():
    column = (Column("x", "X", higher_is_better=True),)
    rows_ = tuple(Row((block, name), (Cell(v),)) for block, name, v in [("a", "p", 1), ("a", "q", 2), ("b", "p", 9)])
    assert [r.cells[0].mark for r in Table("t", "", "", ("B", "M"), column, rows_).marked(1).rows] == [SECOND, BEST, ""]


def test_mean_cell():
    assert mean_cell([1.0, 3.0]) == Cell(2.0, math.sqrt(2), 2)
    assert mean_cell([4.0]) == Cell(4.0, None, 1)
    assert mean_cell([None, math.nan]).value is None


def test_zero_has_no_sign():
    assert Column("x", "X").text(-0.001) == "0.00"
    assert Column("x", "X", signed=True).text(0.001) == "0.00"
    assert Column("x", "X", signed=True).text(1.5) == "+1.50"
