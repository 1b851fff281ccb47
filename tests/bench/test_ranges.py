"""Ranges of values: what they mean, what is refused, and how they become rows of a grid."""

from __future__ import annotations

import pytest

from fmtlbench.base.errors import UsageError
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.bench.ranges import draw_trials, parse_search, parse_sweep


def sweep(text, key="train.lr"):
    return list(parse_sweep(key, text, "--sweep").values)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1e-4..1e-2:log3", [1e-4, 1e-3, 1e-2]),
        ("1e-4..1e-2:log5", [1e-4, 0.000316228, 1e-3, 0.00316228, 1e-2]),
        ("0.1..0.5:5", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("-1..1:3", [-1, 0, 1]),
        ("1..4", [1, 2, 3, 4]),
        ("8..32:log3", [8, 16, 32]),
        ("1,2,4", [1, 2, 4]),
        ("adam, sgd", ["adam", "sgd"]),
        ("[32,64],[64,64]", [[32, 64], [64, 64]]),
        ("../a.py,../b.py", ["../a.py", "../b.py"]),
        ([1, 2], [1, 2]),
        (7, [7]),
    ],
)
def test_what_a_sweep_means(text, values):
    assert sweep(text) == values
    assert [type(v) for v in sweep(text)] == [type(v) for v in values]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3..1", r"runs backwards; 1\.\.3\?"),
        ("1..1", "both ends are 1"),
        ("0..1:log3", "must begin above 0, got 0"),
        ("-1..1:log3", "must begin above 0, got -1"),
        ("0.1..0.5", "how many values"),
        ("1..2:1", "expected 2 or more"),
        ("1..2:0", "expected 2 or more"),
        ("1..2:x", "expected a number of values after the colon"),
        ("1..2:log", "expected a number of values after the colon"),
        ("1..2:", "expected a range such as"),
        ("1..", "expected a range such as"),
        ("..", "expected a range such as"),
        ("1..2..3", "expected a range such as"),
        ("1..a", "expected numbers at both ends, got 'a'"),
        ("0..1e999:3", "too large a number"),
        ("true..2", "expected numbers at both ends"),
        ("1..100000", "100000 values, expected at most 1000"),
        ("0..1:999999999999", "expected at most 1000"),
        ("1.0..1.0000001:9", "equal in six digits"),
        ("1,1", "1 is given twice"),
        (",", "no value in it"),
        ([], "no value in it"),
        ("[1", "is not a value"),
    ],
)
def test_what_is_no_sweep(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        sweep(text)
    assert str(caught.value).startswith("--sweep: ") and "\n" not in str(caught.value)


def test_draws_are_seeded_stay_inside_and_do_not_depend_on_each_other():
    lr, mu = parse_search("train.lr", "1e-4..1e-2:log", ""), parse_search("algo.mu", "0.1..0.8", "")
    size, kind = parse_search("train.batch_size", "4..8", ""), parse_search("train.optimizer", "adam,sgd", "")
    both = draw_trials([lr, mu, size, kind], 0, 40)
    assert both == draw_trials([lr, mu, size, kind], 0, 40) != draw_trials([lr, mu, size, kind], 1, 40)
    assert [t["train.lr"] for t in both] == [t["train.lr"] for t in draw_trials([lr], 0, 40)]
    assert draw_trials([lr], 0, 3) == draw_trials([lr], 0, 40)[:3]
    assert all(1e-4 <= t["train.lr"] <= 1e-2 and 0.1 <= t["algo.mu"] <= 0.8 for t in both)
    assert {t["train.batch_size"] for t in both} == {4, 5, 6, 7, 8} and {t["train.optimizer"] for t in both} == {
        "adam",
        "sgd",
    }
    below = sum(t["train.lr"] < 1e-3 for t in both)
    assert 10 < below < 30  # half of a logarithmic range lies below its middle


def test_the_same_trial_is_not_drawn_twice():
    few = parse_search("train.batch_size", "1..3", "")
    assert sorted(t["train.batch_size"] for t in draw_trials([few], 0, 12)) == [1, 2, 3]
    assert draw_trials([], 0, 12) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [("0..1:log", "must begin above 0"), ("1..2:log5", "expected log or nothing"), ("2..1", "runs backwards")],
)
def test_what_is_no_search(text, message):
    with pytest.raises(UsageError, match=message):
        parse_search("train.lr", text, "--search")


