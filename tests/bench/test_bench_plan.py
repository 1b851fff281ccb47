"""Which runs a request means, what lies on disk already, what is refused, and how long it will take."""

from __future__ import annotations

import json

import pytest
from fake_bench import summary_text

from fmtlbench.base.errors import UsageError
from fmtlbench.bench.estimate import Pace


def names(plan):
    return [(run.label, run.config.seed, run.state) for run in plan.runs]


def test_local_runs_are_added_and_come_first_within_a_seed(bench):
    plan = bench.plan("fedhca2,fedavg", seeds="0-1")
    assert names(plan) == [
        ("local", 0, "new"), ("fedhca2", 0, "new"), ("fedavg", 0, "new"),
        ("local", 1, "new"), ("fedhca2", 1, "new"), ("fedavg", 1, "new"),
    ]  # fmt: skip
    assert {run.label for run in bench.plan("fedhca2,fedavg", with_local=False).runs} == {"fedhca2", "fedavg"}


def test_local_runs_share_every_override_but_the_methods_own(bench):
    plan = bench.plan("fedavg,fedavg[algo.shared=encoder,train.lr=1e-3]", overrides={"train.batch_size": 4})
    runs = {run.label: run for run in plan.runs}
    assert list(runs) == ["local", "local[train.lr=0.001]", "fedavg", "fedavg[algo.shared=encoder,train.lr=0.001]"]
    assert runs["local"].config.setting() == runs["fedavg"].config.setting()
    pair = [runs[f"{name},train.lr=0.001]".replace("[,", "[")] for name in ("local[", "fedavg[algo.shared=encoder")]
    assert pair[0].config.setting() == pair[1].config.setting() != runs["local"].config.setting()


def test_local_is_not_added_where_it_is_asked_for_or_useless(bench):
    assert [run.label for run in bench.plan("local").runs] == ["local"]
    plan = bench.plan("fedavg,local", overrides={"federation.participation": 0.5})
    assert [run.label for run in plan.runs] == ["fedavg"] and len(plan.refusals) == 1


def test_equal_configs_are_one_run(bench):
    plan = bench.plan("fedhca2,fedhca2[algo.c=0.4]", with_local=False)  # the default, written out
    assert len(plan.runs) == 1
    assert [record["duo"] for record in plan.table(lambda run: run.state)] == ["1 new", "1 new"]


def test_states_come_from_the_folders(bench):
    fresh = bench.plan("fedavg", seeds="0-3", with_local=False)
    for run in fresh.runs[:3]:
        run.store.folder.mkdir(parents=True)
    (fresh.runs[0].store.folder / "summary.json").write_text(summary_text(fresh.runs[0]))
    (fresh.runs[1].store.folder / "metrics.jsonl").write_text('{"round": 1, "bytes_up": 1, "bytes_down": 1}\n{"rou')
    plan = bench.plan("fedavg", seeds="0-3", with_local=False)
    assert [(run.state, run.rounds_done, run.rounds_left) for run in plan.runs] == [
        ("done", 2, 0), ("resume", 1, 1), ("new", 0, 2), ("new", 0, 2)
    ]  # fmt: skip
    assert plan.counts() == {"done": 1, "resume": 1, "new": 2, "other code": 0, "damaged": 0, "refused": 0}
    assert plan.table(lambda run: run.state) == [{"name": "fedavg", "duo": "1 done, 1 resume, 2 new"}]
    (fresh.runs[1].store.folder / "metrics.jsonl").write_text("damaged\n")
    (damaged,) = bench.plan("fedavg", seeds="1", with_local=False).runs
    assert damaged.state == "damaged" and "metrics.jsonl cannot be read: line 1" in damaged.problem


def test_a_refused_pair_is_listed_with_its_reason(bench):
    plan = bench.plan("local,fedavg", overrides={"federation.participation": 0.5}, seeds="0-1")
    (refusal,) = plan.refusals
    assert refusal.label == "local" and "federation.participation has no meaning" in refusal.reason
    assert names(plan) == [("fedavg", 0, "new"), ("fedavg", 1, "new")] and plan.counts()["refused"] == 2
    assert plan.table(lambda run: run.state)[0] == {"name": "local", "duo": "refused"}


def test_values_that_do_not_go_together_are_a_refusal_of_that_scenario_only(bench):
    """The cross check between two sections: here a scenario with a dataset that the sizes leave out."""
    overrides = {"data.size": {"nyud": [32, 64]}}
    plan = bench.plan("fedavg", scenario=f"{bench.scenario},st_nyud", overrides=overrides)
    assert {run.config.scenario.name for run in plan.runs} == {"st_nyud"}
    (refusal,) = plan.refusals
    assert refusal.scenario == "duo" and "no entry for 'pascal'" in refusal.reason


