"""Tuning: equal budgets, a choice that never sees a test image, and a record of it all."""

from __future__ import annotations

import json

import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.bench.tuning import Rules, choose, identify, plan_chosen, plan_tuning, record_tuning
from fmtlbench.config.request import RunRequest
from fmtlbench.runs.folder import RunFolder

SEARCH = {"search": ["train.lr=1e-3..1e-2:log", "fedprox:algo.mu=0.01..1:log"], "trials": 3, "tune": True}


@pytest.fixture
def study(bench):
    """The tuning of a grid; its runs get scores by `score(config)` and no training."""
    import fake_bench
    import fake_run

    class Study:
        template = RunRequest("", "", out=bench.out, device="cpu")

        def plan(self, rules=None, with_local=True, **flags):
            asked = {"algos": "fedavg,fedprox", "scenarios": bench.scenario, "seeds": "0-1", "rounds": 2, **SEARCH}
            self.grid = read_grid(None, Flags(**{**asked, **flags}))
            self.tuning = plan_tuning(self.grid, rules or Rules(), self.template, "cpu", with_local)
            return self.tuning

        def finish(self, plan, score):
            for run in plan.runs:
                value = score(run.config)
                if value is not None:
                    run.store.folder.mkdir(parents=True, exist_ok=True)
                    summary = {**fake_run.summary(f"mIoU={value}"), "code": json.loads(fake_bench.code_text(run))}
                    (run.store.folder / "summary.json").write_text(json.dumps(summary))

        def choose(self, score, **given):
            self.finish(self.plan(**given).plan, score)
            return {c.search.asked.label: c for c in choose(self.tuning)}

        def chosen(self, choices):
            return plan_chosen(self.tuning, list(choices.values()), self.template, "cpu")

    return Study()


def best_at(lr):
    return lambda config: 50 - abs(config.train.lr - lr) * 1000


def test_every_method_has_the_same_trials_on_validation_and_never_on_test(study, bench):
    tuning = study.plan()
    assert [s.asked.label for s in tuning.searches] == ["fedavg", "fedprox", "local"]
    assert [len(s.trials) for s in tuning.searches] == [4, 4, 4] and tuning.budget == 3
    rates = [[trial.get("train.lr") for trial in s.trials] for s in tuning.searches]
    assert rates[0] == rates[1] == rates[2]  # the same values of what they share
    assert all("algo.mu" in trial for trial in tuning.searches[1].trials[1:])
    assert all(run.config.data.validation == 0.2 and run.config.seed == 0 for run in tuning.plan.runs)
    assert all(bench.out / ".bench" / "trials" in run.store.folder.parents for run in tuning.plan.runs)


def test_the_best_on_validation_is_run_on_test_with_all_seeds(study, bench):
    choices = study.choose(best_at(2e-3))
    tried = [trial.overrides["train.lr"] for trial in choices["fedavg"].trials]
    nearest = min(tried, key=lambda lr: abs(lr - 2e-3))
    assert choices["fedavg"].chosen == {"train.lr": nearest} and choices["fedavg"].delta_m > 0
    assert set(choices["fedprox"].chosen) == {"train.lr", "algo.mu"}
    plan, owners = study.chosen(choices)
    assert sorted((run.label, run.config.seed) for run in plan.runs) == [
        (name, seed) for name in ("fedavg", "fedprox", "local") for seed in (0, 1)
    ]
    assert all(run.config.data.validation == 0 for run in plan.runs)
    assert all(run.config.train.lr == nearest for run in plan.runs if run.label == "fedavg")
    file = record_tuning(bench.out, study.tuning, list(choices.values()), owners)
    whole = json.loads(file.read_text())
    assert whole["budget"] == 3 and "Δm" in whole["criterion"] and whole["validation"] == 0.2
    assert [len(one["trials"]) for one in whole["choices"]] == [3, 3, 3]
    assert all(trial["delta_m"] is not None for one in whole["choices"] for trial in one["trials"])
    for run in plan.runs:
        record = RunFolder(run.store.folder).tuning()
        assert record["trials"] == 3 and record["chosen"] == choices[run.label].chosen
        assert record["tuning"] == identify(study.tuning, list(choices.values())) == run.store.out.name[6:]


