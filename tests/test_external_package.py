"""A package of somebody else adds one of everything, touches no file of ours, and runs two rounds with all of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings it
    import tomli as tomllib

EXAMPLE = Path(__file__).parents[1] / "examples" / "hello_fmtl"
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
    "model.architecture": "one_layer", "data.size.nyud": "[32,32]", "data.size.stripes": "[32,64]",
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


def copy_of(installed, folder):
    """The same, with files of its own that a test may edit."""
    shutil.copytree(installed, folder, symlinks=False)
    return folder


def fmtlbench(installed, *argv, **options):
    environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error::UserWarning", "-m", "fmtlbench", *map(str, argv)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, **options)


@pytest.mark.parametrize("kind", [*BRINGS, "scenarios"])
def test_it_is_listed_without_torch(installed, kind):
    name = BRINGS[kind][1] if kind in BRINGS else "hello"
    code = (
        "import sys; from fmtlbench.cli import main; code = main(['list', sys.argv[1], '--json']); "
        "sys.exit(code or ('torch is loaded' if 'torch' in sys.modules else 0))"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, "-c", code, kind], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert name in [entry["name"] for entry in json.loads(done.stdout)]


def test_two_rounds_with_all_of_it(installed, tmp_path):
    settings = [word for key, value in OPTIONS.items() for word in ("--set", f"{key}={value}")]
    done = fmtlbench(
        installed, "run", "--algo", "halfway+first_more", "--scenario", "hello", "--rounds", 2, "--no-energy",
        "--device", "cpu", "--out", tmp_path / "runs", "--format", "json", "--save-predictions", *settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [summary] = [json.loads(file.read_text()) for file in (tmp_path / "runs").rglob("summary.json")]
    scored = {(score["dataset"], score["task"], score["metric"]) for score in summary["scores"] if score["primary"]}
    assert scored == {
        ("stripes", "semseg", "mIoU"), ("stripes", "brightness", "dErr"), ("nyud", "disparity", "RMSE"),
    }  # fmt: skip
    assert summary["title"] == "Halfway" and summary["rounds"] == 2
    assert summary["weighting"]["title"] == "First" and summary["weighting"]["options"] == {"factor": 2.0}
    files = [path for path in (tmp_path / "runs").rglob("predictions/**/*") if "examples" not in path.parts]
    saved = {path.parent.name for path in files if path.suffix in (".png", ".npy")}
    assert saved == {"semseg", "brightness", "disparity"}
    table = fmtlbench(installed, "leaderboard", tmp_path / "runs", "--format", "csv")
    assert table.returncode == 0, table.stderr
    assert "stripes/brightness/dErr" in table.stdout and "Halfway+First" in table.stdout


def test_tables_outlive_the_package(installed, tmp_path):
    """Once it is uninstalled, its runs are still shown, by the names they were made with."""
    settings = [word for key, value in OPTIONS.items() for word in ("--set", f"{key}={value}")]
    done = fmtlbench(
        installed, "run", "--algo", "halfway", "--scenario", "hello", "--rounds", 1, "--no-energy", "--device", "cpu",
        "--out", tmp_path / "runs", "--format", "json", *settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = fmtlbench(tmp_path, "leaderboard", tmp_path / "runs", "--format", "csv")
    assert table.returncode == 0, table.stderr
    assert "Halfway" in table.stdout and "stripes/brightness/dErr" in table.stdout


def test_an_edit_of_the_package_makes_another_run(installed, tmp_path):
    """What it brings counts by its files; an edit of a comment does not."""
    site = copy_of(installed, tmp_path / "site")
    settings = [word for key, value in OPTIONS.items() for word in ("--set", f"{key}={value}")]

    def run():
        return fmtlbench(
            site, "run", "--algo", "halfway", "--scenario", "hello", "--rounds", 1, "--no-energy", "--device", "cpu",
            "--out", tmp_path / "runs", "--format", "json", *settings,
        )  # fmt: skip

    first = json.loads(run().stdout)
    with (site / "hello_fmtl" / "metric.py").open("a") as file:
        file.write("# a comment\n")
    assert json.loads(run().stdout)["reused"]
    with (site / "hello_fmtl" / "metric.py").open("a") as file:
        file.write("ADDED = 1\n")
    done = run()
    second = json.loads(done.stdout)
    assert not second["reused"] and second["folder"].startswith(f"{first['folder']}-")
    assert "was made by other code (metrics: metric.py changed)" in done.stderr


@pytest.mark.parametrize(
    ("kind", "wrong"), [("algorithms", "halfwey"), ("tasks", "brightnes"), ("weightings", "first_mor")]
)
def test_a_slip_is_told_the_nearest_name(installed, kind, wrong):
    argv = {
        "algorithms": ("--algo", wrong, "--scenario", "hello"),
        "weightings": ("--algo", f"halfway+{wrong}", "--scenario", "hello"),
        "tasks": ("--algo", "halfway", "--scenario", "hello", "--set", f"scenario.clients.0.tasks=[{wrong}]"),
    }[kind]
    done = fmtlbench(installed, "run", *argv)
    assert done.returncode == 2 and f"did you mean '{BRINGS[kind][1]}'" in done.stderr
