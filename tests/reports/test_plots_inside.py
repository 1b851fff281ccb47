"""Figures of what happens inside a method: hyper weights, groups and votes, updates; and the tests' figures."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from made_rounds import EIGHTEEN, NINE, write_rounds
from made_runs import DUO, ST_MT_1
from report_kit import TRIPLE, change_lines, draw

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.reports.collect import collect
from fmtlbench.reports.plots._curves import PlotError
from fmtlbench.reports.plots.grouping import grouping_frequency, layer_votes, short_names
from fmtlbench.reports.plots.hyperweights import hyperweights_data
from fmtlbench.reports.plots.pvalues import short_p
from fmtlbench.reports.plots.updates import principal_plane, tsne_plane, updates_points, with_length_one
from fmtlbench.reports.stats import analyse
from fmtlbench.reports.stats.ranks import critical_difference


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("inside")
    for name in NINE:
        write_rounds(root, name, clients=EIGHTEEN, rounds=4)
    return root


@pytest.fixture(scope="module")
def runs(root):
    return collect([root])


def of(runs, algorithm):
    return next(run for run in runs.runs if run.summary["algorithm"] == algorithm)


def rewrite(folder, change):
    """Change the rows of a run's metrics.jsonl."""
    change_lines(folder / "metrics.jsonl", change)
    return collect([folder])


# -- hyper weights ---------------------------------------------------------------------------------------------------


def test_hyperweights_shows_alpha_as_lines_and_beta_as_a_map(runs):
    figure, _ = draw("hyperweights", runs)
    top, below = figure.subfigs
    axes = top.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("communication round", "encoder weight α")
    assert len(axes.lines) == 18 == len(top.legends[0].get_texts())
    assert axes.lines[1].get_ydata().tolist() == pytest.approx([0.1 + 0.001 * r for r in range(1, 5)])
    heat, bar = below.axes
    assert heat.collections[0].get_array().shape == (18, 6) and bar.get_ylabel() == "decoder weight β"
    assert [t.get_text() for t in heat.get_yticklabels()] == list(EIGHTEEN)  # one decoder each: the client says it


def test_alpha_of_single_and_multi_task_clients_has_panels_apart(tmp_path):
    write_rounds(tmp_path, "fedhca2", clients=ST_MT_1)
    figure, _ = draw("hyperweights", collect([tmp_path]))
    single, multi, beta = figure.subfigs
    assert [panel.axes[0].get_title() for panel in (single, multi)] == ["single-task clients", "multi-task clients"]
    assert [line.get_label() for line in single.axes[0].lines] == list(ST_MT_1)[:-1]
    [line] = multi.axes[0].lines
    assert line.get_label() == "nyud-multi" and line.get_ydata().tolist() == pytest.approx(
        [0.1 + 0.003 * r for r in range(1, 7)]
    )
    assert line.get_color() not in [other.get_color() for other in single.axes[0].lines]
    assert beta.axes[0].get_xlabel() == "decoder layer"


@pytest.mark.parametrize("tasks", [("depth",), ("semseg", "depth")])
def test_one_kind_of_clients_is_one_panel_without_a_title(tmp_path, tasks):
    write_rounds(tmp_path, "fedhca2", clients={f"nyud-{i}": ("nyud", tasks) for i in (1, 2)})
    figure, _ = draw("hyperweights", collect([tmp_path]))
    assert len(figure.subfigs) == 2 and figure.subfigs[0].axes[0].get_title() == ""
    assert len(figure.subfigs[0].axes[0].lines) == 2


def test_hyperweights_are_as_used(tmp_path):
    folder = write_rounds(tmp_path, "fedhca2", rounds=2)
    wild = {"alpha": {"pascal-semseg": -0.2, "nyud-multi": 1.7}, "beta": {"nyud-multi/depth": [0.5, 2.0]}}
    collection = rewrite(folder, lambda row: {**row, "algorithm": wild})
    alpha, beta = hyperweights_data(collection.runs[0])
    assert alpha.to_numpy().tolist() == [[0, 1], [0, 1]] and beta.loc["nyud-multi/depth"].to_dict() == {
        "L1": 0.5,
        "L2": 1,
    }
    with pytest.raises(PlotError, match=r"--round 9: .* rounds 1 to 2"):
        hyperweights_data(collection.runs[0], 9)


def test_a_part_that_was_not_shared_is_left_out(tmp_path):
    folder = write_rounds(tmp_path, "fedhca2", rounds=2)
    collection = rewrite(folder, lambda row: {**row, "algorithm": {**row["algorithm"], "alpha": {}}})
    figure, _ = draw("hyperweights", collection)
    assert len(figure.subfigs) == 1 and figure.subfigs[0].axes[0].get_xlabel() == "decoder layer"


