"""Noise beside effects: over seeds and reruns, of Δm, columns and the order of methods; and how many seeds it takes."""

from __future__ import annotations

import csv
import io
import json
import statistics

import numpy as np
import pytest
from made_rounds import finals
from made_runs import ST_MT_1, summary, write_run
from scipy.stats import kendalltau

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.yamlfile import dump_yaml
from fmtlbench.cli import main
from fmtlbench.cli._installed import Installed
from fmtlbench.config.setting import digest
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import BaseError, Delta, find_reference
from fmtlbench.reports.intervals import std_interval
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.reruns import UNTOLD, set_reruns_aside
from fmtlbench.reports.stability import ANY, Question, stability
from fmtlbench.reports.stability_tables import MANY, stability_tables
from fmtlbench.reports.stats.order import half_agreement, kendall_tau, order_correlation
from fmtlbench.reports.stats.power import seeds_needed, t_power
from fmtlbench.reports.stats.ranks import StatsError

AT = ("pascal-semseg", "semseg")  # one of three columns; the others stay 50 and 0.5
KEY = "pascal/semseg/mIoU"


def write(root, algorithm, changes, **given):
    """A run per seed, whose Δm against 50 are these: one column of three changes by three times as much."""
    for seed, change in enumerate(changes):
        value = None if change is None else 50 * (1 + 3 * change / 100)
        write_run(root, algorithm=algorithm, seed=seed, values={AT: value}, **given)


def look(root, **question):
    collection, reruns, notes = set_reruns_aside(collect([root]))
    return stability(collection, Question(**question, installed=Installed()), reruns, notes)


def of(one, label):
    return next(noise for method, noise in one.noise.items() if method[1][0] == label)


# -- seeds -------------------------------------------------------------------------------------------------------------


def test_noise_by_hand(tmp_path):
    write(tmp_path, "local", (0, 0, 0))
    write(tmp_path, "fedavg", (1, 2, 3))
    (one,) = look(tmp_path)
    noise = of(one, "FedAvg")
    assert noise.delta.cell.value == pytest.approx(2) and noise.std.value == pytest.approx(1)
    # χ² of 2 degrees of freedom is -2 ln(tail): 7.378 and 0.0506
    assert noise.std.interval == pytest.approx(((2 / 7.37776) ** 0.5, (2 / 0.0506356) ** 0.5), rel=1e-5)
    # scores 51.5, 53, 54.5 against the means of the other two
    left_out = [100 / 3 * (51.5 / 53.75 - 1), 0, 100 / 3 * (54.5 / 52.25 - 1)]
    assert noise.self_noise.value == pytest.approx(statistics.stdev(left_out))
    assert noise.columns[KEY].std == pytest.approx(1.5)
    table = stability_tables([one])[0]
    row = dict(zip((column.key for column in table.columns), table.rows[1].cells))
    assert row[f"{KEY}_std_percent"].value == pytest.approx(100 * 1.5 / 53)
    assert row["nyud/depth/RMSE_std"].value == 0 and row["seeds"].value == 3


def test_the_baseline_moves_by_itself(tmp_path):
    write(tmp_path, "local", (-1, 1))
    write(tmp_path, "fedavg", (-1, 1))
    (one,) = look(tmp_path)
    local = of(one, "Local")
    assert local.std.value is None and "self-noise" in local.std.note
    # 48.5 against 51.5 and the other way round
    assert local.self_noise.value == pytest.approx(statistics.stdev([-100 / 51.5, 100 / 48.5]))
    assert of(one, "FedAvg").std.value == 0  # seed by seed it is the baseline
    assert of(one, "FedAvg").self_noise.value == local.self_noise.value


def test_settings_are_never_mixed(tmp_path):
    for letter, factor in (("a", 1), ("b", 2)):
        write(tmp_path, "local", (0, 0), setting=letter * 64)
        write(tmp_path, "fedavg", (factor, 3 * factor), setting=letter * 64)
    assert [of(one, "FedAvg").std.value for one in look(tmp_path)] == pytest.approx([2**0.5, 8**0.5])


