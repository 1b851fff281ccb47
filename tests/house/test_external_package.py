"""A package of somebody else adds one of everything, touches no file of ours, and runs two rounds with all of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from kit import as_flags
from rooms import ROOT

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings it
    import tomli as tomllib

EXAMPLE = ROOT / "examples" / "hello_fmtl"
BRINGS = {
    "algorithms": ("method", "halfway"),
    "architectures": ("network", "one_layer"),
    "datasets": ("dataset", "stripes"),
    "metrics": ("metric", "darkest_error"),
    "partitions": ("partition", "in_turn"),
    "tasks": ("task", "brightness"),
    "weightings": ("weighting", "first_more"),
}
OPTIONS = {
    "model.architecture": "one_layer", "data.size.nyud": [32, 32], "data.size.stripes": [32, 64],
    "data.train_samples.nyud": 6, "data.test_samples.nyud": 4, "train.batch_size": 2, "evaluation.batch_size": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder as pip would leave it: the package and its metadata, found through PYTHONPATH."""
    site = tmp_path_factory.mktemp("site")
    (site / "hello_fmtl").symlink_to(EXAMPLE / "hello_fmtl", target_is_directory=True)
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = site / f"hello_fmtl-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in entries.items())]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return site


# Asks the command line for each argv of a list, all in this process.
ASK = """
import contextlib, io, json, sys
from fmtlbench.cli import main
answers = []
for argv in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(argv)
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps({"answers": answers, "torch": "torch" in sys.modules}))
"""


def python(site, *words):
    """A process that finds what is installed in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error::UserWarning", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def ask(site, *commands):
    """What one process answers to commands, and whether it loaded torch for them."""
    done = python(site, "-c", ASK, json.dumps([[str(word) for word in argv] for argv in commands]))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout).values()


def run(site, folder):
    return python(
        site, "-m", "fmtlbench", "run", "--algo", "halfway+first_more", "--scenario", "hello", "--rounds", 2,
        "--no-energy", "--device", "cpu", "--out", folder, "--format", "json", "--save-predictions", *as_flags(OPTIONS),
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(installed, tmp_path_factory):
    """A folder with a run of two rounds that uses everything the package brings."""
    folder = tmp_path_factory.mktemp("made")
    done = run(installed, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_all_of_it_is_listed_without_torch(installed):
    kinds = {**BRINGS, "scenarios": (None, "hello")}
    answers, torch = ask(installed, *(("list", kind, "--json") for kind in kinds))
    assert not torch and [code for code, _, _ in answers] == [0] * len(kinds)
    for (kind, (_, name)), (_, out, _) in zip(kinds.items(), answers, strict=True):
        assert name in [entry["name"] for entry in json.loads(out)], kind


def test_two_rounds_with_all_of_it(made):
    [summary] = [json.loads(file.read_text()) for file in made.rglob("summary.json")]
    scored = {(score["dataset"], score["task"], score["metric"]) for score in summary["scores"] if score["primary"]}
    assert scored == {
        ("stripes", "semseg", "mIoU"), ("stripes", "brightness", "dErr"), ("nyud", "disparity", "RMSE"),
    }  # fmt: skip
    assert summary["title"] == "Halfway" and summary["rounds"] == 2
    assert summary["weighting"]["title"] == "First" and summary["weighting"]["options"] == {"factor": 2.0}
    files = [path for path in made.rglob("predictions/**/*") if "examples" not in path.parts]
    saved = {path.parent.name for path in files if path.suffix in (".png", ".npy")}
    assert saved == {"semseg", "brightness", "disparity"}


def test_tables_outlive_the_package(installed, made, tmp_path):
    """Once it is uninstalled, its runs are still shown, by the names they were made with."""
    tables = [ask(site, ("leaderboard", made, "--format", "csv")) for site in (installed, tmp_path)]
    ((code, text, _),), _ = tables[0]
    assert code == 0 and "stripes/brightness/dErr" in text and "Halfway+First" in text
    ((code, without, _),), _ = tables[1]
    assert code == 0 and without == text


def test_an_edit_of_the_package_makes_another_run(installed, made, tmp_path):
    """What it brings counts by its files; where they lie does not, nor does an edit of a comment."""
    site = shutil.copytree(installed, tmp_path / "site", symlinks=False)
    runs = shutil.copytree(made, tmp_path / "runs")
    with (site / "hello_fmtl" / "metric.py").open("a") as file:
        file.write("# a comment\n")
    first = json.loads(run(site, runs).stdout)
    assert first["reused"]
    with (site / "hello_fmtl" / "metric.py").open("a") as file:
        file.write("ADDED = 1\n")
    done = run(site, runs)
    second = json.loads(done.stdout)
    assert not second["reused"] and second["folder"].startswith(f"{first['folder']}-")
    assert "was made by other code (metrics: metric.py changed)" in done.stderr


def test_a_slip_is_told_the_nearest_name(installed):
    own = ("--scenario", "hello")
    commands = {
        "halfway": ("run", "--algo", "halfwey", *own),
        "first_more": ("run", "--algo", "halfway+first_mor", *own),
        "brightness": ("run", "--algo", "halfway", *own, "--set", "scenario.clients.0.tasks=[brightnes]"),
    }
    answers, _ = ask(installed, *commands.values())
    for name, (code, _, said) in zip(commands, answers, strict=True):
        assert code == 2 and f"did you mean '{name}'" in said
