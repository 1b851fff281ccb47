"""Figures over rounds, clients and cost: what is drawn, from which numbers."""

from __future__ import annotations

import numpy as np
import pytest
from made_rounds import write_rounds
from made_runs import DUO, ST_MT_1
from report_kit import TRIPLE, draw, titles

from fmtlbench.base.errors import UsageError
from fmtlbench.metrics import delta_m
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import BaseError
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.plots._curves import PlotError
from fmtlbench.reports.plots.pareto import front, pareto_points
from fmtlbench.reports.plots.rounds import rounds_curves, rounds_figure
from fmtlbench.tasks import title_of


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("curves")
    for name in ("local", "fedavg", "fedhca2"):
        for seed in (0, 1):
            write_rounds(root, name, seed)
    return collect([root])


def lines(axes):
    """The lines with a name: methods."""
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def scores(run, split="global"):
    return {(s["client"], s["task"]): s for s in run.summary["scores"] if s["split"] == split}


# -- rounds ----------------------------------------------------------------------------------------------------------


def test_rounds_draws_a_line_named_at_its_end_and_a_whisker_per_method(runs):
    figure, notes = draw("rounds", runs)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("communication round", "Δm (%) ↑")
    assert list(lines(axes)) == ["Local", "FedAvg", "FedHCA²"]
    assert all(line.get_xdata().tolist() == [2, 4, 6] for line in lines(axes).values())
    assert notes[0].startswith("Δm: mean relative change over columns") and "means over 2 seeds; whiskers" in notes[1]
    assert [text.get_text() for text in axes.texts] == ["Local", "FedAvg", "FedHCA²"] and not figure.legends
    assert len(axes.containers) == 3 and all(line.get_linewidth() < 1 for line in lines(axes).values())
    for box, name in zip(axes.containers, lines(axes)):
        curves = rounds_curves(runs.runs).rows
        last = curves[(curves["label"] == name) & (curves["round"] == 6)]["y"]
        [low, high] = box[2][0].get_segments()[0][:, 1]
        assert (high - low) / 2 == pytest.approx(last.std(ddof=1)) and (low + high) / 2 == pytest.approx(last.mean())
        assert axes.get_ylim()[0] <= low <= high <= axes.get_ylim()[1]
    assert figure.get_figwidth() == 3.3 and not axes.get_title()


def test_delta_is_against_the_final_local_run_of_the_seed(runs):
    curves = rounds_curves(runs.runs).rows
    last = curves[curves["round"] == 6]
    assert last[last["label"] == "Local"]["y"].tolist() == pytest.approx([0, 0])
    assert (curves[(curves["label"] == "Local") & (curves["round"] == 2)]["y"] < -1).all()
    for seed in (0, 1):
        ours, base = (
            scores(next(r for r in runs.runs if (r.label, r.summary["seed"]) == (name, seed)))
            for name in ("FedHCA²", "Local")
        )
        expected = delta_m(*({k: s["value"] for k, s in of.items()} for of in (ours, base)),
                           {k: s["higher_is_better"] for k, s in ours.items()})  # fmt: skip
        got = last[(last["label"] == "FedHCA²") & (last["seed"] == seed)]["y"]
        assert got.tolist() == pytest.approx([expected])


def test_the_line_is_the_mean_over_seeds(runs):
    curves = rounds_curves(runs.runs)
    line = lines(rounds_figure([curves]).axes[0])["FedAvg"]
    own = curves.rows[curves.rows["label"] == "FedAvg"]
    assert line.get_ydata()[-1] == pytest.approx(own[own["round"] == 6]["y"].mean())


@pytest.mark.parametrize(
    "x, label, last",
    [("bytes", "communication (MB)", 600), ("kwh", "energy (Wh)", 12), ("hours", "time (min)", 6 * 53 / 60)],
)
def test_other_horizontal_axes_add_up(runs, x, label, last):
    figure, _ = draw("rounds", runs, x=x)
    assert figure.axes[0].get_xlabel() == label
    assert lines(figure.axes[0])["FedAvg"].get_xdata()[-1] == pytest.approx(last)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Local", "FedAvg", "FedHCA²"]


def test_a_metric_instead_of_delta(runs):
    figure, _ = draw("rounds", runs, task="depth")
    assert figure.axes[0].get_ylabel() == "Depth RMSE ↓"
    values = [scores(run)["nyud-multi", "depth"]["value"] for run in runs.runs if run.label == "FedAvg"]
    assert lines(figure.axes[0])["FedAvg"].get_ydata()[-1] == pytest.approx(np.mean(values))
    assert figure.axes[0].get_title() == "synth-nyud Depth"
    assert lines(draw("rounds", runs, client="pascal-semseg")[0].axes[0])