def test_missing_scores_are_told_and_not_counted(tmp_path):
    write(tmp_path, "local", (0, 0, 0))
    write(tmp_path, "fedavg", (1, 3, None))
    (one,) = look(tmp_path)
    noise = of(one, "FedAvg")
    assert noise.std.value is None and "needs every score" in noise.std.note
    assert noise.self_noise.value is None and "needs every score" in noise.self_noise.note
    assert noise.columns[KEY].std == pytest.approx(statistics.stdev([51.5, 54.5]))
    assert "2 of 3 seeds" in noise.columns[KEY].note
    assert one.pairs == [] and one.order is None


def test_against_other_runs_than_local(tmp_path):
    write(tmp_path, "local", (0, 0, 0))
    write(tmp_path, "fedavg", (1, 2, 3))
    (one,) = look(tmp_path, delta=Delta(baseline="fedavg"))
    assert of(one, "FedAvg").std.value is None
    assert of(one, "Local").delta.by_seed[0] == pytest.approx(100 / 3 * (50 / 51.5 - 1))
    reference = find_reference(collect([tmp_path]), "algo=fedavg")
    (other,) = look(tmp_path, delta=Delta(reference=reference))
    assert of(other, "Local").std == of(one, "Local").std


@pytest.mark.parametrize("n", [3, 6, 20])
def test_the_interval_of_a_standard_deviation_covers_it(n):
    rng = np.random.default_rng(n)
    found = [std_interval(values) for values in rng.normal(7, 2, size=(3000, n))]
    assert np.mean([low <= 2 <= high for low, high in found]) == pytest.approx(0.95, abs=0.013)
    assert std_interval([1.0]) is None and std_interval([1.0, 1.0]) == (0, 0)


# -- reruns ------------------------------------------------------------------------------------------------------------


def again(root, algorithm, seed, value, threads=1, setting="a" * 64, processor="one", lr=0.006, started="1", source=""):
    """A run with a config and a manifest, as an engine leaves them."""
    config = {"algorithm": {"name": algorithm, "source": source}, "seed": seed, "preset": "nano", "device": "cpu",
              "train": {"lr": lr, "threads": threads}}  # fmt: skip
    made = summary(algorithm, {AT: value}, seed, setting=setting, config_hash=digest(config))
    folder = write_run(root, made)
    (folder / "config.yaml").write_text(dump_yaml(config))
    session = {"started": started, "versions": {"torch": "2.9.0"}, "hardware": {"processor": processor},
               "arithmetic": {"threads": threads, "cpu_capability": "AVX2"}}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps({"config_hash": "", "data": {}, "sessions": [session]}))
    return folder


@pytest.fixture
def threads(tmp_path):
    """Three seeds of two methods; two of them again with two threads, which moves the one method further."""
    for seed, value in enumerate((49.0, 50.0, 51.0)):
        again(tmp_path, "local", seed, 50.0)
        again(tmp_path, "fedavg", seed, value)
    for seed in (0, 1):
        again(tmp_path, "local", seed, 50.3, threads=2, setting="0" * 64)  # sorts before the others
        again(tmp_path, "fedavg", seed, (49.3, 49.6)[seed], threads=2, setting="0" * 64)
    return tmp_path


