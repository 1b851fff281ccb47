"""Methods with a weighting of losses in a bench: how they are named, compared, refused, tried and tuned."""

from __future__ import annotations

import json

import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.bench.absences import note_failed, note_plan
from fmtlbench.bench.estimate import Pace
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.bench.plan import make_plan
from fmtlbench.bench.probes import plan_probes
from fmtlbench.bench.tuning import Rules, plan_tuning
from fmtlbench.config.request import RunRequest
from fmtlbench.config.setting import WEIGHTING, WEIGHTING_OPTIONS
from fmtlbench.reports.collect import collect

ALPHA = f"{WEIGHTING_OPTIONS}.alpha"
HALF = {"federation.participation": 0.5}  # local training refuses it


def labels(grid):
    return [variant.label for variant in grid.methods]


def methods(plan):
    return {run.label: run.config.method for run in plan.runs}


def test_a_plus_makes_a_variant():
    grid = read_grid(None, Flags("fedavg+uw,local,fedhca2+nash", "mt_mt"))
    assert labels(grid) == ["fedavg+uw", "local", "fedhca2+nash"]
    assert [(v.algo, v.overrides) for v in grid.methods] == [
        ("fedavg", {WEIGHTING: "uw"}), ("local", {}), ("fedhca2", {WEIGHTING: "nash"})
    ]  # fmt: skip


def test_options_follow_in_brackets():
    grid = read_grid(None, Flags(f"fedhca2+gradnorm[algo.c=0.2,{ALPHA}=2]", "mt_mt"))
    (variant,) = grid.methods
    assert variant.label == f"fedhca2+gradnorm[algo.c=0.2,{ALPHA}=2]"
    assert variant.overrides == {"algo.c": 0.2, ALPHA: 2, WEIGHTING: "gradnorm"}


def test_the_long_way_is_the_same_variant():
    grid = read_grid(None, Flags(f"fedavg+uw,fedavg[{WEIGHTING}=uw]", "mt_mt"))
    assert labels(grid) == ["fedavg+uw"]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("fedavg+uv", r"^--algos: no weighting 'uv'; did you mean 'uw'"),
        ("fedvag+uw", r"^--algos: no algorithm 'fedvag'; did you mean 'fedavg'"),
        ("fedavg+uv[algo.shared=encoder]", r"no weighting 'uv'"),
        ("fedavg+missing.py", r"^--algos: no such file: missing\.py"),
        (f"fedavg+uw[{WEIGHTING}=dwa]", r"train\.weighting=dwa is set too; give one of them"),
    ],
)
def test_mistakes_are_named(word, message):
    with pytest.raises(UsageError, match=message):
        read_grid(None, Flags(word, "mt_mt"))


def test_a_flag_for_all_beside_a_plus_is_refused():
    with pytest.raises(UsageError, match=r"--set train\.weighting is given too"):
        read_grid(None, Flags("fedavg+uw", "mt_mt", overrides={WEIGHTING: "dwa"}))


GRID = """\
algos: [fedavg+uw, ./mine.py+dwa, fedavg+own.py]
scenarios: mt_mt
set: {train.lr: 1e-3}
variants:
  - {algo: fedprox+gradnorm, set: {algo.mu: 0.1, train.weighting_options.alpha: 2}}
  - {name: careful, algo: fedhca2+nash}
  - {algo: fedper, set: {train.weighting: uw}}
"""
METHOD = """\
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.fedavg import FedAvg


@ALGORITHMS.register("mine")
class Mine(FedAvg):
    title, paper = "Mine", "none"
"""


@pytest.fixture
def grid_file(tmp_path):
    def write(text):
        (tmp_path / "mine.py").write_text(METHOD)
        (tmp_path / "own.py").write_text("")
        file = tmp_path / "grid.yml"
        file.write_text(text)
        return file

    return write


