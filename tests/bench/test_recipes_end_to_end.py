"""Recipes from the first run to the written table or figure, at a size of seconds.

The suite makes one of each paper, `make matrix` all of them. Runs are made in this process, in the folders that the
plan gives them, so that the command finds them finished.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from kit import as_flags
from made_recipes import plan

from fmtlbench.api import launch
from fmtlbench.bench.recipes import make_table
from fmtlbench.cli import main
from fmtlbench.reports.papers.recipes import load_recipe, recipe_names

QUICK = {
    "data.train_samples": {"pascal": 24, "nyud": 16},
    "data.test_samples": {"pascal": 2, "nyud": 2},
    "train.batch_size": 4,
    "federation.rounds": 1,
    "evaluation.every": 1,
}
CHOSEN = ("fedhca2_table5_mt_mt", "matfl_figure5")


def reproduce(name: str, root: Path, *flags: str) -> int:
    """Make the missing runs here, then ask for the recipe."""
    own = {key for asked in load_recipe(name).wanted for key in asked.overrides}
    overrides = {key: value for key, value in QUICK.items() if key not in own}
    planned = plan(name, root / "runs", "nano", **overrides)
    for run in planned.plan.runs:
        launch(run.request)
    words = as_flags(overrides)
    argv = ["papers", "reproduce", name, "--preset", "nano", "--out", str(root / "runs"), "-o", str(root / "made")]
    argv.append("--no-energy")
    return main([*argv, *words, *flags])


def check_files(name: str, folder: Path) -> None:
    """A table has every row of the published one, with numbers; a figure is there as PDF and PNG."""
    recipe = load_recipe(name)
    if recipe.is_figure:
        for ending in ("pdf", "png"):
            assert (folder / f"{name}.{ending}").stat().st_size > 5000
        return
    table = recipe.table
    for ending in ("txt", "md", "tex"):
        assert recipe.place in (folder / f"{name}.{ending}").read_text()
    with (folder / f"{name}.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == name]
    assert [[row[head] for head in table.heads] for row in rows] == [[r[h] for h in table.heads] for r in table.rows]
    measured = [[row[column] for column in table.columns] for row in rows]
    refused = [words for words in measured if set(words) == {"NULL"}]
    lacking = [words for words in measured if not any(words)]
    printed = [[row[column] for column in table.columns] for row in table.rows]
    assert len(refused) == sum(set(words) == {"NULL"} for words in printed) or not table.is_printed
    assert len(lacking) == (2 if name == "fedhca2_supp_table3_backbones" else 0)  # two backbones have no small form
    if recipe.kind != "cost":  # no target is reached in one round
        assert all(all(words) for words in measured if words not in lacking) or recipe.kind == "networks"


def test_a_table_of_which_four_runs_are_there(tmp_path):
    """FMTL-Bench's smallest table takes 18 runs: here those of Local and FedAvg, with both networks."""
    planned = plan("fmtlbench_table8_cost_iid1", tmp_path, "nano", **QUICK)
    for asked in planned.recipe.wanted[:4]:
        for run in planned.runs(asked).values():
            launch(run.request)
    made = make_table(planned)
    place = [column.key for column in made.columns].index("global_delta")
    assert [made.cells[number][place].value is not None for number in range(18)] == [True] * 4 + [False] * 14
    assert made.cells[0][place].value == 0 and made.cells[4][place].note == "not run yet"
    traffic = [column.key for column in made.columns].index("comm_per_round_GB")
    assert made.cells[0][traffic].value == 0 < made.cells[3][traffic].value < made.cells[2][traffic].value


@pytest.mark.parametrize("name", CHOSEN)
def test_one_recipe_of_each_paper_from_runs_to_files(name, tmp_path, capsys):
    assert reproduce(name, tmp_path) == 0
    check_files(name, tmp_path / "made")
    said = capsys.readouterr()
    assert "nano" in (said.out + (tmp_path / "made" / f"{name}.txt").read_text())
    assert '"ran"' not in said.err  # nothing was run a second time


def test_the_command_makes_what_is_missing(tmp_path, capsys):
    """One run is made in a process of its own, as by bench."""
    words = as_flags(QUICK)
    argv = ["papers", "reproduce", "fedhca2_figure7", "--preset", "nano", "--out", str(tmp_path / "runs")]
    assert main([*argv, "--no-energy", *words, "-o", str(tmp_path / "made")]) == 0
    check_files("fedhca2_figure7", tmp_path / "made")
    notes = (tmp_path / "made" / "fedhca2_figure7.txt").read_text()
    assert "not the paper's setting: preset nano (paper: paper)" in notes
    capsys.readouterr()
    assert main([*argv, *words, "--status", str(tmp_path / "runs"), "--format", "json"]) == 0
    (state,) = json.loads(capsys.readouterr().out)
    assert (state["runs"], state["done"]) == (1, 1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """Recipes share their runs."""
    return tmp_path_factory.mktemp("recipes")


@pytest.mark.matrix
@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_from_runs_to_files(name, shared):
    assert reproduce(name, shared) == 0
    check_files(name, shared / "made")