def test_hyperweights_of_another_method(root):
    with pytest.raises(UsageError, match=r"no alpha and beta in the rounds of the \d+ runs"):
        draw("hyperweights", collect([root / "duo" / "fedavg"]))
    with pytest.raises(PlotError, match="no alpha and beta"):
        hyperweights_data(of(collect([root / "duo" / "fedavg"]), "fedavg"))


def test_a_figure_takes_any_method_that_tells_what_it_draws(tmp_path):
    told = {"alpha": {"pascal-semseg": 0.5, "nyud-multi": 0.25}, "beta": {"nyud-multi/depth": [1.0, 0.5]}}
    rewrite(write_rounds(tmp_path, "mine", rounds=2), lambda row: {**row, "algorithm": told})
    write_rounds(tmp_path, "fedavg", rounds=2)
    figure, notes = draw("hyperweights", collect([tmp_path]))
    assert len(figure.subfigs) == 3 and notes == []
    half = rewrite(next(tmp_path.glob("*/mine/*")), lambda row: {**row, "algorithm": {"alpha": told["alpha"]}})
    with pytest.raises(UsageError, match=r"^no beta in the rounds of .*, which this figure draws; they tell alpha$"):
        draw("hyperweights", half)


# -- groups ----------------------------------------------------------------------------------------------------------


def test_grouping_draws_frequencies_and_votes(runs):
    figure, _ = draw("grouping", runs, client="nyud-depth-1")
    heat, votes, *_ = figure.axes
    assert heat.collections[0].get_array().shape == (18, 18) and votes.collections[0].get_array().shape == (8, 18)
    assert votes.get_title() == "layers of nyud-depth-1" and votes.get_xlabel() == "client"
    assert np.diag(heat.collections[0].get_array()).tolist() == [100] * 18


def test_parts_of_figures_stand_alone(tmp_path, runs):
    alone, _ = draw("grouping", runs, part="frequency")
    assert alone.axes[0].collections[0].get_array().shape == (18, 18) and len(alone.axes) == 2
    votes, _ = draw("grouping", runs, part="votes")
    titles = [axes.get_title() for axes in votes.axes if axes.get_title()]
    kinds = {tuple(EIGHTEEN[title.removeprefix("layers of ")]) for title in titles}
    assert len(titles) == 9 == len(kinds)  # one client of each kind
    scales = {tuple(a.collections[0].get_clim()) for a in votes.axes if a.get_title()}
    assert len(scales) == 1  # the same colours mean the same votes
    write_rounds(tmp_path, "fedhca2", clients=ST_MT_1)
    weights = collect([tmp_path])
    alpha, beta = (draw("hyperweights", weights, part=part)[0] for part in ("alpha", "beta"))
    assert [len(figure.subfigs) for figure in (alpha, beta)] == [2, 1]
    with pytest.raises(UsageError, match="no part of this figure 'alfa'; did you mean 'alpha'"):
        draw("hyperweights", weights, part="alfa")


def test_a_part_that_does_not_exist_is_told(tmp_path):
    folder = write_rounds(tmp_path, "fedhca2", rounds=2)
    collection = rewrite(folder, lambda row: {**row, "algorithm": {**row["algorithm"], "alpha": {}}})
    with pytest.raises(PlotError, match=r"--part alpha: .* did not share what it weighs"):
        draw("hyperweights", collection, part="alpha")


def test_frequencies_by_hand(tmp_path):
    """Two rounds of clusters: together, then apart; a client that was absent has no say in that round."""
    folder = write_rounds(tmp_path, "matfl", rounds=3)
    groups = {1: {"pascal-semseg": 0, "nyud-multi": 0}, 2: {"pascal-semseg": 0, "nyud-multi": 1}, 3: {"nyud-multi": 0}}
    collection = rewrite(folder, lambda row: {**row, "algorithm": {"groups": groups[row["round"]]}})
    assert grouping_frequency(collection.runs[0]).to_numpy().tolist() == [[100, 50], [50, 100]]
    assert layer_votes(collection.runs[0]) is None
    assert len(draw("grouping", collection)[0].axes) == 2  # the map and its scale
    with pytest.raises(PlotError, match="its layers did not vote"):
        draw("grouping", collection, client="nyud-multi")


def test_votes_by_hand(tmp_path):
    folder = write_rounds(tmp_path, "matfl", rounds=2)
    votes = {1: [[[2, 1], [1, 2]]], 2: [[[2, 0], [1, 2]]]}
    kept = lambda r: {"layers": ["a.weight"], "clients": list(DUO), "votes": votes[r]}
    collection = rewrite(
        folder, lambda row: {**row, "algorithm": {"groups": {c: [c] for c in DUO}, "votes": kept(row["round"])}}
    )
    assert layer_votes(collection.runs[0]).to_numpy().tolist() == [[2, 0.5]]
    assert layer_votes(collection.runs[0], "nyud-multi").to_numpy().tolist() == [[1, 2]]
    with pytest.raises(UsageError, match="did you mean 'nyud-multi'"):
        layer_votes(collection.runs[0], "nyud")