def test_the_default_stays_where_no_trial_is_better(study):
    choices = study.choose(best_at(0.012))  # the preset's
    assert {label: choice.chosen for label, choice in choices.items()} == {label: {} for label in choices}
    assert all(choice.delta_m == 0 for choice in choices.values())


def test_trials_without_a_result_do_not_count_and_change_the_id(study):
    complete = study.choose(best_at(2e-3))
    before = identify(study.tuning, list(complete.values()))
    lost = complete["fedavg"].trials[0].overrides["train.lr"]
    run = next(r for r in study.tuning.plan.runs if r.label == f"fedavg[train.lr={lost}]")
    (run.store.folder / "summary.json").unlink()
    choices = choose(study.tuning)
    assert [choice.finished for choice in choices] == [2, 3, 3]
    assert choices[0].trials[0].reason == "not finished" and identify(study.tuning, choices) != before


def test_without_a_default_to_compare_with_nothing_is_chosen(study):
    choices = study.choose(lambda config: None if config.train.lr == 0.012 else 50)
    assert {choice.chosen for choice in choices.values()} == {None}
    with pytest.raises(UsageError, match="nothing could be chosen: fedavg: its default has no result"):
        study.chosen(choices)


def test_a_score_that_cannot_be_compared_is_a_trial_without_result(study):
    choices = study.choose(lambda config: 0.0)  # a relative change of nothing
    assert all(t.delta_m is None and t.reason.startswith("no Δm") for t in choices["fedavg"].trials)


def test_a_choice_on_local_is_used_for_all(study):
    given = {"search": ["train.lr=1e-3..1e-2:log"], "rules": Rules("local")}
    choices = study.choose(best_at(2e-3), **given)
    assert list(choices) == ["local"]
    plan, owners = study.chosen(choices)
    assert {run.config.train.lr for run in plan.runs} == {choices["local"].chosen["train.lr"]}
    assert {run.label for run in plan.runs} == {"fedavg", "fedprox", "local"}
    assert len({run.config.setting() for run in plan.runs}) == 1
    assert all(choice is choices["local"] for choice in owners.values())


def test_a_grid_file_names_methods_own_options(study, bench, tmp_path):
    file = tmp_path / "grid.yml"
    file.write_text("tune: {fedprox: {algo.mu: [0.1, 1]}}\nsweep: {train.lr: [1e-3, 2e-3]}\n")
    grid = read_grid(file, Flags("fedavg,fedprox", bench.scenario, "0", rounds=2, tune=True))
    tuning = plan_tuning(grid, Rules(), study.template, "cpu")
    assert [len(search.trials) - 1 for search in tuning.searches] == [2, 4, 2] and tuning.budget == 4


@pytest.mark.parametrize(
    ("flags", "rules", "message"),
    [
        ({"search": [], "trials": None}, {}, "--tune: what to try"),
        ({"overrides": {"data.validation": 0.1}}, {}, "data.validation=0.1: --tune sets it"),
        ({"search": ["scenario.clients=1..4"]}, {}, "scenario.clients is what a choice is made for"),
        ({}, {"on": "local"}, "fedprox:algo.mu is an option of a method that local does not have"),
        ({"search": ["train.lr=1..2"], "with_local": False}, {"on": "local"}, "this bench has none"),
        ({}, {"validation": 0.0}, "--validation 0: expected a number above 0"),
        ({}, {"validation": 0.9}, "--validation 0.9: expected"),
        ({}, {"on": "fedavg"}, "--tune-on: no way to tune 'fedavg'"),
    ],
)
def test_a_tuning_that_makes_no_sense_is_refused(study, flags, rules, message):
    with pytest.raises(UsageError) as caught:
        study.plan(Rules(**rules), **flags)
    assert message in str(caught.value)


# -- the verb ----------------------------------------------------------------------------------------------------------


SWEEP = ("--algos", "fedavg", "--seeds", "0-1", "--tune", "--sweep", "train.lr=0.001,0.002")
SCORES = {
    "fedavg": "mIoU=40", "fedavg[train.lr=0.001]": "mIoU=50", "fedavg[train.lr=0.002]": "mIoU=45",
    "local": "mIoU=30", "local[train.lr=0.001]": "mIoU=20", "local[train.lr=0.002]": "mIoU=29",
}  # fmt: skip


