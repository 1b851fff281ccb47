"""What a bench leaves in the place of runs that are refused or failed, and when it goes again."""

from __future__ import annotations

import json

import pytest
from fake_bench import summary_text
from fake_run import SUMMARY

from fmtlbench.bench.absences import note_plan
from fmtlbench.config.resolve import resolve
from fmtlbench.reports.collect import collect
from fmtlbench.runs.absence import refused_file

HALF = {"federation.participation": 0.5}  # local training refuses it


def notes(bench):
    return {file.relative_to(bench.out): json.loads(file.read_text()) for file in bench.out.rglob("*.absent.json")}


def test_a_refusal_is_stored_with_the_setting_of_the_runs_it_belongs_to(bench):
    plan = bench.plan("local,fedavg", seeds="0-1", overrides=HALF)
    note_plan(plan)
    ((file, note),) = notes(bench).items()
    assert file.parts[:2] == ("duo", "local") and file.name.startswith("nano-synth-")
    assert (note["why"], note["title"], note["options"], note["seed"]) == ("refused", "Local", {}, None)
    assert "has no meaning" in note["reason"]
    assert {note["setting"]} == {run.config.setting().key for run in plan.runs}
    assert [label for label, _ in collect([bench.out]).absences] == ["Local"]


def test_a_refused_variant_keeps_its_options(bench):
    scenario = "niid6_ubcdmt"
    given = {"train.batch_size": 4}
    note_plan(bench.plan("fedprox[algo.mu=0.5],fedrep", scenario=scenario, overrides=given))
    (note,) = notes(bench).values()
    assert note["options"] == {"shared": "all", "weighting": "equal", "mu": 0.5}
    (label,) = (label for label, _ in collect([bench.out]).absences)
    assert label == "FedProx (mu=0.5)"


def test_a_scenario_of_refusals_only_has_the_setting_of_its_local_runs(bench):
    note_plan(bench.plan("fedavg", scenario="niid6_ubcdmt,iid1_sdmt", rounds=3))
    (note,) = notes(bench).values()
    wanted = resolve("local", "niid6_ubcdmt", overrides={"federation.rounds": 3})
    assert (note["setting"], note["rounds"]) == (wanted.setting().key, 3)


def test_a_setting_that_is_impossible_for_every_method_leaves_no_note(bench):
    overrides = {"data.size": {"nyud": [32, 64]}}  # nothing for the other dataset of the first scenario
    plan = bench.plan("fedavg", scenario=f"{bench.scenario},st_nyud", overrides=overrides)
    assert plan.refusals and not plan.absences


def test_a_pair_that_became_possible_loses_its_note(bench):
    plan = bench.plan("fedavg", with_local=False)
    refused = bench.plan("local,fedavg", overrides=HALF)
    note_plan(refused)
    (file,) = refused.absences
    config = plan.runs[0].config
    stale = bench.out / refused_file("fedavg", config.algorithm.options, config.setting())
    stale.parent.mkdir(parents=True, exist_ok=True)
    stale.write_text(json.dumps(SUMMARY))
    note_plan(plan)
    assert not stale.exists() and (bench.out / file).exists()


def test_an_equal_note_is_not_written_again(bench):
    plan = bench.plan("local,fedavg", overrides=HALF)
    note_plan(plan)
    (file,) = bench.out.rglob("*.absent.json")
    before = file.stat().st_mtime_ns, file.stat().st_ino
    note_plan(plan)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_a_failure_is_stored_until_the_run_is_done(bench):
    plan = bench.plan("fedavg", seeds="0-1", with_local=False)
    bench.work(plan, {"fedavg": "fail"}, retries=0)
    assert {note["seed"]: note["reason"] for note in notes(bench).values()} == {
        0: "the disk is on fire", 1: "the disk is on fire",
    }  # fmt: skip
    assert {note["why"] for note in notes(bench).values()} == {"failed"}
    bench.work(bench.plan("fedavg", seeds="0", with_local=False))
    assert [note["seed"] for note in notes(bench).values()] == [1]
    left = bench.plan("fedavg", seeds="1", with_local=False)
    (left.runs[0].store.folder / "summary.json").write_text(summary_text(left.runs[0]))  # by `fmtlbench run`
    note_plan(bench.plan("fedavg", seeds="1", with_local=False))
    assert notes(bench) == {}


def test_an_interrupted_run_has_not_failed(bench):
    outcome = bench.work(bench.plan("fedavg", with_local=False), {"fedavg": "hang"}, until="fedavg")
    assert outcome.count("left") == 1 and notes(bench) == {}


def test_a_note_that_cannot_be_written_does_not_stop_the_bench(bench, monkeypatch):
    from fmtlbench.runs import absence

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(absence, "write_json", full)
    outcome = bench.work(bench.plan("fedavg,fedper", with_local=False), {"fedavg": "fail"}, retries=0)
    assert (outcome.count("failed"), outcome.count("ran")) == (1, 1)


@pytest.mark.parametrize("flags", [["--dry-run"], []])
def test_only_a_bench_that_works_writes(bench, flags):
    process = bench.process("--algos", "local,fedavg", "--set", "federation.participation=0.5", *flags)
    assert process.wait(60) == 0
    assert len(notes(bench) if bench.out.exists() else {}) == (not flags)
