"""`fmtlbench.bench(…)` from Python: what the verb does, as a value."""

from __future__ import annotations

import doctest
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fmtlbench
from fmtlbench.base.errors import UsageError
from fmtlbench.bench import local_jobs, request
from fmtlbench.bench.display import Lines


@pytest.fixture
def call(bench, monkeypatch):
    """The function with imitated runs, in the folder of `bench`."""
    from fake_bench import imitation

    def do(algos="fedavg", modes=None, **asked):
        monkeypatch.setattr(local_jobs, "run_command", imitation(modes or {}, bench.started))
        asked = {"scenarios": bench.scenario, "rounds": 2, "device": "cpu", "out": bench.out, **asked}
        return fmtlbench.bench(algos=algos, **asked)

    return do


def test_the_example_of_the_docstring(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(request.bench, "bench", globs={})
    runner = doctest.DocTestRunner()
    assert runner.run(example).attempted == 5 and runner.failures == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "before", ["", "import fmtlbench.bench.plan", "import fmtlbench.api", "from fmtlbench import run"]
)
def test_whatever_was_imported_before_it_can_be_called(before):
    """In a process of its own: Python gives the package its name in `fmtlbench` as soon as a part of it is imported."""
    code = f"{before}\nimport fmtlbench\ntry:\n fmtlbench.bench()\nexcept fmtlbench.UsageError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.startswith("which algorithms?")


def test_it_plans_as_the_verb_does(bench, call):
    plan = call(["fedavg", "fedhca2[algo.c=0.2]"], seeds=range(2), dry_run=True, **{"train.batch_size": 4}).plan
    same = bench.plan("fedavg,fedhca2[algo.c=0.2]", seeds="0-1", overrides={"train.batch_size": 4})
    assert [run.config.hash() for run in plan.runs] == [run.config.hash() for run in same.runs]
    assert [run.label for run in plan.runs] == [run.label for run in same.runs] and not bench.out.exists()


def test_it_does_what_is_missing_and_says_how_it_ended(bench, call):
    said = io.StringIO()
    done = call("local,fedavg", {"fedavg": "fail"}, jobs=2, retries=0, progress=Lines(said))
    assert not done.complete and done.table() == [
        {"name": "local", "duo": "1 ran"},
        {"name": "fedavg", "duo": "1 failed"},
    ]
    assert json.loads(said.getvalue().splitlines()[0])["event"] == "plan"
    record = done.record()
    assert record["counts"]["failed"] == 1 and "the disk is on fire" in str(record["runs"])
    again = call("local,fedavg", local=False, budget="1h")
    assert again.complete and again.table()[0]["duo"] == "1 reused" and len(bench.starts()) == 3


def test_a_grid_file_a_sweep_and_a_choice(bench, call, tmp_path):
    grid = tmp_path / "grid.yml"
    grid.write_text("algos: fedavg\nseeds: 0-1\n")
    swept = call(None, grid=grid, sweep={"train.lr": [1e-3, 2e-3]}, local=False, dry_run=True)
    assert [record["name"] for record in swept.table()] == ["fedavg[train.lr=0.001]", "fedavg[train.lr=0.002]"]
    assert len(swept.plan.runs) == 4
    scores = {"fedavg": "mIoU=40", "fedavg[train.lr=0.001]": "mIoU=50", "fedavg[train.lr=0.002]": "mIoU=45"}
    tuned = call("fedavg", scores, sweep={"train.lr": "0.001,0.002"}, local=False, tune=True, seeds="0-1")
    assert tuned.complete and tuned.search["choices"][0]["chosen"] == {"train.lr": 0.001}
    assert {run.config.train.lr for run in tuned.plan.runs} == {0.001} and Path(tuned.search["file"]).is_file()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"seed": 1}, r"^seed=1: is for one run; a bench has"),
        ({"fresh": True}, r"^fresh=True: is for one run"),
        ({"jobs": 0}, r"^--jobs 0: expected a whole number"),
        ({"hosts": "cloud"}, r"^--hosts: no hosts 'cloud'|^no hosts 'cloud'|hosts 'cloud'"),
        ({"hosts": "ray", "executor": "ray"}, r"^--hosts ray, --executor ray: whole runs"),
        ({"budget": "soon"}, r"^--budget soon"),
        ({"seeds": []}, r"^--seeds: ''"),
        ({"validation": 0.1}, r"^--validation 0.1: is for --tune"),
        ({"country": "FRX"}, r"--country FRX"),
        ({"train.lrr": 1}, r"train\.lrr: unknown key 'lrr'"),
        ({"sweep": {"train.lr": []}}, r"^--sweep train.lr=: expected key=range"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_touched(bench, call, asked, message):
    with pytest.raises(UsageError, match=message):
        call(**asked)
    assert not bench.out.exists() and not bench.started.exists()