def test_reruns_by_hand(threads):
    (one,) = look(threads)
    assert of(one, "FedAvg").seeds == (0, 1, 2) and of(one, "FedAvg").columns[KEY].value == 50  # the reruns are aside
    local, fedavg = one.reruns
    assert (fedavg.method[1][0], fedavg.kind, fedavg.pairs) == ("FedAvg", "train.threads 2 (was 1)", 2)
    moves = fedavg.columns[KEY]
    assert moves.std == pytest.approx(((0.09 + 0.16) / 4) ** 0.5) and moves.largest == pytest.approx(0.4)
    assert (moves.seeds_std, moves.seeds_largest) == (1, 2)
    assert fedavg.delta.std == pytest.approx(moves.std * 100 / 50 / 3)
    assert fedavg.delta.seeds_std == of(one, "FedAvg").self_noise.value
    assert fedavg.beyond_seeds == []
    # three equal seeds of local: any move is more than theirs; the baseline of both runs is the run set apart
    assert local.beyond_seeds == [KEY] and local.delta.largest == pytest.approx(100 * 0.3 / 50 / 3)
    tables = {table.name.split("-nano")[0]: table for table in stability_tables([one])}
    assert [row.cells[-1].word for row in tables["reruns-duo"].rows] == ["no", "yes"]
    assert KEY in tables["reruns-duo"].rows[0].cells[-1].note
    assert len(tables["rerun-columns-duo"].rows) == 2 * 3


def test_the_usual_circumstances_are_the_runs(threads):
    collection, reruns, _ = set_reruns_aside(collect([threads]))
    assert {run.setting[0] for run in collection.runs} == {"a"} and len(collection.frame) == 6 * 3
    assert {rerun.again.setting[0] for rerun in reruns} == {"0"} and len(reruns) == 4


