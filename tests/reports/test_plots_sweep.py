"""`plot sweep`: scores against the value of an option, and who is a line across."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
import report_kit
from made_rounds import write_rounds
from made_runs import DUO

from fmtlbench.base.errors import UsageError
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import BaseError
from fmtlbench.reports.figure_style import RC
from fmtlbench.reports.plots._curves import PlotError
from fmtlbench.reports.plots.sweep import in_order, sweep_points, swept

USUAL = {"friends": 8, "variant": "voting"}
DEPTH = ("nyud-multi", "depth")


def write_matfl(root, friends, seed=0, depth=0.5, **options):
    given = {"options": {**USUAL, "friends": friends, **options}, "default_options": USUAL}
    return write_rounds(root, "matfl", seed, values={DEPTH: depth}, rounds=2, **given)


def write_plain(root, algorithm, seed=0, depth=0.5, **given):
    return write_rounds(root, algorithm, seed, values={DEPTH: depth}, rounds=2, **given)


def draw(collection, **options):
    return report_kit.draw("sweep", collection, **options)


def lines_of(axes):
    """Label → (x, y) of what varies."""
    return {box.get_label(): box[0].get_xydata().T.tolist() for box in axes.containers if box.get_label()[0] != "_"}


def across(axes):
    """Label → height of the lines across."""
    return {line.get_label(): line.get_ydata()[0] for line in axes.lines if line.get_label()[0] != "_"}


@pytest.fixture(scope="module")
def friends(tmp_path_factory):
    """MaT-FL's Fig. 4: K varies, and other methods have none."""
    root = tmp_path_factory.mktemp("sweep")
    for seed, off in ((0, -0.02), (1, 0.02)):
        for k, depth in ((2, 0.6), (8, 0.4), (18, 0.5)):
            write_matfl(root, k, seed, depth + off)
        write_plain(root, "local", seed, 0.8 + off)
        write_plain(root, "fedprox", seed, 0.7 + off)
    return collect([root])


def test_the_option_is_the_axis_and_methods_without_it_are_lines_across(friends):
    figure, notes = draw(friends, option="algo.friends", task="depth")
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == (
        "algo.friends",
        "Depth RMSE ↓",
        "synth-nyud Depth",
    )
    ((label, (x, y)),) = lines_of(axes).items()
    assert label == "MaT-FL" and x == [2, 8, 18] and y == pytest.approx([0.6, 0.4, 0.5])
    assert across(axes) == {"Local": pytest.approx(0.8), "FedProx": pytest.approx(0.7)}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["MaT-FL", "Local", "FedProx"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "8", "18"]
    assert notes == ["means over 2 seeds; bars: one standard deviation"]


def test_bars_are_one_standard_deviation_over_seeds(friends):
    (axes,) = draw(friends, option="algo.friends", task="depth")[0].axes
    expected = 2 * np.std([-0.02, 0.02], ddof=1)
    bars = [segment[:, 1] for box in axes.containers for segment in box[2][0].get_segments()]
    assert [high - low for low, high in bars] == pytest.approx([expected] * 5)  # three values, two lines across
    low, high = axes.get_ylim()
    assert all(low <= bar.min() and bar.max() <= high for bar in bars)


def test_delta_has_no_line_for_its_zero(friends):
    figure, notes = draw(friends, option="algo.friends")
    (axes,) = figure.axes
    assert axes.get_ylabel() == "Δm (%) ↑" and list(lines_of(axes)) == ["MaT-FL"] and list(across(axes)) == ["FedProx"]
    assert notes[0].startswith("Δm: mean relative change over columns")
    kept, sweep = swept(friends.runs, "algo.friends", [])
    points = sweep_points(kept, sweep).rows
    mine = points[(points["label"] == "MaT-FL") & (points["seed"] == 0) & (points["x"] == 8)]["y"]
    assert mine.tolist() == pytest.approx([100 * (0.78 - 0.38) / 0.78 / 3])  # one of three columns changed


def test_other_options_make_other_lines_and_one_value_is_a_line_across(tmp_path):
    for k in (2, 8):
        write_matfl(tmp_path, k)
        write_matfl(tmp_path, k, variant="soft")
    write_matfl(tmp_path, 4, variant="cluster")
    figure, notes = draw(collect([tmp_path]), option="algo.friends", task="depth")
    (axes,) = figure.axes
    assert set(lines_of(axes)) == {"MaT-FL", "MaT-FL (variant=soft)"}
    assert list(across(axes)) == ["MaT-FL (friends=4, variant=cluster)"]
    assert notes == ["lines across that have one value of algo.friends: MaT-FL (friends=4, variant=cluster) (4)"]


