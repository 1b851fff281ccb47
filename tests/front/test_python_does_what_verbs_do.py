"""`fmtlbench.leaderboard`, `.stats`, `.frame`, `.plot`: their docstrings' examples, and that they are the verbs."""

from __future__ import annotations

import doctest
import json
import shutil
import subprocess
import sys

import pytest
from snippets import ROOT

import fmtlbench
from fmtlbench.cli import main
from fmtlbench.reports import ask

STORED = ROOT / "results" / "nano-3"


def test_the_examples_of_the_docstrings_run(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "nano-3").symlink_to(STORED)
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(ask)
    assert found.attempted > 8 and found.failed == 0
    assert (tmp_path / "pvalues.pdf").stat().st_size > 1000


@pytest.mark.parametrize(
    ("call", "argv"),
    [
        (lambda: fmtlbench.leaderboard(STORED, fairness=True), ["leaderboard", "--fairness"]),
        (
            lambda: fmtlbench.leaderboard(STORED, scenario="st_mt_1", task_weights={"depth": 2}, sort="delta"),
            ["leaderboard", "--scenario", "st_mt_1", "--task-weights", "depth=2", "--sort", "delta"],
        ),
        (
            lambda: fmtlbench.stats(STORED, scenario="st_mt_1", pair=["fedavg", "local"]),
            ["stats", "--scenario", "st_mt_1", "--pair", "fedavg,local"],
        ),
        (lambda: fmtlbench.stats(STORED, noise=True, power=0.9), ["stats", "--noise", "--power", "0.9"]),
        (
            lambda: ask.cost(STORED, target=[-20], reference={"algo": "fedavg", "scenario": "st_mt_1"}),
            ["cost", "--target", "-20", "--reference", "algo=fedavg,scenario=st_mt_1"],
        ),
        (
            lambda: ask.compare(STORED, published="fedhca2_table1_st_mt_1"),
            ["papers", "compare", "--published", "fedhca2_table1_st_mt_1"],
        ),
    ],
)
def test_keywords_are_the_flags(capsys, call, argv):
    tables = call()
    capsys.readouterr()
    assert main([*argv, str(STORED)]) == 0
    assert repr(tables) == capsys.readouterr().out
    assert "<table" in tables._repr_html_()


def test_a_frame_is_the_export(capsys):
    assert main(["export", str(STORED)]) == 0
    assert fmtlbench.frame(STORED).to_csv(index=False, lineterminator="\n") == capsys.readouterr().out


def test_what_is_left_out_is_a_warning(tmp_path):
    shutil.copytree(STORED / "st_mt_1", tmp_path / "runs")
    damaged = next((tmp_path / "runs").rglob("summary.json"))
    damaged.write_text("{")
    with pytest.warns(UserWarning, match=f"left out: .*{damaged.parent.name}") as caught:
        fmtlbench.leaderboard(tmp_path / "runs")
    assert caught[0].filename == __file__
    heard = []
    fmtlbench.leaderboard(tmp_path / "runs", tell=heard.append)
    assert len(heard) == 1


def test_importing_the_package_imports_little(tmp_path):
    code = "import fmtlbench, sys, json; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert not {"pandas", "numpy", "torch", "msgspec", "importlib.metadata"} & set(json.loads(out))
