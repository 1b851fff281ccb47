"""Methods with a weighting of losses in tables, figures and the site: what they are called, where, against what."""

from __future__ import annotations

import json

import pytest
from made_runs import code, summary, write_absence, write_run
from report_kit import printed_rows, read_row

from fmtlbench.cli import main
from fmtlbench.config.presets import default_options
from fmtlbench.reports.code_notes import code_notes
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import Bases, Delta
from fmtlbench.reports.figure_style import styles
from fmtlbench.reports.labels import Labels, is_plain, zoo_rank
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.plots.sweep import swept
from fmtlbench.runs.result import RunResult
from fmtlbench.runs.summary import name_method, title_method
from fmtlbench.weightings import WEIGHTINGS


def weighting(name="uw", **options):
    """What a summary says of a weighting."""
    usual = default_options(WEIGHTINGS[name], "nano", {})
    return {"name": name, "title": WEIGHTINGS[name].title, "options": {**usual, **options}, "default_options": usual}


def write(root, algorithm, value=50.0, chosen=None, seed=0, **given):
    extra = {"weighting": chosen} if chosen else {}
    made = summary(algorithm, {("nyud-multi", "semseg"): value}, seed, **extra, **given)
    return write_run(root, made)


def table(root, **options):
    (made,) = leaderboards(collect([root]), **options)
    return {row.labels[0]: row for row in made.rows}


def gains(root, **options):
    (made,) = leaderboards(collect([root]), **options)
    return {row.labels[0]: read_row(made, *row.labels)["delta_m"].value for row in made.rows}


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "label"),
    [
        (summary("fedavg"), "FedAvg"),
        (summary("fedavg", weighting=None), "FedAvg"),
        (summary("fedavg", weighting=weighting()), "FedAvg+UW"),
        (summary("fedavg", weighting=weighting("gradnorm", alpha=2.0)), "FedAvg+GradNorm (alpha=2)"),
        (
            summary("fedprox", options={"mu": 0.1}, weighting=weighting("gradnorm", alpha=2.0)),
            "FedProx+GradNorm (mu=0.1, alpha=2)",
        ),
        (summary("fedprox", options={"shared": "encoder"}, weighting=weighting()), "FedProx-E+UW"),
        (
            summary(
                "mine", options={"alpha": 1}, default_options={"alpha": 1}, weighting=weighting("gradnorm", alpha=3)
            ),
            "mine+GradNorm (gradnorm.alpha=3)",
        ),
        (
            summary("fedavg", weighting={"name": "own", "title": "Own", "options": {"k": 4}, "default_options": {}}),
            "FedAvg+Own (k=4)",
        ),
    ],
)
def test_labels(made, label):
    assert Labels([made]).of(made) == label


def test_names_and_titles():
    made = summary("fedavg", weighting=weighting())
    assert (name_method(made), title_method(made)) == ("fedavg+uw", "FedAvg+UW")
    assert (name_method(summary("fedavg")), title_method(summary("fedavg"))) == ("fedavg", "FedAvg")
    assert "FedAvg+UW on duo" in repr(RunResult("folder", made, False))


def test_a_weighting_stands_behind_its_plain_method():
    methods = ["fedhca2", "mine+uw", "fedprox", "fedavg+uw", "local+dwa", "fedavg", "mine", "fedavg+dwa", "local"]
    assert sorted(methods, key=zoo_rank) == [
        "local", "local+dwa", "fedavg", "fedavg+dwa", "fedavg+uw", "fedprox", "fedhca2", "mine", "mine+uw"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "plain"),
    [("FedAvg", True), ("FedAvg+UW", True), ("FedAvg-E", False), ("FedAvg-E+UW", False), ("FedAvg+UW (a=1)", False)],
)
def test_labels_that_tell_of_options(label, plain):
    assert is_plain(label) == plain