def test_a_grid_file_says_it_too(grid_file, tmp_path):
    grid = read_grid(grid_file(GRID), Flags())
    assert labels(grid) == [
        "fedavg+uw", "mine+dwa", "fedavg+own", f"fedprox+gradnorm[algo.mu=0.1,{ALPHA}=2]", "careful", "fedper+uw"
    ]  # fmt: skip
    assert grid.methods[2].overrides == {"train.lr": 1e-3, WEIGHTING: str(tmp_path / "own.py")}
    careful = grid.methods[4]
    assert careful.overrides == {"train.lr": 1e-3, WEIGHTING: "nash"}
    line = grid.methods[3].lines["algo.mu"]
    assert line == f"{tmp_path / 'grid.yml'}:5"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fedhca2+nash", "fedhca2+nahs", r"grid\.yml:6: variants\.1\.algo: no weighting 'nahs'; did you mean 'nash'"),
        ("[fedavg+uw", "[fedavg+uv", r"grid\.yml:1: algos: no weighting 'uv'"),
        (
            "{algo: fedper, set",
            "{algo: fedper+dwa, set",
            r"grid\.yml:7: variants\.2\.algo: fedper\+dwa: train\.weighting=uw is set too",
        ),
    ],
)
def test_a_grid_files_mistakes_are_told_with_their_lines(grid_file, old, new, message):
    with pytest.raises(UsageError, match=message):
        read_grid(grid_file(GRID.replace(old, new)), Flags())


def test_the_files_weighting_of_all_gives_way_to_a_variants_own(grid_file):
    text = f"algos: [fedavg, fedavg+dwa]\nscenarios: mt_mt\nset: {{{WEIGHTING}: gradnorm, {ALPHA}: 2}}\n"
    grid = read_grid(grid_file(text), Flags())
    assert [variant.overrides for variant in grid.methods] == [
        {WEIGHTING: "gradnorm", ALPHA: 2}, {WEIGHTING: "dwa"}
    ]  # fmt: skip


# -- plans -------------------------------------------------------------------------------------------------------------


def test_all_are_compared_with_the_plain_local_run(bench):
    plan = bench.plan("fedavg+uw,local+dwa,fedavg")
    assert methods(plan) == {
        "local": "local", "fedavg+uw": "fedavg+uw", "local+dwa": "local+dwa", "fedavg": "fedavg"
    }  # fmt: skip
    assert plan.runs[0].label == "local"
    assert len({run.config.setting() for run in plan.runs}) == 1
    assert len({run.store.folder for run in plan.runs}) == 4


def test_a_weighting_of_all_is_not_the_baselines(bench):
    plan = bench.plan("fedavg,local", overrides={WEIGHTING: "gradnorm", ALPHA: 2})
    assert methods(plan) == {"local+equal": "local", "fedavg": "fedavg+gradnorm", "local": "local+gradnorm"}


def test_a_presets_weighting_is_not_the_baselines(bench, tmp_path):
    preset = tmp_path / "weighed.yml"
    preset.write_text("extends: nano\ntrain: {weighting: uw}\n")
    grid = read_grid(None, Flags("fedavg", bench.scenario, "0", str(preset), 2))
    plan = make_plan(grid.asked(), RunRequest("", "", out=bench.out), "cpu")
    assert methods(plan) == {"local+equal": "local", "fedavg": "fedavg+uw"}


def test_an_option_of_one_weighting_for_all_is_told(bench):
    with pytest.raises(UsageError, match=r"unknown key 'alpha'.*for fedavg; an option of one weighting only: --algos"):
        bench.plan("fedavg+gradnorm,fedavg", overrides={ALPHA: 2})


def test_the_request_of_a_run_asks_for_it_again(bench):
    (run,) = (run for run in bench.plan("fedavg+uw").runs if run.label == "fedavg+uw")
    assert run.request.config().hash() == run.config.hash()
    assert "train.weighting" in run.request.command()


def test_a_sweep_over_weightings_names_them_alike(bench):
    flags = Flags("fedavg", bench.scenario, "0", rounds=2, sweep=[f"{WEIGHTING}=equal,uw,dwa"])
    assert labels(read_grid(None, flags)) == ["fedavg+equal", "fedavg+uw", "fedavg+dwa"]
    own = Flags("fedavg+gradnorm,fedavg", bench.scenario, "0", rounds=2, sweep=[f"fedavg+gradnorm:{ALPHA}=1,2"])
    assert labels(read_grid(None, own)) == [f"fedavg+gradnorm[{ALPHA}=1]", f"fedavg+gradnorm[{ALPHA}=2]", "fedavg"]


