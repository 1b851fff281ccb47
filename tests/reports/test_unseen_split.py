"""Scores of clients that never took part, in every report that chooses a split."""

from __future__ import annotations

import pytest
from made_runs import DUO, score, summary, write_run
from report_kit import printed_rows

from fmtlbench.cli import main
from fmtlbench.reports.collect import collect
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.plots.rounds import rounds_curves

# One client like a participant, and one like nobody.
LATE = [
    {"id": "late", "dataset": "pascal", "tasks": ["semseg"], "samples": 9, "parameters": {"encoder": 1}},
    {"id": "later", "dataset": "nyud", "tasks": ["edge"], "samples": 9, "parameters": {"encoder": 1}},
]
METHODS = {"local": (40.0, 50.0), "fedavg": (50.0, 40.0), "fedper": (44.0, 60.0)}


@pytest.fixture
def runs(tmp_path):
    for algorithm, (one, other) in METHODS.items():
        scores = [score("late", "pascal", "semseg", one, "unseen"), score("later", "nyud", "edge", other, "unseen")]
        write_run(tmp_path, summary(algorithm=algorithm, extra_scores=scores, unseen=LATE))
    return tmp_path


def records(capsys, *argv):
    assert main([*map(str, argv), "--format", "csv"]) == 0, capsys.readouterr().err
    return {r["method"]: r for r in printed_rows(capsys)}


def test_a_leaderboard_of_their_own(runs, capsys):
    found = records(capsys, "leaderboard", runs, "--split", "unseen", "--fairness")
    assert {key for key in found["FedAvg"] if key.count("/") == 2} == {"pascal/semseg/mIoU", "nyud/edge/odsF"}
    assert float(found["FedAvg"]["delta_m"]) == pytest.approx((25 - 20) / 2)
    assert float(found["FedAvg"]["worst_client"]) == pytest.approx(-20)
    ours = records(capsys, "leaderboard", runs)
    assert "pascal/semseg/mIoU" in ours["FedAvg"] and float(ours["FedAvg"]["delta_m"]) == 0


def test_they_are_no_participants(runs):
    collection = collect([runs])
    (run, *_) = collection.runs
    assert set(run.groups) == {*DUO, "late", "later"} and run.groups["late"] == "late"
    assert {run.groups[client] for client in DUO} == set(DUO)
    assert not collection.problems
    (table,) = leaderboards(collection, split="global")
    assert all("edge" not in column.key for column in table.columns)


def test_other_reports_take_the_splits_that_runs_have(runs, capsys):
    assert records(capsys, "cost", runs, "--split", "unseen").keys() == {"Local", "FedAvg", "FedPer"}
    assert main(["stats", str(runs), "--split", "unseen"]) == 0
    assert "unseen" in capsys.readouterr().out
    curves = rounds_curves(collect([runs]).runs, split="unseen").rows
    assert set(curves["round"]) == {2}  # the last one
    for verb in ("leaderboard", "cost", "stats"):
        assert main([verb, str(runs), "--split", "personal"]) == 2
        assert "unseen" in capsys.readouterr().err


def test_the_site_has_a_page_for_them(runs, tmp_path):
    from fmtlbench.reports.site import write_site

    index = write_site(collect([runs]), tmp_path / "site", figures=False)
    assert {file.name.split("-")[3] for file in index.parent.glob("duo*.html")} == {"global", "unseen"}
    run = next((index.parent / "runs").glob("*fedavg*")).read_text(encoding="utf-8")
    assert "late (unseen)" in run and "pascal-semseg (unseen)" not in run