def test_words_have_an_axis_of_words(tmp_path):
    for variant in ("voting", "cluster", "soft"):
        write_matfl(tmp_path, 8, variant=variant, seed=0)
    (axes,) = draw(collect([tmp_path]), option="algo.variant", task="depth")[0].axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["cluster", "soft", "voting"]
    assert lines_of(axes)["MaT-FL"][0] == [0, 1, 2]


@pytest.mark.parametrize(
    "rates, scale", [((0.001, 0.1), "linear"), ((0.001, 0.01, 0.2), "log"), ((0, 10, 5000), "linear")]
)
def test_more_than_two_decades_are_logarithmic(tmp_path, rates, scale):
    for i, rate in enumerate(rates):
        write_plain(tmp_path, "fedavg", setting=str(i) * 64, setting_text={"train.lr": rate})
    (axes,) = draw(collect([tmp_path]), option="train.lr", task="depth")[0].axes
    assert axes.get_xscale() == scale and lines_of(axes)["FedAvg"][0] == pytest.approx(rates)


def test_many_values_do_not_crowd_the_axis(tmp_path):
    for k in range(1, 31):
        write_matfl(tmp_path, k)
    figure, _ = draw(collect([tmp_path]), option="algo.friends", task="depth")
    with mpl.rc_context(RC):
        figure.draw_without_rendering()
    low, high = figure.axes[0].get_xlim()
    assert len([tick for tick in figure.axes[0].get_xticks() if low <= tick <= high]) <= 8


def test_delta_of_an_option_of_the_config_is_against_the_local_run_of_each_value(tmp_path):
    for i, (rate, base) in enumerate(((0.1, 0.5), (0.2, 1.0))):
        given = {"setting": str(i) * 64, "setting_text": {"train.lr": rate}}
        write_plain(tmp_path, "local", depth=base, **given)
        write_plain(tmp_path, "fedavg", depth=0.4, **given)
    (axes,) = draw(collect([tmp_path]), option="train.lr")[0].axes
    gains = lambda base: 100 * (base - 0.4) / base / 3
    assert lines_of(axes) == {"FedAvg": [[0.1, 0.2], pytest.approx([gains(0.5), gains(1.0)])]}
    write_plain(tmp_path, "ditto", setting="7" * 64, setting_text={"train.lr": 0.3})
    with pytest.raises(BaseError, match="Δm needs the local run"):
        draw(collect([tmp_path]), option="train.lr")


def test_runs_that_differ_in_anything_else_stay_apart(tmp_path):
    for i, (rate, size) in enumerate(((0.1, 8), (0.2, 8), (0.3, 16))):
        setting = {"train.lr": rate, "train.batch_size": size}
        write_plain(tmp_path, "fedavg", setting=str(i) * 64, setting_text=setting)
    figure, notes = draw(collect([tmp_path]), option="train.lr", task="depth")
    assert lines_of(figure.axes[0])["FedAvg"][0] == [0.1, 0.2]
    assert notes[0].startswith("2 settings that differ in more than train.lr; drawn is the one of duo/fedavg/")
    assert notes[0].endswith("left out are 1 runs of others")


def test_a_parameter_of_the_scenario(tmp_path):
    for each, clients in ((1, DUO), (2, report_kit.TRIPLE)):
        told = {"scenario_parameters": {"clients_per_task": each}}
        write_plain(tmp_path, "fedavg", clients=clients, setting=str(each) * 64, setting_text=told)
    collection = collect([tmp_path])
    for option, values in (("scenario.clients_per_task", [1, 2]), ("scenario.clients", [2, 3])):
        (axes,) = draw(collection, option=option, task="depth")[0].axes
        assert axes.get_xlabel() == option and lines_of(axes)["FedAvg"][0] == values


@pytest.mark.parametrize(
    "options, error, words",
    [
        (
            {"option": "algo.friend"},
            UsageError,
            "--option: no option of these runs' methods 'algo.friend'; did you mean",
        ),
        ({"option": "algo.variant", "task": "depth"}, PlotError, "MaT-FL .*has voting.*at least two values are needed"),
        ({"option": "algo.friends", "task": "sal"}, PlotError, "no score of task 'sal'; there are"),
        ({"option": "algo.friends", "scenario": "dua"}, UsageError, "did you mean 'duo'"),
    ],
)
def test_what_is_missing_is_said(friends, options, error, words):
    with pytest.raises(error, match=words):
        draw(friends, **options)


def test_values_stand_in_order():
    assert in_order([10, "b", 9.5, True, None, "a", 10]) == [9.5, 10, "a", "b", None, True]
