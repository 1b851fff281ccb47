"""Runs by different code are told apart, and every table says when its rows were made by different code."""

from __future__ import annotations

import csv
import io
import json

import pytest
from made_runs import code, summary, write_run
from report_kit import change_json, printed_rows

from fmtlbench.cli import main
from fmtlbench.reports.code_notes import code_notes
from fmtlbench.reports.collect import collect
from fmtlbench.reports.formats import render
from fmtlbench.reports.leaderboard import leaderboards

OTHER_ENGINE = {"engine": "2"}


def write(root, algorithm, seed=0, value=50.0, name=None, **versions):
    made = summary(algorithm, {("nyud-multi", "semseg"): value}, seed, config_hash=f"{algorithm}-{seed}".ljust(64, "0"))
    return write_run(root, {**made, "code": code(algorithm, **versions)}, name=name)


def forget_code(folder):
    """Make a run one of before code was recorded."""
    change_json(folder / "summary.json", lambda made: {key: made[key] for key in made if key != "code"})


def notes_of(root):
    return code_notes(collect([root]).runs)


def test_one_code_is_not_worth_a_word(tmp_path):
    for algorithm in ("local", "fedavg"):
        for seed in (0, 1):
            write(tmp_path, algorithm, seed)
    assert notes_of(tmp_path) == []
    (table,) = leaderboards(collect([tmp_path]))
    assert "code" not in next(csv.DictReader(io.StringIO(render([table], "csv"))))


def test_code_that_nobody_recorded_is_not_worth_a_word(tmp_path):
    for algorithm in ("local", "fedavg"):
        forget_code(write(tmp_path, algorithm))
    assert notes_of(tmp_path) == []


def test_rows_of_different_engines_are_told(tmp_path):
    write(tmp_path, "local")
    write(tmp_path, "fedavg", **OTHER_ENGINE)
    write(tmp_path, "fedper", **OTHER_ENGINE)
    assert notes_of(tmp_path) == [
        "made by 2 versions of the code: engine differs between FedAvg, FedPer; and Local",
    ]


def test_several_parts_and_a_row_of_two_versions_are_told(tmp_path):
    write(tmp_path, "fedavg", 0)
    write(tmp_path, "fedavg", 1, engine="2", metrics="2")
    write(tmp_path, "local", 0)
    assert notes_of(tmp_path) == [
        "made by 2 versions of the code: engine and metrics differ between FedAvg (seed 0), Local; and FedAvg (seed 1)",
    ]


def test_seeds_by_different_code_of_a_method_are_told(tmp_path):
    for seed in (0, 1):
        write(tmp_path, "fedavg", seed)
    write(tmp_path, "fedavg", 2, method="fedavg 2")
    assert notes_of(tmp_path) == ["FedAvg: made by 2 versions of the method's code (seed 0, 1 and seed 2)"]


def test_other_settings_have_other_tasks_but_one_engine(tmp_path):
    write(tmp_path, "local")
    other = summary("local", scenario="duo2", setting="6" * 64)
    write_run(tmp_path, {**other, "code": code("local", tasks="of another scenario")})
    assert notes_of(tmp_path) == []
    third = summary("local", scenario="duo3", setting="7" * 64)
    write_run(tmp_path, {**third, "code": code("local", tasks="of a third one", **OTHER_ENGINE)})
    (note,) = notes_of(tmp_path)
    assert note.startswith("made by 2 versions of the code: engine differs")


def test_runs_without_a_recorded_code_are_told_once(tmp_path):
    forget_code(write(tmp_path, "local"))
    forget_code(write(tmp_path, "fedper"))
    write(tmp_path, "fedavg")
    assert notes_of(tmp_path) == ["code not recorded: FedPer, Local"]


def test_a_run_that_other_code_began_is_told(tmp_path):
    made = summary("fedavg", seed=3)
    write_run(tmp_path, {**made, "code": {**code("fedavg"), "earlier": [code("fedavg", **OTHER_ENGINE)]}})
    assert notes_of(tmp_path) == ["FedAvg, seed 3: begun by other code than it was finished by"]


def test_runs_of_one_config_by_two_codes_have_labels_of_their_own(tmp_path):
    write(tmp_path, "fedavg", value=40.0)
    write(tmp_path, "fedavg", value=60.0, name="second", **OTHER_ENGINE)
    write(tmp_path, "fedavg", seed=1)
    write(tmp_path, "fedper")
    labels = {(run.label, run.summary["seed"]) for run in collect([tmp_path]).runs}
    one, two = (code("fedavg", **versions)["sha256"][:6] for versions in ({}, OTHER_ENGINE))
    assert labels == {
        (f"FedAvg [code {one}]", 0),
        (f"FedAvg [code {two}]", 0),
        (f"FedAvg [code {one}]", 1),
        ("FedPer", 0),
    }


def test_a_run_of_before_codes_were_recorded_beside_a_new_one(tmp_path):
    forget_code(write(tmp_path, "fedavg", name="old"))
    write(tmp_path, "fedavg")
    labels = sorted(run.label for run in collect([tmp_path]).runs)
    assert labels == [f"FedAvg [code {code('fedavg')['sha256'][:6]}]", "FedAvg [code not recorded]"]


@pytest.mark.parametrize("verb", ["leaderboard", "cost"])
def test_a_gain_is_against_the_baseline_by_the_same_code(tmp_path, capsys, verb):
    """Two codes, two local runs: each method is compared with the one that its own code made."""
    for versions, local in (({}, 40.0), (OTHER_ENGINE, 80.0)):
        write(tmp_path, "local", value=local, name=f"local-{local}", **versions)
        write(tmp_path, "fedavg", value=local, name=f"fedavg-{local}", **versions)
    assert main([verb, str(tmp_path), "--format", "csv"]) == 0
    rows = printed_rows(capsys)
    assert len(rows) == 4 and all(float(row["delta_m"]) == 0 for row in rows)


@pytest.mark.parametrize("verb", ["leaderboard", "cost", "stability", "stats"])
def test_every_format_tells_it(tmp_path, capsys, verb):
    for seed in (0, 1):
        write(tmp_path, "local", seed)
        write(tmp_path, "fedavg", seed, 51.0 + seed, **OTHER_ENGINE)
    for style in ("table", "csv", "md", "latex", "json"):
        if (verb, style) not in (("stats", "latex"), ("stats", "csv")):
            assert main([verb, str(tmp_path), "--format", style]) == 0
            told = capsys.readouterr().out
            assert "made by 2 versions of the code: engine differs between FedAvg; and Local" in told, style
            assert "U+" not in told  # what LaTeX has no letter for


def test_a_site_tells_it_and_shows_the_code_of_a_run(tmp_path):
    write(tmp_path / "runs", "local")
    folder = write(tmp_path / "runs", "fedavg", **OTHER_ENGINE)
    assert main(["leaderboard", str(tmp_path / "runs"), "--format", "html", "-o", str(tmp_path / "site")]) == 0
    pages = {path.name: path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    assert any("made by 2 versions of the code: engine differs" in text for text in pages.values())
    sha256 = json.loads((folder / "summary.json").read_text())["code"]["sha256"]
    assert any(sha256 in text for text in pages.values())


def test_exported_rows_have_the_code(tmp_path):
    write(tmp_path, "local")
    forget_code(write(tmp_path, "fedavg"))
    frame = collect([tmp_path]).frame
    by_method = {name: set(rows["code"].dropna()) for name, rows in frame.groupby("algorithm")}
    assert by_method == {"local": {code("local")["sha256"]}, "fedavg": set()}