def test_a_task_on_two_datasets_is_two_panels_and_never_a_mean_of_both(runs):
    figure, _ = draw("rounds", runs, task="semseg")
    assert titles(figure) == ["synth-pascal SemSeg", "synth-nyud SemSeg"]
    for axes, client in zip(figure.axes, DUO):
        values = [scores(run)[client, "semseg"]["value"] for run in runs.runs if run.label == "Local"]
        assert lines(axes)["Local"].get_ydata()[-1] == pytest.approx(np.mean(values))
    one, _ = draw("rounds", runs, task="semseg", dataset="nyud")
    assert titles(one) == ["synth-nyud SemSeg"]
    of, _ = draw("rounds", runs, task="semseg", client="nyud-multi")
    assert titles(of) == ["synth-nyud SemSeg of nyud-multi"]


def test_a_column_is_the_mean_over_its_clients(tmp_path):
    clients = {f"nyud-{i}": ("nyud", ("depth",)) for i in (1, 2)}
    write_rounds(tmp_path, "local", clients=clients, values={("nyud-1", "depth"): 0.4, ("nyud-2", "depth"): 0.8})
    ends = lambda **o: lines(draw("rounds", collect([tmp_path]), **o)[0].axes[0])["Local"].get_ydata()[-1]
    assert ends(task="depth") == pytest.approx(0.6) and ends(client="nyud-2") == pytest.approx(0.8)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"x": "kw"}, "did you mean 'kwh'"),
        ({"task": "sal"}, r"no score of task 'sal'; there are pascal-semseg/semseg, nyud-multi/semseg"),
        ({"client": "nyud-multi"}, "several metrics; name one with --task, or all: semseg, depth"),
        ({"dataset": "nyud"}, "dataset 'nyud' has several metrics; name one with --task, or all: semseg, depth"),
        ({"task": "depth", "dataset": "nyu"}, "--dataset: no dataset 'nyu'; did you mean 'nyud'"),
        ({"task": "depth", "dataset": "pascal"}, "no score of task 'depth' and dataset 'pascal'; there are"),
        ({"task": "depth", "split": "personal"}, "no scores of split 'personal'"),
        ({"split": "personal"}, "no scores of split 'personal'|lacks"),
        ({"scenario": "dua"}, "did you mean 'duo'"),
    ],
)
def test_rounds_says_what_is_missing(runs, options, words):
    with pytest.raises((PlotError, UsageError), match=words):
        draw("rounds", runs, **options)


def test_without_the_local_run_there_is_no_delta(tmp_path):
    write_rounds(tmp_path, "fedavg", 0)
    write_rounds(tmp_path, "fedavg", 1)
    write_rounds(tmp_path, "local", 0)
    for kind in ("rounds", "pareto"):
        with pytest.raises(BaseError, match=r"missing for duo seed 1 \(1 run, such as duo/fedavg"):
            draw(kind, collect([tmp_path]))


def test_energy_that_was_not_measured_is_named(tmp_path):
    write_rounds(tmp_path, "local", energy=False)
    collection = collect([tmp_path])
    with pytest.raises(PlotError, match=r"duo/local/.* no energy of every round"):
        draw("rounds", collection, x="kwh")
    with pytest.raises(PlotError, match=r"duo/local/.*: no kwh in its files"):
        draw("pareto", collection, cost="kwh")


def test_seeds_evaluated_in_different_rounds_have_no_mean(tmp_path):
    write_rounds(tmp_path, "local", 0)
    write_rounds(tmp_path, "local", 1, every=3)
    with pytest.raises(PlotError, match="not evaluated in the same rounds"):
        draw("rounds", collect([tmp_path]))


def test_every_scenario_has_a_panel(tmp_path):
    for scenario in ("one", "two"):
        for name in ("local", "fedavg"):
            write_rounds(tmp_path, name, scenario=scenario)
    for kind in ("rounds", "pareto"):
        figure, _ = draw(kind, collect([tmp_path]))
        assert titles(figure) == ["one", "two"]
        assert figure.get_figwidth() == pytest.approx(6.6)
        figure, _ = draw(kind, collect([tmp_path]), scenario="two")
        assert titles(figure) == [""]


def test_every_setting_has_a_panel_that_says_how_it_differs(tmp_path):
    for setting, rate in (("a", 0.1), ("b", 0.2)):
        for name in ("local", "fedavg"):
            write_rounds(tmp_path, name, setting=setting * 64, setting_text={"train.lr": rate})
    figure, _ = draw("rounds", collect([tmp_path]))
    assert titles(figure) == ["duo (train.lr 0.1)", "duo (train.lr 0.2)"]