def test_two_weightings_of_one_title_are_told_apart(tmp_path):
    write(tmp_path, "fedavg", chosen=weighting())
    write(tmp_path, "fedavg", chosen={**weighting(), "name": "my_uw"})
    assert sorted(run.label for run in collect([tmp_path]).runs) == [
        "FedAvg+UW [fedavg+my_uw]", "FedAvg+UW [fedavg+uw]"
    ]  # fmt: skip


def test_versions_of_a_users_weighting_are_told_apart(tmp_path):
    for version in "ab":
        folder = write(tmp_path, "fedavg", chosen=weighting(), config_hash=version * 64)
        (folder / "config.yaml").write_text(f"plugins: {{weighting uw: {version * 64}}}\n")
    assert sorted(run.label for run in collect([tmp_path]).runs) == [
        "FedAvg+UW [file aaaaaa]", "FedAvg+UW [file bbbbbb]"
    ]  # fmt: skip


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path):
    for seed in (0, 1):
        write(tmp_path, "fedhca2", 60.0, seed=seed)
        write(tmp_path, "fedavg", 55.0, weighting("gradnorm", alpha=3.0), seed)
        write(tmp_path, "fedavg", 52.0, weighting("dwa"), seed)
        write(tmp_path, "local", 45.0, weighting(), seed)
        write(tmp_path, "fedavg", 51.0, seed=seed)
        write(tmp_path, "local", 50.0, seed=seed)
    return tmp_path


def test_they_share_a_table_and_local_is_the_plain_one(runs):
    found = gains(runs)
    assert list(found) == ["Local", "Local+UW", "FedAvg", "FedAvg+DWA", "FedAvg+GradNorm (alpha=3)", "FedHCA²"]
    assert found["Local"] == 0 and found["Local+UW"] < 0 < found["FedAvg"] < found["FedAvg+DWA"]


@pytest.mark.parametrize("name", ["local+uw", "Local+UW"])
def test_another_baseline_is_named_with_its_weighting(runs, name):
    found = gains(runs, delta=Delta(baseline=name))
    assert found["Local+UW"] == 0 and found["Local"] > 0


def test_without_a_plain_local_run_there_is_no_gain(tmp_path):
    write(tmp_path, "local", chosen=weighting())
    write(tmp_path, "fedavg", chosen=weighting())
    assert set(gains(tmp_path).values()) == {None}


def test_curves_and_points_are_against_the_plain_local_run(runs):
    collection = collect([runs])
    bases = Bases(collection.runs, "global", Delta())
    values = {run.label: bases.delta(run, run.summary["scores"]) for run in collection.runs}
    assert values["Local"] == 0 and values["Local+UW"] < 0 < values["FedAvg"]


def test_a_reference_means_the_plain_one(runs, capsys):
    argv = ["leaderboard", str(runs), "--format", "csv", "--reference"]
    assert main([*argv, "algo=local"]) == 0
    rows = {row["method"]: row for row in printed_rows(capsys)}
    assert float(rows["Local+UW"]["delta_m"]) < 0
    assert main([*argv, "algo=local+uw"]) == 0
    rows = {row["method"]: row for row in printed_rows(capsys)}
    assert float(rows["Local"]["delta_m"]) > 0


def test_exported_rows_name_the_method_as_flags_do(runs):
    frame = collect([runs]).frame
    assert set(frame["algorithm"]) == {
        "local", "local+uw", "fedavg", "fedavg+dwa", "fedavg+gradnorm", "fedhca2"
    }  # fmt: skip


def test_pairs_of_a_test_may_be_named_so(runs, capsys):
    assert main(["stats", str(runs), "--pair", "fedavg+dwa,fedavg", "--format", "json"]) == 0
    assert "FedAvg+DWA" in capsys.readouterr().out


def test_absent_ones_have_rows_of_their_own(runs):
    write_absence(runs, algorithm="fedper", weighting=weighting())
    write_absence(runs, algorithm="fedper", leaf="plain")
    found = list(table(runs))
    assert found.index("FedPer+UW") == found.index("FedPer") + 1