def test_refusals_are_of_the_method_with_its_weighting(bench):
    plan = bench.plan("local,local+uw,local+gradnorm,fedavg", overrides=HALF)
    note_plan(plan)
    notes = [json.loads(file.read_text()) for file in bench.out.rglob("*.absent.json")]
    assert sorted((note["weighting"] or {}).get("name", "") for note in notes) == ["", "gradnorm", "uw"]
    assert sorted(label for label, _ in collect([bench.out]).absences) == ["Local", "Local+GradNorm", "Local+UW"]
    possible = bench.plan("local+uw", with_local=False)
    (run,) = possible.runs
    note_plan(bench.plan("local+uw,fedavg", with_local=False))  # in another setting: the notes stay
    assert len(list(bench.out.rglob("*.absent.json"))) == 3
    assert run.config.setting().key not in {note["setting"] for note in notes}


def test_failures_are_of_the_method_with_its_weighting(bench):
    (run,) = bench.plan("fedavg+uw", with_local=False).runs
    note_failed(run, "out of memory")
    (note,) = (json.loads(file.read_text()) for file in bench.out.rglob("*.absent.json"))
    assert (note["why"], note["weighting"]["name"], note["title"]) == ("failed", "uw", "FedAvg")


def test_the_pace_of_a_weighting_is_its_own(bench):
    plan = bench.plan("fedavg,fedavg+uw", with_local=False)
    pace = Pace()
    plain, uw = plan.runs
    for run, seconds in ((plain, 2.0), (uw, 20.0)):
        run.store.folder.mkdir(parents=True)
        (run.store.folder / "cost.json").write_text(json.dumps({"seconds": {}, "seconds_total": seconds}))
        pace.learn(run.config, run.store.folder)
    assert (pace.seconds(plain), pace.seconds(uw)) == (2.0, 20.0)


# -- tuning and probes -------------------------------------------------------------------------------------------------


def tuned(bench, algos, on="methods", overrides=None, **ranges):
    flags = Flags(
        algos, bench.scenario, "0", rounds=2, tune=True, sweep=[f"{k}={v}" for k, v in ranges.items()],
        overrides=overrides or {},
    )  # fmt: skip
    return plan_tuning(read_grid(None, flags), Rules(on), RunRequest("", "", out=bench.out), "cpu")


def test_a_weighted_method_is_tuned_beside_the_plain_local_one(bench):
    plan = tuned(bench, "fedavg+uw", **{"train.lr": "1e-3,1e-2"})
    found = {
        search.asked.label: {run.config.method for runs in search.runs for run in runs} for search in plan.searches
    }
    assert found == {"fedavg+uw": {"fedavg+uw"}, "local": {"local"}}
    plan = tuned(bench, "fedavg,local", overrides={WEIGHTING: "uw"}, **{"train.lr": "1e-3,1e-2"})
    found = {
        search.asked.label: {run.config.method for runs in search.runs for run in runs} for search in plan.searches
    }
    assert found == {"fedavg": {"fedavg+uw"}, "local": {"local+uw"}, "local+equal": {"local"}}


def test_local_decides_for_all_without_a_weighting(bench):
    plan = tuned(bench, "fedavg+uw,local+uw", on="local", **{"train.lr": "1e-3,1e-2"})
    assert [search.asked.label for search in plan.searches] == ["local"]


@pytest.mark.parametrize(
    ("algos", "on", "ranges", "message"),
    [
        ("fedavg", "methods", {WEIGHTING: "uw,dwa"}, r"--tune: train\.weighting is a part of the method; name each"),
        ("fedavg+gradnorm", "local", {ALPHA: "1,2"}, r"is an option of a method that local does not have"),
    ],
)
def test_what_cannot_be_tuned_is_refused(bench, algos, on, ranges, message):
    with pytest.raises(UsageError, match=message):
        tuned(bench, algos, on, **ranges)


def test_probes_take_a_weighting_with_the_method_only(tmp_path):
    how = ("0", "nano", {}, RunRequest("", "", out=tmp_path), "cpu")
    asked, _, plan = plan_probes("fedavg+uw", ["probe_strangers"], *how)
    assert [variant.label for variant in asked] == ["fedavg+uw"]
    assert {run.label: run.config.method for run in plan.runs}.items() >= {
        "fedavg+uw": "fedavg+uw",
        "local": "local",
    }.items()
    with pytest.raises(UsageError, match=r"train\.weighting is set for all; .*--algos fedavg\+uw"):
        plan_probes("fedavg", ["probe_strangers"], "0", "nano", {WEIGHTING: "uw"}, *how[3:])