def test_every_task_has_a_panel_when_asked(runs):
    figure, _ = draw("rounds", runs, task="all")
    assert [axes.get_ylabel() for axes in figure.axes] == ["SemSeg mIoU ↑", "SemSeg mIoU ↑", "Depth RMSE ↓"]
    assert titles(figure) == [
        "synth-pascal SemSeg",
        "synth-nyud SemSeg",
        "synth-nyud Depth",
    ]
    nyud, _ = draw("rounds", runs, task="all", dataset="nyud")
    assert titles(nyud) == ["synth-nyud SemSeg", "synth-nyud Depth"]
    one, _ = draw("rounds", runs, task="all", client="pascal-semseg")
    assert [axes.get_ylabel() for axes in one.axes] == ["SemSeg mIoU ↑"]


def test_panels_of_tasks_stand_as_the_tables_columns_do(tmp_path):
    for name in ("local", "fedavg"):
        write_rounds(tmp_path, name, clients=ST_MT_1, data="real")
    figure, _ = draw("rounds", collect([tmp_path]), task="all")
    (board,) = leaderboards(collect([tmp_path]))
    columns = [column.key for column in board.columns if "/" in column.key]
    assert len(figure.axes) == len(columns) == 9
    names = {"pascal": "PASCAL-Context", "nyud": "NYUD-v2"}
    wanted = [f"{names[dataset]} {title_of(task)}" for dataset, task, _ in (key.split("/") for key in columns)]
    assert titles(figure) == wanted and "PASCAL-Context Parts" in wanted


def test_every_setting_has_its_panels_of_tasks(tmp_path):
    for scenario in ("one", "two"):
        write_rounds(tmp_path, "local", scenario=scenario)
    figure, _ = draw("rounds", collect([tmp_path]), task="semseg")
    columns = ("synth-pascal SemSeg", "synth-nyud SemSeg")
    assert titles(figure) == [f"{s}\n{c}" for s in ("one", "two") for c in columns]


def test_settings_that_cannot_be_drawn_are_told(tmp_path):
    for name in ("local", "fedavg"):
        write_rounds(tmp_path, name)
    write_rounds(tmp_path, "ditto", setting="f" * 64)
    figure, notes = draw("rounds", collect([tmp_path]))
    assert list(lines(figure.axes[0])) == ["Local", "FedAvg"] and len(figure.axes) == 1
    assert any(" is not drawn: Δm needs the local run" in note for note in notes)


def test_a_run_without_scores_by_round_has_no_line_but_is_still_the_reference(tmp_path):
    folder = write_rounds(tmp_path, "local")
    write_rounds(tmp_path, "fedavg")
    (folder / "metrics.jsonl").unlink()
    figure, notes = draw("rounds", collect([tmp_path]))
    assert list(lines(figure.axes[0])) == ["FedAvg"]
    assert any(note.startswith("left out: duo/local/") for note in notes)


# -- clients ---------------------------------------------------------------------------------------------------------


def test_clients_draws_delta_by_their_number(tmp_path):
    for clients, setting in ((DUO, "a" * 64), (TRIPLE, "b" * 64)):
        for name in ("local", "fedavg", "ditto"):
            write_rounds(tmp_path, name, clients=clients, setting=setting)
    figure, _ = draw("clients", collect([tmp_path]))
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "3"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("number of clients", "Δm (%) ↑")
    assert [box.get_label() for box in axes.containers] == ["FedAvg", "Ditto"]
    assert all(len(box[0].get_ydata()) == 2 for box in axes.containers)


def test_clients_draws_a_column_by_their_number(tmp_path):
    """The local runs have scores too, where Δm has its zero."""
    for clients, setting in ((DUO, "a" * 64), (TRIPLE, "b" * 64)):
        for name in ("local", "fedavg"):
            write_rounds(tmp_path, name, clients=clients, setting=setting)
    collection = collect([tmp_path])
    figure, notes = draw("clients", collection, task="semseg")
    assert titles(figure) == ["synth-pascal SemSeg", "synth-nyud SemSeg"] and not notes
    figure, _ = draw("clients", collection, task="semseg", dataset="nyud")
    (axes,) = figure.axes
    assert axes.get_ylabel() == "SemSeg mIoU ↑" and [box.get_label() for box in axes.containers] == ["Local", "FedAvg"]
    ours = sorted((r for r in collection.runs if r.label == "FedAvg"), key=lambda r: len(r.summary["clients"]))
    values = [scores(run)["nyud-multi", "semseg"]["value"] for run in ours]
    assert axes.containers[1][0].get_ydata().tolist() == pytest.approx(values)


