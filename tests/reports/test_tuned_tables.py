"""Tables of tuned runs: one table although the chosen values differ, apart from runs that nobody tuned, and told."""

from __future__ import annotations

import json

import pytest
from made_runs import write_run

from fmtlbench.config.resolve import resolve
from fmtlbench.reports.collect import collect
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.store import format_config

SEMSEG = ("pascal-semseg", "semseg")


@pytest.fixture
def runs(tmp_path):
    def write(algorithm, lr, value, tuning=None, **given):
        config = resolve(algorithm, "st_mt_1", overrides={"train.lr": lr})
        folder = write_run(
            tmp_path / (tuning or "plain"),
            algorithm=algorithm,
            values={SEMSEG: value},
            setting=config.setting().key,
            setting_text={},
        )
        (folder / "config.yaml").write_text(format_config(config))
        if tuning:
            record = {"tuning": tuning, "keys": ["train.lr", "algo.mu"], "on": "methods", "budget": 12, "trials": 12}
            record |= {"validation": 0.2, "seeds": [0], "criterion": "highest Δm", "chosen": {"train.lr": lr}, **given}
            RunFolder(folder).write_tuning(record)
        return folder

    write.root = tmp_path
    return write


def tables(root):
    return leaderboards(collect([root]))


def test_runs_of_one_tuning_share_a_table_and_no_other_run_does(runs):
    runs("local", 1e-3, 50.0, "aa")
    runs("fedavg", 5e-3, 55.0, "aa")
    runs("local", 1e-3, 40.0)  # the same config, as the plain run that it also is
    runs("local", 2e-3, 41.0, "bb")
    found = {tuple(row.labels[0] for row in table.rows): table for table in tables(runs.root)}
    assert sorted(len(labels) for labels in found) == [1, 2] and len(tables(runs.root)) == 3
    table = found["Local", "FedAvg"]
    assert [row.cells[0].value for row in table.rows] == [50.0, 55.0]
    assert table.rows[1].cells[-2].value == pytest.approx(10 / 3)  # one of three columns is 10 % better


def test_the_table_tells_budget_images_and_choices(runs):
    runs("local", 1e-3, 50.0, "aa", chosen={})
    runs("fedavg", 5e-3, 55.0, "aa", trials=10)
    (table,) = tables(runs.root)
    rule, fewer, chosen = [note for note in table.notes if "tuned" in note or "trials" in note or "chosen" in note]
    assert rule.startswith("tuned: 12 trials each on validation (0.2 of each client's training images, seed 0)")
    assert "tried: algo.mu, train.lr" in rule
    assert fewer == "fewer trials than 12: FedAvg 10"
    assert chosen == "values chosen: Local the default; FedAvg train.lr=0.005"


def test_a_choice_on_local_is_told(runs):
    runs("local", 1e-3, 50.0, "aa", on="local")
    runs("fedavg", 1e-3, 55.0, "aa", on="local")
    (table,) = tables(runs.root)
    assert any(note.startswith("tuned: 12 trials of local, whose choice all methods have,") for note in table.notes)
    assert not any("fewer" in note for note in table.notes)


def test_a_damaged_record_leaves_the_run_out_with_its_reason(runs):
    runs("local", 1e-3, 50.0, "aa")
    folder = runs("fedavg", 1e-3, 50.0, "aa")
    (folder / "tuning.json").write_text(json.dumps({"tuning": 5}))
    collection = collect([runs.root])
    assert [run.summary["algorithm"] for run in collection.runs] == ["local"]
    assert "tuning.json" in str(collection.problems[0])


def test_scores_on_validation_are_not_called_test_scores(tmp_path):
    write_run(tmp_path, algorithm="local", setting_text={"data.validation": 0.2})
    (table,) = tables(tmp_path)
    assert "global split, validation images" in table.title and "test" not in table.title
