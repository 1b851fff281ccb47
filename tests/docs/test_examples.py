"""The scripts in examples/ do what they say."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys

import pytest
from rooms import ROOT

EXAMPLES = ROOT / "examples"


def run(name: str, *words, folder) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(EXAMPLES / name), *map(str, words)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_script_is_tried_and_listed():
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == {"method_author.py", "benchmark_author.py", "reviewer.py"}
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"]({name})" in page for name in scripts)
    assert all("\n# %% " in (EXAMPLES / name).read_text(encoding="utf-8") for name in scripts)


def test_a_method_beside_two_others(tmp_path, monkeypatch, capsys):
    """In this process, which has imported all that it needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["method_author.py", "mine"])
    runpy.run_path(str(EXAMPLES / "method_author.py"), run_name="__main__")
    printed = capsys.readouterr().out
    rows = [line.split()[0] for line in printed.splitlines() if re.match(r"(Local|FedAvg|PartWay) .* 2$", line)]
    assert rows == ["Local", "FedAvg", "PartWay"] and "Δm %" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_a_benchmark_of_ones_own(tmp_path):
    printed = run("benchmark_author.py", tmp_path / "mine", folder=tmp_path)
    assert "discs version 1" in printed and re.search(r"^FedAvg .* 2$", printed, re.M)
    written = {path.name for path in (tmp_path / "mine").iterdir()}
    assert {"discs", "discs.yml", "runs", "site", "table.csv", "table.tex"} == written
    assert (tmp_path / "mine" / "site" / "index.html").is_file()


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="a source archive has no results")
def test_a_table_is_audited(tmp_path):
    printed = run("reviewer.py", folder=tmp_path)
    assert "45 finished runs in nano-3" in printed and "112 numbers of the leaderboard follow from the runs" in printed
    assert "st_mt_1    FedHCA²  [-0.82, +0.73]  cannot be told apart from Local" in printed
    assert "134 follow within 0.02, 3 do not" in printed


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="a source archive has no results")
def test_runs_of_another_length_are_found_out(tmp_path):
    import shutil

    runs = shutil.copytree(ROOT / "results" / "nano-3" / "iid1_sdmt", tmp_path / "runs" / "iid1_sdmt")
    file = next(iter(sorted(runs.rglob("summary.json"))))
    file.write_text(re.sub(r'"rounds": \d+', '"rounds": 7', file.read_text(encoding="utf-8"), count=1))
    command = [sys.executable, str(EXAMPLES / "reviewer.py"), str(tmp_path / "runs")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "('iid1_sdmt', 'rounds')" in done.stderr
