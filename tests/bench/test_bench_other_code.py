"""A bench whose runs other code has made already: they are planned anew, or taken if any code will do."""

from __future__ import annotations

import dataclasses
import json

import pytest
from fake_bench import imitation, summary_text

from fmtlbench.bench import plan as planning
from fmtlbench.bench.display import Display
from fmtlbench.bench.estimate import Pace
from fmtlbench.bench.workers import Workers
from fmtlbench.cli import main


@pytest.fixture
def made(bench):
    """Two finished runs of the grid, the second by other code: its method was another one."""
    plan = bench.plan("local,fedavg")
    local, fedavg = plan.runs
    for run in (local, fedavg):
        run.store.folder.mkdir(parents=True)
    (local.store.folder / "summary.json").write_text(summary_text(local))
    now = fedavg.store.code
    files = {**now.files, "method": {"algorithms/fedavg.py": "0" * 12}}
    fedavg.store.code = dataclasses.replace(now, method="0" * 64, files=files)
    then = {"sha256": fedavg.store.code.sha256, "parts": fedavg.store.code.parts, "files": files}
    sessions = [{"started": "", "versions": {}, "code": then}]
    manifest = {"config_hash": "", "data": {}, "sessions": sessions}
    (fedavg.store.folder / "manifest.json").write_text(json.dumps(manifest))
    (fedavg.store.folder / "summary.json").write_text(summary_text(fedavg))
    return bench


def dry_run(bench, capsys, *more):
    words = ["--algos", "local,fedavg", "--scenarios", bench.scenario, "--rounds", "2", "--device", "cpu"]
    assert main(["bench", *words, "--out", str(bench.out), "--dry-run", *more]) == 0
    return capsys.readouterr().out


def test_a_plan_says_what_was_made_by_other_code(made):
    plan = made.plan("local,fedavg")
    assert [run.state for run in plan.runs] == ["done", "other code"] and plan.missing() == plan.runs[1:]
    assert plan.counts() == {"done": 1, "resume": 0, "new": 0, "other code": 1, "damaged": 0, "refused": 0}
    run = plan.runs[1]
    assert run.store.folder == run.store.base.with_name(f"{run.store.base.name}-{run.store.code.sha256[:6]}")


def test_a_dry_run_says_it_in_one_line(made, capsys):
    out = dry_run(made, capsys)
    assert "1 other code" in out and (
        "other code: 1 run (method: fedavg.py changed): not taken, a folder of its own for each; --reuse any takes them"
    ) in out.replace("\n", " ")
    runs = json.loads(dry_run(made, capsys, "--format", "json"))["runs"]
    assert [run["other_code"] for run in runs] == [None, "method: fedavg.py changed"]
    assert "--reuse" not in dry_run(made, capsys, "--format", "sh")


def test_any_code_will_do_if_asked(made, capsys):
    out = dry_run(made, capsys, "--reuse", "any")
    assert "other code: 1 run (method: fedavg.py changed): taken as they are" in out.replace("\n", " ")
    runs = json.loads(dry_run(made, capsys, "--reuse", "any", "--format", "json"))["runs"]
    assert [run["state"] for run in runs] == ["done", "done"]
    listed = dry_run(made, capsys, "--algos", "local,fedavg,fedper", "--reuse", "any", "--format", "sh")
    assert listed.splitlines()[-1].count("--reuse any") == 1


def test_the_run_is_made_beside_the_old_one(made):
    plan = made.plan("local,fedavg")
    outcome = made.work(plan)
    assert outcome.complete and [record.outcome for record in outcome.records.values()] == ["reused", "ran"]
    assert len(list(made.out.rglob("fedavg/*/summary.json"))) == 2
    assert [run.state for run in made.plan("local,fedavg").runs] == ["done", "done"]


def test_code_that_is_edited_while_a_bench_works_is_no_failure(bench, monkeypatch):
    """The run's process reads the newer files: what it leaves is found by them."""
    plan = bench.plan("fedavg", with_local=False)
    planned = plan.runs[0].store.code
    newer = dataclasses.replace(planned, engine="1" * 64)
    monkeypatch.setattr(planning, "code_of", lambda *_: newer)
    imitate = imitation({}, bench.started)

    def command(run):
        run.store.code = newer
        words = imitate(run)
        run.store.code = planned
        return words

    outcome = Workers(plan, command, Display(), Pace()).work()
    assert outcome.complete and [record.outcome for record in outcome.records.values()] == ["ran"]