def test_listed_runs_tell_it(runs, capsys):
    assert main(["runs", "list", str(runs), "--algo", "fedavg+dwa", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [run["algorithm"] for run in listed] == ["fedavg+dwa"] * 2


def test_the_site_shows_the_options_of_the_weighting(runs, tmp_path):
    out = tmp_path / "site"
    assert main(["leaderboard", str(runs), "--format", "html", "-o", str(out)]) == 0
    pages = [file.read_text() for file in out.rglob("*.html")]
    assert any("FedAvg+GradNorm (alpha=3)" in page for page in pages)
    assert any("Options of the weighting" in page and "fedavg+gradnorm" in page for page in pages)


# -- figures -----------------------------------------------------------------------------------------------------------


def test_a_weighting_has_its_methods_colour():
    found = styles(["FedAvg", "FedAvg+UW", "FedAvg-E+UW", "FedProx"])
    assert len({found[label].color for label in found if label != "FedProx"}) == 1
    assert len(set(found.values())) == 4


def test_runs_are_swept_over_weightings(runs):
    kept, sweep = swept(collect([runs]).runs, "train.weighting", [])
    found = {}
    for label, value in map(sweep.place, kept):
        found.setdefault(label, set()).add(value)
    assert found == {"FedAvg": {"equal", "dwa", "gradnorm"}, "Local": {"equal", "uw"}, "FedHCA²": {"equal"}}
    assert sweep.across == ("FedHCA²",)


def test_runs_are_swept_over_an_option_of_the_weighting(tmp_path):
    for alpha in (1.0, 3.0):
        write(tmp_path, "fedavg", 50 + alpha, weighting("gradnorm", alpha=alpha))
    write(tmp_path, "local")
    _, sweep = swept(collect([tmp_path]).runs, "train.weighting_options.alpha", [])
    assert set(sweep.values.values()) == {1.0, 3.0}
    assert set(sweep.labels.values()) == {"FedAvg+GradNorm", "Local"} and sweep.across == ("Local",)


# -- code --------------------------------------------------------------------------------------------------------------


def with_code(root, algorithm, seed=0, chosen=None, forget=False, **versions):
    made = code(algorithm, **versions)
    if forget:  # a run of before weightings could be chosen
        del made["parts"]["weighting"]
    extra = {"weighting": chosen} if chosen else {}
    return write_run(root, summary(algorithm, seed=seed, code=made, **extra))


def test_other_weightings_are_no_other_code(tmp_path):
    with_code(tmp_path, "local")
    with_code(tmp_path, "fedavg", chosen=weighting(), weighting="uw 1")
    assert code_notes(collect([tmp_path]).runs) == []


def test_runs_of_before_are_no_other_code(tmp_path):
    with_code(tmp_path, "local", forget=True)
    with_code(tmp_path, "local", seed=1)
    with_code(tmp_path, "fedavg", forget=True)
    assert code_notes(collect([tmp_path]).runs) == []


def test_an_edited_weighting_is_told_of_its_row(tmp_path):
    with_code(tmp_path, "fedavg", chosen=weighting(), weighting="uw 1")
    with_code(tmp_path, "fedavg", seed=1, chosen=weighting(), weighting="uw 2")
    assert code_notes(collect([tmp_path]).runs) == [
        "FedAvg+UW: made by 2 versions of the method's code (seed 0 and seed 1)"
    ]


def test_the_baseline_by_the_same_code_is_found_for_a_weighting_too(tmp_path):
    for engine, local in (("1", 40.0), ("2", 80.0)):
        for chosen in (None, weighting()):
            algorithm = "fedavg" if chosen else "local"
            own = {"weighting": "uw 1"} if chosen else {}
            made = summary(algorithm, {("nyud-multi", "semseg"): local}, **({"weighting": chosen} if chosen else {}))
            made |= {"config_hash": algorithm.ljust(64, "0"), "code": code(algorithm, engine=engine, **own)}
            write_run(tmp_path, made, name=f"{algorithm}-{engine}")
    assert set(gains(tmp_path).values()) == {0.0}