def test_another_machine_with_the_same_config(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for seed in (0, 1):
        again(here, "local", seed, 50.0 + seed)
    again(there, "local", 0, 50.5, processor="another")
    again(tmp_path / "third", "local", 0, 50.0, started="2")  # the same numbers, honestly made twice
    (one,) = look(tmp_path)
    assert {(r.kind, r.pairs) for r in one.reruns} == {(ANY, 2), ("processor another (was one)", 1), (UNTOLD, 1)}
    assert one.reruns[0].columns[KEY].std == pytest.approx((0.25 / 4) ** 0.5)
    with pytest.raises(FmtlbenchError, match="two runs of Local, seed 0"):  # the other commands as before
        leaderboards(collect([tmp_path]))


def test_a_copy_is_no_rerun(tmp_path):
    for root in ("one", "two"):
        for seed in (0, 1):
            again(tmp_path / root, "local", seed, 50.0 + seed)
    collection, reruns, notes = set_reruns_aside(collect([tmp_path]))
    assert len(collection.runs) == 2 and reruns == []
    assert len(notes) == 2 and "is a copy of" in notes[0]


def test_other_configs_are_no_reruns(tmp_path):
    again(tmp_path, "local", 0, 50.0)
    again(tmp_path, "local", 0, 50.0, lr=0.1, setting="b" * 64)  # another setting
    again(tmp_path, "local", 0, 50.0, threads=2, setting="c" * 64, source="edited")  # another method of that name
    write_run(tmp_path, algorithm="local", seed=0, setting="d" * 64)  # its config is lost
    collection, reruns, _ = set_reruns_aside(collect([tmp_path]))
    assert len(collection.runs) == 4 and reruns == []


def test_a_rerun_without_a_score_is_left_out(threads):
    run = next(run for run in collect([threads]).runs if run.label == "FedAvg" and run.setting[0] == "0")
    run.summary["scores"][0]["value"] = None
    (run.folder / "summary.json").write_text(json.dumps(run.summary))
    (one,) = look(threads)
    _, fedavg = one.reruns
    assert fedavg.pairs == 2 and fedavg.columns[KEY].pairs == 1 and fedavg.delta.pairs == 1
    assert fedavg.columns["nyud/depth/RMSE"].pairs == 2


def test_one_seed_with_a_rerun_has_no_verdict(tmp_path):
    again(tmp_path, "local", 0, 50.0, started="2")
    again(tmp_path, "local", 0, 50.1, threads=2, setting="b" * 64, started="1")
    (one,) = look(tmp_path)
    assert one.reruns[0].kind == "train.threads 1 (was 2)"  # as many of each: the one begun first is the run
    assert one.reruns[0].beyond_seeds is None and one.reruns[0].columns[KEY].largest == pytest.approx(0.1)


# -- order -------------------------------------------------------------------------------------------------------------


def test_tau_is_scipys():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.integers(4, size=(2, 6)).astype(float)
        assert kendall_tau(a, b) == pytest.approx(kendalltau(a, b).statistic, nan_ok=True)
    same = np.arange(5.0)
    assert (kendall_tau(same, same + 7), kendall_tau(same, -same)) == (1, -1)
    assert np.isnan(kendall_tau(same, np.zeros(5)))


def test_orders_that_agree_and_orders_that_do_not():
    order = np.array([1.0, 2.0, 3.0])
    same = half_agreement(np.tile(order, (6, 1)))
    assert (same.tau, same.low, same.high, same.splits, same.every) == (1, 1, 1, 10, True)
    # two seeds one way and two, further apart, the other: -1 where they are kept apart, 1 in the two mixed splits
    turned = half_agreement(np.array([order, order, -2 * order, -2 * order]))
    assert turned.tau == pytest.approx(1 / 3) and turned.splits == 3
    assert turned.low < turned.tau < turned.high


def test_halves_of_many_seeds_are_drawn_and_always_the_same_ones():
    table = np.random.default_rng(1).normal(size=(14, 4)) + np.arange(4) / 2
    found = half_agreement(table)
    assert (found.splits, found.every) == (1000, False) and found == half_agreement(table)
    assert found.low < found.tau < found.high
    assert half_agreement(table[:5]).splits == 10  # two seeds against three


def test_the_interval_of_tau_holds_the_truth_mostly():
    """Approximate: 83 to 96 % in simulations with 3 to 9 methods and 4 to 10 seeds."""
    rng = np.random.default_rng(0)
    made = [np.arange(5) / 2 + rng.normal(size=(6, 5)) for _ in range(60)]
    found = [half_agreement(table) for table in made]
    truth = np.mean([one.tau for one in found])
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.85


def test_too_little_for_an_order_is_told(tmp_path):
    for name, changes in (("local", (0, 0, 0, 0)), ("fedavg", (1, 2, 3, 4)), ("ditto", (2, 3, 4))):
        write(tmp_path, name, changes)
    (one,) = look(tmp_path)
    assert one.order is None and "at least 4 seeds common to 3 methods, and here are 3 common to 3" in one.order_note
    for name in ("fedper", "matfl"):
        write(tmp_path, name, (3, 4, 5, 6))
    (one,) = look(tmp_path)
    assert (one.order.methods, one.order.seeds, one.order.tau) == (4, 4, pytest.approx(1))
    assert "without Ditto" in one.order_note
    # FedPer and MaT-FL are tied in every half, which is no disagreement


# -- pairs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect, n", [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_seeds_needed_are_the_textbooks(effect, n):
    assert seeds_needed(effect, 1.0) == n == seeds_needed(-3 * effect, 3.0)
    assert t_power(effect, n - 1) < 0.8 <= t_power(effect, n)


@pytest.mark.parametrize("effect, power", [(0.5, 0.8), (1.0, 0.8), (0.7, 0.9)])
def test_power_is_that_of_simulated_tests(effect, power):
    from scipy.stats import ttest_1samp

    n = seeds_needed(effect, 1.0, power)
    drawn = np.random.default_rng(2).normal(effect, 1, size=(4000, n))
    assert np.mean(ttest_1samp(drawn, 0, axis=1).pvalue < 0.05) == pytest.approx(power, abs=0.03)


def test_extremes_of_power():
    assert seeds_needed(0, 1) is None and seeds_needed(0.01, 1) is None
    assert seeds_needed(1, 0) == 2 and seeds_needed(1e6, 1) == 2
    assert [seeds_needed(effect, 1.0) for effect in (2, 3, 5, 10, 30)] == sorted(
        [seeds_needed(effect, 1.0) for effect in (2, 3, 5, 10, 30)], reverse=True
    )


def test_pairs_by_hand(tmp_path):
    write(tmp_path, "local", (0, 0, 0, 0))
    write(tmp_path, "fedavg", (1, 2, 3, 2))
    write(tmp_path, "ditto", (1, 3, 3, 1))  # as FedAvg on the whole
    (one,) = look(tmp_path)
    pairs = {(p.a[0], p.b[0]): p for p in one.pairs}
    base, tie = pairs["local", "fedavg"], pairs["fedavg", "ditto"]
    assert (base.mean, base.std) == (pytest.approx(-2), pytest.approx((2 / 3) ** 0.5))
    assert base.seeds_needed == seeds_needed(2, (2 / 3) ** 0.5)
    assert (tie.mean, tie.seeds_needed) == (0, None) and tie.p == pytest.approx(1)
    t = 2 / ((2 / 3) ** 0.5 / 2)
    from scipy.stats import t as student

    assert base.p == pytest.approx(2 * student.sf(t, 3)) and base.p_holm == pytest.approx(3 * base.p)
    assert base.apart and not tie.apart
    table = next(table for table in stability_tables([one]) if table.name.startswith("power"))
    assert table.rows[0].cells[1].value == base.seeds_needed and table.rows[0].cells[1].signs == "†"
    assert table.rows[1].cells[2].word == MANY == "more than 1000"


# -- published ---------------------------------------------------------------------------------------------------------


def test_beside_a_published_order(tmp_path):
    changes = {"local": 0, "fedavg": -9, "fedper": -1, "ditto": -5, "fedhca2": 2, "matfl": -8}  # MaT-FL out of place
    for name, change in changes.items():
        for seed, noise in enumerate((-0.5, 0.5)):
            factor = 1 + (change + noise * (name != "local")) / 100
            down = ("normals", "depth")
            values = {
                (client, task): 50 * (2 - factor if task in down else factor)
                for client, (_, tasks) in ST_MT_1.items()
                for task in tasks
            }
            write_run(tmp_path, algorithm=name, seed=seed, values=values, clients=ST_MT_1, scenario="st_mt_1")
    (one,) = look(tmp_path, published="fedhca2_table1_st_mt_1")
    assert [(method[0], printed) for method, printed in one.beside.rows] == [
        ("fedhca2", "2.18"), ("local", "0.00"), ("matfl", "-0.46"), ("fedper", "-1.11"), ("ditto", "-5.57"),
        ("fedavg", "-11.76"),
    ]  # fmt: skip
    # two of fifteen pairs are turned round; of 720 orders 1 + 5 + 14 have no more than that
    assert one.beside.correlation.tau == pytest.approx(11 / 15)
    assert one.beside.correlation.p == pytest.approx(2 * 20 / 720) and one.beside.correlation.how == "exact"
    table = stability_tables([one])[-1]
    places = [(row.cells[1].value, row.cells[3].value) for row in table.rows]
    assert places == [(1, 1), (2, 2), (5, 3), (3, 4), (4, 5), (6, 6)]
    assert table.rows[0].cells[0].std == pytest.approx(0.5**0.5)
    assert table.notes[0].startswith("not the same setting: preset nano (paper: paper)")
    assert "no run of: FedProx, FedAMP" in table.notes


@pytest.mark.parametrize(
    "name, words",
    [
        ("fedhca2_table2_st_mt_2", "is about scenario st_mt_2, the runs are of st_mt_1"),
        ("fedhca2_table1", "did you mean"), ("fedhca2_supp_table3_backbones", "prints no Δ"),
    ],
)  # fmt: skip
def test_published_tables_that_do_not_fit(tmp_path, name, words):
    for algorithm in ("local", "fedhca2"):
        write(tmp_path, algorithm, (0, 1), scenario="st_mt_1")
    with pytest.raises(UsageError, match=words):
        look(tmp_path, published=name)


def test_an_order_of_two_is_none():
    with pytest.raises(StatsError, match="at least 3 methods, and here are 2"):
        order_correlation([1, 2], [2, 1])
    assert order_correlation([1, 2, 2], [1, 2, 3]).how == "normal approximation, with ties"


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("stability") / "runs"
    for name in ("local", "fedavg", "ditto", "fedhca2"):
        for seed in range(4):
            write_run(root, algorithm=name, seed=seed, clients=ST_MT_1, values=finals(name, seed, ST_MT_1))
    return root


def test_table(runs, capsys):
    assert main(["stability", str(runs)]) == 0
    out = capsys.readouterr().out
    for words in ("noise over seeds", "self-noise", "does the order of methods hold?", "all 3 splits",
                  "seeds needed to tell two methods apart", "Holm over 6 pairs", "effects: |Δm| from"):  # fmt: skip
        assert words in out
    assert "rerun moves" not in out
    assert main(["stability", str(runs)]) == 0
    assert capsys.readouterr().out == out  # seeded


def test_json_and_csv_hold_the_same_numbers(runs, tmp_path, capsys):
    file = tmp_path / "noise.json"
    assert main(["stability", str(runs), "--format", "json", "-o", str(file), "--power", "0.9"]) == 0
    (setting,) = json.loads(file.read_text())
    assert len(setting["pairs"]) == 6 and setting["power"] == 0.9 and setting["order"]["splits"] == 3
    capsys.readouterr()
    assert main(["stability", str(runs), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    noise = [row for row in rows if row["table"].startswith("noise")]
    for method, row in zip(setting["methods"], noise):
        assert method["method"] == row["method"] and method["self_noise"] == float(row["self_noise"])
        low, high = method["delta_m_std_interval"] or ("", "")
        assert [row["delta_m_std_low"], row["delta_m_std_high"]] == [str(low), str(high)]
        assert method["columns"]["nyud/depth/RMSE"]["std"] == float(row["nyud/depth/RMSE_std"])


def test_one_pair(runs, capsys):
    assert main(["stability", str(runs), "--pair", "fedhca2,FedAvg", "--format", "csv"]) == 0
    there = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))[-1]
    assert main(["stability", str(runs), "--pair", "fedavg,fedhca2", "--format", "csv"]) == 0
    back = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))[-1]
    assert (there["a"], there["b"], there["seeds"]) == ("FedHCA²", "FedAvg", "4")
    assert float(there["difference"]) == -float(back["difference"]) > 0
    assert float(there["difference_low"]) == -float(back["difference_high"])
    assert there["seeds_needed"] == back["seeds_needed"] and float(there["p_holm"]) >= float(there["p"])


