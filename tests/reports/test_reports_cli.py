"""export, leaderboard, published and compare from the command line."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import sys

import pytest
from made_runs import ST_MT_1, write_run

from fmtlbench.cli import main


@pytest.fixture
def runs(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / "runs", algorithm="local", seed=seed, clients=ST_MT_1, scenario="st_mt_1")
    third = {("nyud-multi", "depth"): 1 / 3}
    write_run(tmp_path / "runs", algorithm="fedavg", values=third, clients=ST_MT_1, scenario="st_mt_1")
    return tmp_path / "runs"


def test_runs_is_the_default_folder(runs, monkeypatch, capsys):
    monkeypatch.chdir(runs.parent)
    assert main(["leaderboard"]) == 0
    assert "st_mt_1 version 1, global test split" in capsys.readouterr().out
    monkeypatch.chdir(runs)
    assert main(["leaderboard"]) == 2
    assert "runs: no such folder" in capsys.readouterr().err


def test_standalone_is_a_document_and_latex_s_alone(runs, capsys):
    assert main(["leaderboard", str(runs), "--format", "latex", "--standalone"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("\\documentclass{article}") and out.endswith("\\end{document}\n")
    assert main(["leaderboard", str(runs), "--format", "md", "--standalone"]) == 2


def test_one_setting_can_be_chosen(runs, capsys):
    write_run(runs, algorithm="local", clients=ST_MT_1, scenario="st_mt_1", setting="5f" * 32, rounds=1)
    assert main(["leaderboard", str(runs), "--setting", "5f5f", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 1
    assert main(["leaderboard", str(runs), "--setting", "5"]) == 2
    assert (
        "several settings begin so: 5e771000000000 (st_mt_1, nano, 40 rounds, 3 runs), 5f5f" in capsys.readouterr().err
    )
    for verb in (["export"], ["stats"], ["compare", "--published", "fedhca2_table1_st_mt_1"]):
        assert main([*verb, str(runs), "--setting", "77"]) == 2
        assert "--setting 77: no run has it; there are: 5e77" in capsys.readouterr().err


def test_unusable_folders_are_told_on_stderr_and_alone_are_an_error(runs, tmp_path, capsys):
    bad = write_run(tmp_path / "bad", algorithm="fedper") / "summary.json"
    bad.write_text("{")
    assert main(["leaderboard", str(runs), str(tmp_path / "bad")]) == 0
    out, err = capsys.readouterr()
    assert "left out:" in err and "cannot be read" in err and "left out" not in out
    assert main(["export", str(tmp_path / "bad")]) == 2
    assert "no finished run" in capsys.readouterr().err


def test_export_csv_and_json_hold_every_digit(runs, tmp_path, capsys):
    assert main(["export", str(runs)]) == 0
    records = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(records) == 3 * 9
    depth = next(r for r in records if r["algorithm"] == "fedavg" and r["task"] == "depth")
    assert float(depth["value"]) == 1 / 3
    target = tmp_path / "all.json"
    assert main(["export", str(runs), "--format", "json", "-o", str(target)]) == 0
    loaded = json.loads(target.read_text(encoding="utf-8"))
    assert len(loaded) == 27 and list(loaded[0]) == list(records[0])
    assert next(r for r in loaded if r["algorithm"] == "fedavg" and r["task"] == "depth")["value"] == 1 / 3
    assert {r["primary"] for r in loaded} == {True}


def test_export_json_writes_null_for_missing(tmp_path, capsys):
    write_run(tmp_path, values={("nyud-multi", "depth"): None})
    assert main(["export", str(tmp_path), "--format", "json"]) == 0
    assert [r["value"] for r in json.loads(capsys.readouterr().out) if r["task"] == "depth"] == [None]


def test_parquet_needs_a_file_and_pyarrow(runs, tmp_path, capsys, monkeypatch):
    assert main(["export", str(runs), "--format", "parquet"]) == 2
    assert "-o FILE" in capsys.readouterr().err
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *r: None if name == "pyarrow" else known(name, *r))
    assert main(["export", str(runs), "--format", "parquet", "-o", str(tmp_path / "x.parquet")]) == 1
    assert 'pip install "fmtlbench[parquet]"' in capsys.readouterr().err
    assert not (tmp_path / "x.parquet").exists()


def test_parquet_comes_back_as_it_was(runs, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pandas as pd

    from fmtlbench.reports.collect import collect

    target = tmp_path / "x.parquet"
    assert main(["export", str(runs), "--format", "parquet", "-o", str(target)]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet(target), collect([runs]).frame, check_dtype=False)


def test_published_lists_prints_and_audits(capsys):
    assert main(["published"]) == 0
    listing = capsys.readouterr().out
    assert "fedhca2_table1_st_mt_1" in listing and "matfl_table2_scale" in listing
    assert main(["published", "fedhca2_table1_st_mt_1", "--format", "md"]) == 0
    assert "**57.55**" in capsys.readouterr().out
    assert main(["published", "--audit", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3
    assert main(["published", "--audit", "fedhca2_table2_st_mt_2"]) == 0
    assert "8 follow within 0.02, 0 do not" in capsys.readouterr().out
    assert main(["published", "fedhca2_tabl1_st_mt_1"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main(["published", "--format", "md"]) == 2


def test_compare_says_first_what_differs(runs, capsys):
    assert main(["compare", str(runs), "--published", "fedhca2_table1_st_mt_1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("not the same setting: preset nano (paper: paper), data synth")
    assert main(["compare", str(runs), "--published", "fedhca2_table2_st_mt_2"]) == 2
    assert "fedhca2_table1_st_mt_1" in capsys.readouterr().err


def test_a_real_run_becomes_a_table(tiny_run, tmp_path, capsys):
    for algorithm in ("local", "fedavg"):
        tiny_run(algorithm, rounds=1)
    assert main(["leaderboard", str(tmp_path / "runs"), "--split", "personal"]) == 0
    out = capsys.readouterr().out
    assert "Local" in out and "FedAvg" in out and "personal test split" in out
    assert main(["leaderboard", str(tmp_path / "runs"), "--format", "csv"]) == 0
    records = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [record["method"] for record in records] == ["Local", "FedAvg"]
    assert float(records[1]["delta_m"]) != 0


def test_a_terminal_gets_bold_and_its_width(runs, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    assert main(["leaderboard", str(runs)]) == 0
    out = capsys.readouterr().out
    assert "\x1b[1m" in out and out.count("Method") > 1