def test_bench_tunes_and_the_same_command_finds_it_done(command, bench):
    code, out, _ = command(*SWEEP, "--format", "json", modes=SCORES)
    result = json.loads(out)
    assert code == 0 and result["counts"]["ran"] == 4
    chosen = {one["name"]: (one["chosen"], one["delta_m"]) for one in result["tuning"]["choices"]}
    assert chosen == {"fedavg": ({"train.lr": 0.001}, pytest.approx(25)), "local": ({}, 0.0)}
    assert len(bench.starts()) == 6 + 4
    code, out, _ = command(*SWEEP, modes=SCORES)
    assert code == 0 and "4 reused in " in out and len(bench.starts()) == 10
    assert "fedavg\tduo\tnano\t2\ttrain.lr=0.001\t+25.00" in out and "the default" in out


def test_a_failed_trial_is_told_by_the_exit_code(command):
    modes = {**SCORES, "fedavg[train.lr=0.001]": "fail"}
    code, out, _ = command(*SWEEP, "--retries", "0", modes=modes)
    assert code == 1 and "fedavg\tduo\tnano\t1\ttrain.lr=0.002\t+12.50" in out


def test_what_is_refused_is_in_the_result_and_not_on_stderr_alone(command):
    refusing = (*SWEEP, "--algos", "fedavg,local", "--set", "federation.participation=0.5")
    code, out, err = command(*refusing, "--format", "json", modes=SCORES)
    result = json.loads(out)
    assert code == 0 and result["counts"] == {**dict.fromkeys(result["counts"], 0), "ran": 2, "refused": 2}
    (refused,) = result["refused"]
    assert (refused["name"], refused["scenario"]) == ("local", "duo")
    assert "federation.participation has no meaning" in refused["reason"] and refused["reason"] in err
    code, out, _ = command(*refusing, modes=SCORES)
    assert code == 0 and "local\trefused" in out and f"refused: {refused['reason']}" in out.splitlines()


def test_a_trial_that_is_refused_says_why(command):
    shares = (*SWEEP[:-1], "federation.participation=0.5,1.0")
    modes = {
        **SCORES,
        **dict.fromkeys((f"fedavg[federation.participation={share}]" for share in (0.5, 1.0)), "mIoU=40"),
    }
    _, out, _ = command(*shares, "--format", "json", modes=modes)
    fedavg, local = json.loads(out)["tuning"]["choices"]
    assert [trial["reason"] for trial in fedavg["trials"]] == ["", ""]
    half, whole = local["trials"]
    assert half["reason"].startswith("refused: local on duo: ") and half["delta_m"] is None and whole["reason"] == ""


def test_a_used_up_budget_stops_before_the_choice(command, bench):
    code, out, _ = command(*SWEEP, "--budget", "1s", modes={**SCORES, "local": "hang"})
    assert code == 1 and "the budget is used up" in out and not list(bench.out.glob("tuned-*"))


def test_a_dry_run_shows_trials_and_time_and_touches_nothing(command, bench):
    code, out, _ = command(*SWEEP, "--dry-run")
    assert code == 0 and not bench.out.exists()
    assert "2 trials and the default of each method" in out and "fedavg[train.lr=0.001]\t1 new" in out
    assert "then 4 runs with what is chosen · training time: unknown" in out
    assert command(*SWEEP, modes=SCORES)[0] == 0
    code, out, _ = command(*SWEEP, "--dry-run", "--format", "json")
    plan = json.loads(out)
    assert plan["trials"]["counts"]["done"] == 6 and plan["then"]["runs"] == 4
    code, out, _ = command(*SWEEP[:-1], "train.lr=0.003,0.004", "--dry-run", "--format", "sh")
    assert code == 0 and out.count("fmtlbench run") == 4 and "data.validation=0.2" in out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--algos", "fedavg", "--tune"), "--tune: what to try"),
        (("--algos", "fedavg", "--tune-on", "local"), "--tune-on local: is for --tune"),
        (("--algos", "fedavg", "--validation", "0.3"), "--validation 0.3: is for --tune"),
        ((*SWEEP, "--tune-seeds", "x"), "--tune-seeds: 'x'"),
    ],
)
def test_flags_that_make_no_sense(command, argv, message):
    code, _, err = command(*argv)
    assert code == 2 and message in err