def test_a_setting_without_the_pair_says_nothing_of_it(tmp_path, capsys):
    write(tmp_path, "local", (0, 0))
    write(tmp_path, "fedavg", (1, 2))
    write(tmp_path, "local", (0, 0), setting="b" * 64)
    assert main(["stability", str(tmp_path), "--pair", "fedavg,local"]) == 0
    out = capsys.readouterr().out
    assert out.count("noise over seeds") == 2 and out.count("seeds needed to tell") == 1


def test_a_run_with_a_damaged_manifest_is_left_out_in_one_line(threads, capsys):
    file = next(threads.rglob("manifest.json"))
    file.write_text("{")
    assert main(["stability", str(threads)]) == 0
    err = capsys.readouterr().err
    assert err.startswith(f"left out: {file.parent}: manifest.json cannot be read") and err.count("\n") == 1


def test_one_seed_is_one_line(tmp_path, capsys):
    write(tmp_path, "local", (0,))
    write(tmp_path, "fedavg", (1,))
    assert main(["stability", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert not out and "two seeds or more" in err and "(seed 0)" in err and err.count("\n") == 1


def test_no_baseline_is_one_line(tmp_path, capsys):
    write(tmp_path, "fedavg", (1, 2))
    with pytest.raises(BaseError, match="runs of local"):
        look(tmp_path)
    assert main(["stability", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "here are only FedAvg" in err and "--reference" in err and err.count("\n") == 1
    assert main(["stability", str(tmp_path), "--baseline", "fedavg"]) == 0
