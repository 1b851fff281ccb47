"""docs/leaderboard is written from stored runs, and says what is missing of the grids."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.scenarios import scenario_files

ROOT = Path(__file__).parents[1]
GRIDS = sorted((ROOT / "results" / "leaderboard" / "grids").glob("*.yml"))


@pytest.fixture(scope="module")
def writer():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import write_leaderboard
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return write_leaderboard


def test_the_grids_have_the_whole_zoo_and_five_seeds():
    asked = [yaml.safe_load(grid.read_text()) for grid in GRIDS]
    names = {name for grid in asked for name in [*grid["algos"], *(v["algo"] for v in grid.get("variants", ()))]}
    built_in = {name for name in ALGORITHMS if ALGORITHMS.home_of(name).startswith("fmtlbench.")}
    assert names == built_in
    assert all(grid["seeds"] == "0-4" and grid["scenarios"][0] in scenario_files() for grid in asked)


def test_the_page_has_tables_and_says_what_is_missing(writer, tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "page"
    shutil.copytree(ROOT / "results" / "nano-3" / "iid1_sdmt", runs / "iid1_sdmt")
    (runs / "grids").mkdir()
    (runs / "grids" / "1-tiny.yml").write_text("algos: [local, fedper]\nscenarios: [iid1_sdmt]\nseeds: 0-1\n")
    writer.write(runs, out)
    page = (out / "README.md").read_text()
    # Runs of before code was recorded are in the tables, and count as missing for who runs the grid.
    assert "| 1-tiny | iid1_sdmt | 2 | 0 of 4 | all |" in page and "20 runs took" in page
    assert page.count("\n## ") == 1 + len(writer.PARTS)
    for name, text in {"README.md": "| FedPer |", "tables.csv": "FedPer", "tables.tex": "FedPer"}.items():
        assert text in (out / name).read_text()
    assert (out / "site" / "index.html").is_file()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    writer.write(runs, out)
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_command_that_fails_stops_it(writer, tmp_path):
    with pytest.raises(RuntimeError, match="exit code 2"):
        writer.ask("leaderboard", tmp_path / "nowhere")