def test_clients_takes_a_scenario_s_larger_forms_together(tmp_path):
    for clients, scenario, setting in ((DUO, "st_mt_1", "a" * 64), (TRIPLE, "st_mt_1_2c", "b" * 64)):
        for name in ("local", "fedavg"):
            write_rounds(tmp_path, name, clients=clients, scenario=scenario, setting=setting)
    for scenario in (None, "st_mt_1"):
        figure, _ = draw("clients", collect([tmp_path]), scenario=scenario)
        assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["2", "3"]
    with pytest.raises(PlotError, match="all runs have 3 clients"):
        draw("clients", collect([tmp_path]), scenario="st_mt_1_2c")
    write_rounds(tmp_path, "local", scenario="mt_mt")
    with pytest.raises(UsageError, match="several scenarios"):
        draw("clients", collect([tmp_path]))


@pytest.mark.parametrize(
    "other",
    [{"rounds": 4}, {"preset": "paper"}, {"setting_text": {"train.lr": 1.0, "scenario_parameters": {"clients": 3}}},
     {"data_fingerprints": {"nyud/test": "new"}}],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_clients_never_joins_runs_that_differ_in_more_than_their_number(tmp_path, other):
    for name in ("local", "fedavg", "ditto"):
        write_rounds(tmp_path, name, clients=DUO, setting="a" * 64)
    for name in ("local", "fedavg"):
        write_rounds(tmp_path, name, clients=TRIPLE, setting="b" * 64, **other)
    with pytest.raises(PlotError, match="all runs have 2 clients"):
        draw("clients", collect([tmp_path]))


def test_clients_looks_into_the_configs_where_they_are(tmp_path):
    for clients, setting, rate in ((DUO, "a", 0.1), (TRIPLE, "b", 0.2)):
        for name in ("local", "fedavg"):
            folder = write_rounds(tmp_path, name, clients=clients, setting=setting * 64)
            text = f"seed: 0\nscenario: {{name: {setting}}}\nalgorithm: {{name: {name}}}\ntrain: {{lr: {rate}}}\n"
            (folder / "config.yaml").write_text(text)
    with pytest.raises(PlotError, match=r"all runs have [23] clients"):
        draw("clients", collect([tmp_path]))


def test_one_evaluated_round_is_one_whole_tick(tmp_path):
    write_rounds(tmp_path, "local", rounds=2)
    write_rounds(tmp_path, "fedavg", rounds=2)
    figure, _ = draw("rounds", collect([tmp_path]))
    low, high = figure.axes[0].get_xlim()
    assert [tick for tick in figure.axes[0].get_xticks() if low <= tick <= high] == [2]


def test_clients_of_local_runs_alone_is_nothing(tmp_path):
    write_rounds(tmp_path, "local")
    with pytest.raises(PlotError, match="all runs are local"):
        draw("clients", collect([tmp_path]))


# -- pareto ----------------------------------------------------------------------------------------------------------


def test_front_by_hand():
    assert front([3, 1, 2, 2, 5], [4, 1, 3, 2, 4]) == [1, 2, 0]  # the last costs more and gains no more
    assert front([1, 1], [0, 2]) == [1] and front([], []) == []


def test_pareto_marks_the_front(runs):
    figure, _ = draw("pareto", runs)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (min) ↓", "Δm (%) ↑")
    assert [box.get_label() for box in axes.containers] == ["Local", "FedAvg", "FedHCA²"]
    points = pareto_points(runs.runs).groupby("label", sort=False)[["cost", "delta_m"]].mean()
    assert points.loc["Local"].tolist() == pytest.approx([300, 0])
    on = front(points["cost"].tolist(), points["delta_m"].tolist())
    rings = [line for line in axes.lines if line.get_markersize() == 9]
    assert len(rings) == len(on) == 2
    assert figure.legends[0].get_texts()[-1].get_text() == "Pareto front"


@pytest.mark.parametrize("cost, label, local", [("kwh", "energy (Wh) ↓", 0.006), ("bytes", "communication (GB) ↓", 0)])
def test_pareto_by_other_costs(runs, cost, label, local):
    assert draw("pareto", runs, cost=cost)[0].axes[0].get_xlabel() == label
    points = pareto_points(runs.runs, cost)
    assert points[points["label"] == "Local"]["cost"].tolist() == pytest.approx([local, local])


def test_pareto_of_an_unknown_cost(runs):
    with pytest.raises(UsageError, match="did you mean 'seconds'"):
        draw("pareto", runs, cost="second")