def test_nothing_but_refusals_is_wrong_usage(bench):
    with pytest.raises(UsageError, match="nothing to run: local on duo: "):
        bench.plan("local", overrides={"federation.participation": 0.5})


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"train.lrr": 1}, "--set train.lrr=1: train.lrr: unknown key 'lrr'; did you mean 'lr'"),
        ({"train.lr": "x"}, "--set train.lr=x: train.lr: expected a finite number"),
        ({"algo.c": 0.2}, "for fedavg; an option of one method only: --algos NAME[algo.option=value]"),
        ({"seed": 2}, "the seed is given by --seed"),
    ],
)
def test_a_mistake_fails_before_anything_is_planned(bench, overrides, message):
    with pytest.raises(UsageError) as caught:
        bench.plan("fedhca2,fedavg", overrides=overrides)
    assert message in str(caught.value)


def test_a_files_wrong_value_is_named_with_its_line(bench, tmp_path):
    file = tmp_path / "grid.yml"
    file.write_text("variants:\n  - algo: fedhca2\n    set:\n      algo.c: 0.2\n      algo.cc: 1\n")
    with pytest.raises(UsageError) as caught:
        bench.plan(None, file=file)
    assert str(caught.value).startswith(f"{file}:5: algo.cc=1: algo.cc: unknown key 'cc'; did you mean")
    file.write_text("algos: fedavg\nset:\n  train.lr: -1\n")
    with pytest.raises(UsageError) as caught:
        bench.plan(None, file=file)
    assert str(caught.value).startswith(f"{file}:3: train.lr=-1: ")


def test_the_longer_side_of_the_table_goes_down(bench):
    plan = bench.plan("fedavg", scenario="st_mt_1,st_mt_2,st_nyud")
    table = plan.table(lambda run: run.state)
    assert [record["name"] for record in table] == ["st_mt_1", "st_mt_2", "st_nyud"]
    assert table[0] == {"name": "st_mt_1", "fedavg": "1 new", "local": "1 new"}


# -- estimates -------------------------------------------------------------------------------------------------------


def finish(run, seconds):
    run.store.folder.mkdir(parents=True)
    (run.store.folder / "config.yaml").write_text(run.config.dump())
    (run.store.folder / "cost.json").write_text(json.dumps({"seconds": {}, "seconds_total": seconds}))
    (run.store.folder / "summary.json").write_text(summary_text(run))


def estimate(plan, jobs=1):
    pace = Pace()
    pace.learn_folder(plan)
    return pace.total(plan.missing(), jobs)


def test_without_a_finished_run_the_time_is_unknown(bench):
    found = estimate(bench.plan())
    assert (found.known, found.unknown) == (0, 2) and found.text().startswith("unknown")


def test_a_methods_own_pace_counts_first_then_the_others_of_its_setting(bench):
    plan = bench.plan("local,fedavg,fedper", seeds="0")
    finish(plan.runs[0], 20.0)  # local: 10 s a round
    finish(plan.runs[1], 60.0)  # fedavg: 30 s a round
    later = bench.plan("local,fedavg,fedper", seeds="0-1")
    pace = Pace()
    pace.learn_folder(later)
    seconds = {(run.label, run.config.seed): pace.seconds(run) for run in later.missing()}
    assert seconds == {("fedper", 0): 40.0, ("local", 1): 20.0, ("fedavg", 1): 60.0, ("fedper", 1): 40.0}
    assert pace.total(later.missing(), 1).seconds == 160.0 and pace.total(later.missing(), 2).seconds == 80.0
    assert pace.total(later.missing(), 9).seconds == 60.0  # not shorter than the longest
    assert pace.total(later.missing(), 1).text() == "about 2 min 40 s"


def test_runs_outside_the_plan_count_if_only_their_number_of_rounds_differs(bench):
    for run in bench.plan("fedavg", seeds="5", overrides={"train.batch_size": 2}, with_local=False).runs:
        finish(run, 1000.0)
    assert estimate(bench.plan("fedavg")).known == 0
    (short,) = bench.plan("fedavg", seeds="6", rounds=1, with_local=False).runs
    finish(short, 4.0)
    assert estimate(bench.plan("fedavg", with_local=False)).seconds == 8.0


def test_a_setting_without_a_measure_makes_the_sum_a_lower_bound(bench):
    for run in bench.plan("local,fedavg").runs:
        finish(run, 20.0)
    found = estimate(bench.plan("local,fedavg,fedavg[train.batch_size=8]", seeds="0-1"))
    assert found.text() == "at least 40 s (unknown for 4 of 6 runs)"


def test_damaged_costs_teach_nothing(bench):
    (run,) = bench.plan("local").runs
    finish(run, 20.0)
    (run.store.folder / "cost.json").write_text("{")
    assert estimate(bench.plan("local", seeds="0-1")).known == 0