@pytest.mark.parametrize(
    ("key", "text", "values"),
    [
        ("train.batch_size", "8..64:log3", [8, 23, 64]),
        ("train.batch_size", "1..3:5", [1, 2, 3]),
        ("train.batch_size", "1..4", [1, 2, 3, 4]),
        ("train.lr", "8..64:log3", [8, 22.6274, 64]),
        ("train.local_epochs.nyud", "1..2:3", [1, 2]),
        ("train.batch_size", "1,2.5", [1, 2.5]),
    ],
)
def test_options_of_whole_numbers_are_swept_over_whole_numbers(key, text, values):
    grid = read_grid(None, Flags("fedavg", "st_mt_1", sweep=[f"{key}={text}"]))
    assert [v.overrides[key] for v in grid.methods] == values


def test_what_is_drawn_suits_the_option():
    flags = Flags("fedprox", "st_mt_1", search=["fedprox:algo.mu=0..1", "train.batch_size=8..64:log"], trials=12)
    drawn = [v.overrides for v in read_grid(None, flags).methods]
    assert len({one["algo.mu"] for one in drawn}) == 12 and all(0 <= one["algo.mu"] <= 1 for one in drawn)
    sizes = [one["train.batch_size"] for one in drawn]
    assert all(isinstance(size, int) and 8 <= size <= 64 for size in sizes) and len(set(sizes)) > 5


def test_fewer_draws_than_trials_are_told(capsys, tmp_path):
    from fmtlbench import cli

    words = ["bench", "--algos", "fedavg", "--scenarios", "st_mt_1", "--trials", "12", "--dry-run", "--no-local"]
    words += ["--out", str(tmp_path), "--device", "cpu", "--search"]
    assert cli.main([*words, "train.batch_size=8..9"]) == 0
    assert "fedavg: 2 of 12 trials: only 2 different values\n" in capsys.readouterr().err
    assert cli.main([*words, "train.lr=1..2"]) == 0
    assert "different values" not in capsys.readouterr().err