def test_layer_names_are_shortened_without_becoming_equal():
    names = [f"layers_{s}.blocks.{b}.mlp.fc{f}.weight" for s in (2, 3) for b in (0, 1) for f in (1, 2)]
    assert short_names(names)[:2] == ["2.0.fc1", "2.0.fc2"] and len(set(short_names(names))) == 8
    assert short_names(["conv.weight"]) == ["conv"]


# -- updates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", [True, False])
def test_the_plane_is_that_of_the_vectors(normalise):
    """Against the singular value decomposition of the updates themselves, up to the sign of an axis."""
    x = np.random.default_rng(0).normal(size=(7, 30)) * np.arange(1, 8)[:, None]
    gram = x @ x.T
    xy, share = principal_plane(with_length_one(gram) if normalise else gram)
    if normalise:
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    np.testing.assert_allclose(np.abs(xy), np.abs(u[:, :2] * s[:2]), atol=1e-9)
    assert share == pytest.approx(s[:2] ** 2 / (s**2).sum())


def test_clients_that_did_not_move_are_no_trouble():
    xy, share = principal_plane(with_length_one(np.zeros((4, 4))))
    assert not xy.any() and share == (0, 0)


def test_updates_has_a_colour_per_task_and_a_marker_per_dataset(root):
    figure, notes = draw("updates", collect([root / "duo" / "fedavg"]))
    (axes,) = figure.axes
    drawn = [line for line in axes.lines if line.get_marker() != "None"]
    assert sum(len(line.get_xdata()) for line in drawn) == 18
    assert len({line.get_color() for line in drawn}) == 6 and {line.get_marker() for line in drawn} == {"o", "s"}
    assert axes.get_xlabel().startswith("PC 1 (") and axes.get_xlabel().endswith("% of variance)")
    assert [t.get_text() for t in figure.legends[0].get_texts()][-2:] == ["nyud", "pascal"]
    assert "encoder updates of round 4, to length 1" in notes[0]


def test_tsne_puts_near_what_is_near_and_is_the_same_every_time(root):
    pytest.importorskip("sklearn")
    (run,) = collect([root / "duo" / "fedavg"]).runs
    updates = updates_points(run, method="tsne")
    again = updates_points(run, method="tsne").points
    assert updates.points[["x", "y"]].to_numpy().tolist() == again[["x", "y"]].to_numpy().tolist()
    assert np.isfinite(updates.points[["x", "y"]].to_numpy()).all()
    assert updates.how == "t-SNE with perplexity 5.67"  # (18 - 1) / 3
    xy = updates.points[["x", "y"]].to_numpy()
    apart = np.linalg.norm(xy[:, None] - xy[None], axis=-1)
    same = updates.points["dataset"].to_numpy()[:, None] == updates.points["dataset"].to_numpy()
    assert apart[same].mean() < apart[~same].mean()  # as the updates were made


def test_tsne_sees_the_distances_of_the_vectors_and_at_most_perplexity_30(monkeypatch):
    manifold = pytest.importorskip("sklearn.manifold")
    x = np.random.default_rng(0).normal(size=(120, 5))
    seen = {}

    class Spy:
        def __init__(self, **given):
            seen.update(given)

        def fit_transform(self, distances):
            seen["distances"] = distances
            return distances[:, :2]

    monkeypatch.setattr(manifold, "TSNE", Spy)
    assert tsne_plane(x @ x.T)[1] == 30 and seen["metric"] == "precomputed" and seen["init"] == "random"
    np.testing.assert_allclose(seen["distances"], np.linalg.norm(x[:, None] - x[None], axis=-1), atol=1e-6)


def test_axes_of_tsne_say_nothing_of_variance(root):
    pytest.importorskip("sklearn")
    figure, notes = draw("updates", collect([root / "duo" / "fedavg"]), method="tsne")
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("t-SNE 1", "t-SNE 2")
    assert notes == ["encoder updates of round 4, to length 1: t-SNE with perplexity 5.67 of 18"]