@pytest.mark.parametrize("tuned", [(), ("--tune",)])
def test_a_refusal_of_what_is_drawn_is_one_line(capsys, tmp_path, tuned):
    from fmtlbench import cli

    words = ["bench", "--algos", "fedavg", "--scenarios", "st_mt_1", "--trials", "3", "--dry-run", "--no-local", *tuned]
    assert cli.main([*words, "--out", str(tmp_path), "--device", "cpu", "--search", "train.lr=x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmtlbench: --search train.lr=x: ")


# -- in a grid ---------------------------------------------------------------------------------------------------------


def labels(**flags):
    return [v.label for v in read_grid(None, Flags(**{"algos": "fedavg", "scenarios": "st_mt_1", **flags})).methods]


def test_a_sweep_makes_rows_and_several_all_combinations():
    assert labels(sweep=["train.lr=1,2"]) == ["fedavg[train.lr=1]", "fedavg[train.lr=2]"]
    both = labels(sweep=["train.lr=1,2", "train.batch_size=4,8"])
    assert both[:2] == ["fedavg[train.lr=1,train.batch_size=4]", "fedavg[train.lr=1,train.batch_size=8]"]
    assert len(both) == 4
    assert labels(algos="fedhca2[algo.c=0.2]", sweep=["train.lr=1,2"])[0] == "fedhca2[algo.c=0.2,train.lr=1]"


def test_a_range_may_be_one_methods_own():
    found = labels(algos="fedavg,fedprox", sweep=["fedprox:algo.mu=0.1,1"])
    assert found == ["fedavg", "fedprox[algo.mu=0.1]", "fedprox[algo.mu=1]"]
    assert len(labels(algos="fedavg,fedprox", search=["train.lr=1..2"], trials=2, search_seed=3)) == 4


def test_a_plan_has_the_local_runs_of_every_swept_setting(bench):
    from fmtlbench.bench.plan import make_plan
    from fmtlbench.config.request import RunRequest

    flags = Flags("fedprox", bench.scenario, "0", rounds=2, sweep=["train.lr=1e-3,1e-2", "fedprox:algo.mu=0.1,1"])
    plan = make_plan(read_grid(None, flags).asked(), RunRequest("", "", out=bench.out), "cpu")
    assert [asked.label for asked in plan.answers] == [
        *(f"fedprox[train.lr={lr},algo.mu={mu}]" for lr in (0.001, 0.01) for mu in (0.1, 1)),
        "local[train.lr=0.001]",
        "local[train.lr=0.01]",
    ]


def test_a_file_may_sweep_and_flags_take_its_place(tmp_path):
    file = tmp_path / "grid.yml"
    file.write_text(
        "algos: fedavg\nscenarios: st_mt_1\nsweep:\n  train.lr: 1e-3..1e-2:log2\n  train.batch_size: [4, 8]\n"
    )
    assert len(read_grid(file, Flags()).methods) == 4
    assert [v.label for v in read_grid(file, Flags(sweep=["train.lr=5"])).methods] == ["fedavg[train.lr=5]"]
    file.write_text(
        "algos: fedavg\nscenarios: st_mt_1\nsearch: {train.lr: 1e-3..1e-2:log}\ntrials: 3\nsearch_seed: 1\n"
    )
    assert len(read_grid(file, Flags()).methods) == 3
    assert len(read_grid(file, Flags(trials=5)).methods) == 5
    assert len(read_grid(file, Flags(sweep=["train.lr=1,2"])).methods) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"sweep": ["train.lr"]}, "--sweep train.lr: expected key=range"),
        ({"sweep": ["=1,2"]}, "--sweep =1,2: expected key=range"),
        ({"sweep": [":train.lr=1,2"]}, "expected key=range or METHOD:key=range"),
        ({"sweep": ["train.lr=1,2", "train.lr=3,4"]}, "train.lr is given twice"),
        ({"sweep": ["train.lr=1,2"], "search": ["train.lr=1..2"]}, "give one of them"),
        ({"sweep": ["train.lr=1,2"], "overrides": {"train.lr": 1}}, "train.lr is set by a flag too"),
        ({"sweep": ["federation.rounds=1,2"], "rounds": 3}, "federation.rounds is set by a flag too"),
        ({"algos": "fedavg[train.lr=1]", "sweep": ["train.lr=1,2"]}, "train.lr is set by fedavg"),
        ({"sweep": ["fedagv:train.lr=1,2"]}, "no method of this bench 'fedagv'; did you mean 'fedavg'"),
        ({"sweep": [f"train.{name}=1..200" for name in ("lr", "batch_size")]}, "40000 combinations of values"),
        ({"sweep": ["train.lr=1,2"], "trials": 3}, "--trials 3: is for --search"),
        ({"search": ["train.lr=1..2"]}, "how many trials"),
        ({"search": ["train.lr=1..2"], "trials": 0}, "--trials 0: expected a whole number from 1"),
        ({"search": ["train.lr=1..2"], "trials": 10**9}, "expected a whole number from 1 to 1000"),
        ({"search": ["train.lr=1..2"], "trials": 2, "search_seed": -1}, "--search-seed -1: expected"),
        ({"trials": 2}, "--trials 2: of what"),
        ({"search_seed": 2}, "--search-seed 2: is for --search"),
    ],
)  # fmt: skip
def test_ranges_that_make_no_sense_are_refused(flags, message):
    with pytest.raises(UsageError) as caught:
        labels(**flags)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("sweep: {train.lr: 3..1}\n", 3, "sweep.train.lr: the range runs backwards"),
        ("sweep: 5\n", 3, "sweep: expected a mapping"),
        ("sweep: {train.lr: 1..2}\nsearch: {train.lr: 1..2}\n", 4, "search: sweep is given too"),
        ("search: {train.lr: 1..2}\ntrials: 5000\n", 4, "trials: expected at most 1000"),
        ("tune: {fedavg: {train.lr: 1..2}}\n", 3, "tune: says what to try for --tune"),
    ],
)
def test_mistakes_in_a_file_name_their_line(tmp_path, text, line, part):
    file = tmp_path / "grid.yml"
    file.write_text(f"algos: fedavg\nscenarios: st_mt_1\n{text}")
    with pytest.raises(UsageError) as caught:
        read_grid(file, Flags())
    assert str(caught.value).startswith(f"{file}:{line}: ") and part in str(caught.value)


def test_a_value_that_the_config_refuses_names_the_range(bench):
    from fmtlbench.bench.plan import make_plan
    from fmtlbench.config.request import RunRequest

    def refuse(**flags):
        grid = read_grid(None, Flags(**{"algos": "fedavg,fedprox", "scenarios": bench.scenario, **flags}))
        with pytest.raises(UsageError) as caught:
            make_plan(grid.asked(), RunRequest("", "", out=bench.out), "cpu")
        return str(caught.value)

    assert refuse(sweep=["train.lrr=1,2"]).startswith(
        "--sweep train.lrr=1,2: train.lrr=1: train.lrr: unknown key 'lrr'"
    )
    assert "--sweep NAME:algo.option=range" in refuse(sweep=["algo.mu=1,2"])


def test_a_trial_of_a_tuning_that_the_config_refuses_names_the_range(bench):
    from fmtlbench.bench.tuning import Rules, plan_tuning
    from fmtlbench.config.request import RunRequest

    flags = Flags("fedavg", bench.scenario, rounds=2, search=["train.lr=-2..-1"], trials=2, tune=True)
    with pytest.raises(UsageError) as caught:
        plan_tuning(read_grid(None, flags), Rules(), RunRequest("", "", out=bench.out), "cpu")
    assert str(caught.value).startswith("--search train.lr=-2..-1: train.lr=-1.")