def test_tsne_without_scikit_learn_says_how_to_get_it(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(FmtlbenchError, match=r't-SNE needs scikit-learn: pip install "fmtlbench\[tsne\]"'):
        draw("updates", collect([root / "duo" / "fedavg"]), method="tsne")


def test_tsne_of_too_few_or_equal_updates(tmp_path):
    pytest.importorskip("sklearn")
    with pytest.raises(PlotError, match="all updates are the same"):
        tsne_plane(np.ones((5, 5)))
    write_rounds(tmp_path, "fedavg", clients=TRIPLE)
    with pytest.raises(PlotError, match="3 updates in round 6; tsne needs at least 4"):
        draw("updates", collect([tmp_path]), method="tsne")


def test_clients_with_several_tasks_say_so(tmp_path):
    write_rounds(tmp_path, "fedavg", clients=TRIPLE)
    points = updates_points(collect([tmp_path]).runs[0]).points
    assert points["task"].tolist() == ["semseg", "several tasks", "edge"]


@pytest.mark.parametrize(
    "algorithm, options, words",
    [
        ("local", {}, r"no updates in metrics.jsonl; .* --set evaluation\.updates=encoder"),
        ("fedavg", {"method": "tnse"}, "--method: no method 'tnse'; did you mean 'tsne'"),
        ("fedavg", {"round": 3}, "updates of rounds 2, 4"),
        ("fedavg", {"updates": "decoder"}, "--updates: no kind of updates 'decoder'; did you mean 'encoder'"),
    ],
)
def test_updates_says_what_is_missing(root, algorithm, options, words):
    with pytest.raises((PlotError, UsageError), match=words):
        draw("updates", collect([root / "duo" / algorithm]), **options)


def test_two_updates_make_no_plane(tmp_path):
    write_rounds(tmp_path, "fedavg")
    with pytest.raises(PlotError, match="at least 3"):
        draw("updates", collect([tmp_path]))


def test_one_run_must_be_named_and_the_lowest_seed_is_told(runs, tmp_path):
    with pytest.raises(UsageError, match="name one of the 9 folders: duo/ditto/"):
        draw("updates", runs)
    for seed in (3, 5):
        write_rounds(tmp_path, "fedhca2", seed)
    assert "drawn is seed 3 of 2 seeds" in draw("hyperweights", collect([tmp_path]))[1][0]


# -- the tests' figures ----------------------------------------------------------------------------------------------


def test_cd_names_every_method_with_its_rank(runs):
    figure, _ = draw("cd", runs)
    (axes,) = figure.axes
    ranks = analyse(runs.frame).ranks
    texts = [t.get_text().strip() for t in axes.texts]
    for name, rank in ranks.items():
        assert any(t in (f"{name} ({rank:.2f})", f"({rank:.2f}) {name}") for t in texts), name
    cd = critical_difference(9, 9)  # eighteen clients, two of each kind: nine blocks
    assert f"CD = {cd:.2f}" in texts and axes.get_xlabel() == "average rank (1 = best)" and axes.get_xlim() == (1, 9)


def test_cd_of_two_methods_is_refused(root):
    collection = collect([root / "duo" / name for name in ("local", "fedavg")])
    with pytest.raises(PlotError, match="at least 3 methods, and here are 2"):
        draw("cd", collection)
    assert len(draw("pvalues", collection)[0].axes[0].texts) == 1


def test_pvalues_writes_every_pair(runs):
    figure, _ = draw("pvalues", runs, correction="bonferroni")
    axes, bar = figure.axes
    table = analyse(runs.frame, correction="bonferroni").wilcoxon_table()
    assert len(axes.texts) == 36 and bar.get_xlabel() == "Wilcoxon p, Bonferroni-corrected"
    assert axes.texts[0].get_text() == short_p(table.iloc[1, 0])
    bold = [t.get_text() for t in axes.texts if t.get_fontweight() == "bold"]
    assert len(bold) == int((np.tril(table, -1)[np.tril_indices(9, -1)] < 0.05).sum())


@pytest.mark.parametrize("p, text", [(1.0, "1"), (0.0004, "<.001"), (0.0341, ".034"), (0.51, ".51"), (0.99996, "1")])
def test_short_p(p, text):
    assert short_p(p) == text


def test_distribution_is_of_one_federation(runs, tmp_path):
    assert draw("distribution", runs)[0].axes
    write_rounds(tmp_path, "local")
    write_rounds(tmp_path, "local", clients=TRIPLE, setting="b" * 64)
    with pytest.raises(UsageError, match="2 different federations"):
        draw("distribution", collect([tmp_path]))


def test_distribution_calls_the_data_what_they_are(tmp_path):
    for data, names in (("synth", {"synth-\npascal", "synth-nyud"}), ("real", {"PASCAL-\nContext", "NYUD-v2"})):
        write_rounds(tmp_path / data, "local", data=data)
        figure, _ = draw("distribution", collect([tmp_path / data]))
        assert names <= {text.get_text() for text in figure.axes[0].texts}
    with pytest.raises(UsageError, match="different data"):
        draw("distribution", collect([tmp_path]))
