"""Predictions that were made elsewhere: scored as runs are, and shown beside them with where they came from."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fmtlbench.cli import main
from fmtlbench.runs.folder import RunFolder

SIX = """\
description: a client of every kind of labels
paper: none
version: 1
clients:
  - {dataset: pascal, tasks: [human_parts, sal]}
  - {dataset: nyud, tasks: [depth, edge, normals]}
evaluation: [global, personal]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained run of local, and its predictions as arrays."""
    from tiny import TINY

    import fmtlbench

    folder = tmp_path_factory.mktemp("external")
    (folder / "six.yml").write_text(SIX)
    given = {"rounds": 2, "out": folder / "runs", "device": "cpu", "keep": "last", **TINY}
    made = fmtlbench.run("local", folder / "six.yml", **given)
    assert main(["predict", str(made.folder), "--arrays", "-o", str(folder / "pred")]) == 0
    return made.folder, folder / "pred"


def external(root: Path, name: str) -> dict:
    (found,) = [f for f in root.glob(f"*/{name}/*") if (f / "summary.json").is_file()]
    return {**RunFolder(found).summary(), "folder": found}


def primary(summary: dict, split: str) -> dict:
    return {(s["client"], s["task"], s["metric"]): s for s in summary["scores"] if s["split"] == split}


def test_predictions_of_a_run_get_exactly_its_scores(run, tmp_path, capsys):
    folder, pred = run
    asked = ["score-external", str(pred), "--name", "Theirs", "--by", "A. Author", "--like", str(folder)]
    assert main([*asked, "-o", str(tmp_path / "runs")]) == 0
    summary = external(tmp_path / "runs", "Theirs")
    ours = RunFolder(folder).summary()
    assert primary(summary, "global") == primary(ours, "global")
    assert len({score["task"] for score in summary["scores"]}) == 5
    assert {summary[key] == ours[key] for key in ("setting", "data_fingerprints", "rounds", "scenario")} == {True}
    out = capsys.readouterr().out
    assert "external predictions by A. Author" in out and str(summary["folder"]) in out


def test_pictures_get_the_scores_that_evaluate_gives(run, tmp_path, capsys):
    """8-bit pictures are other predictions than the arrays; both verbs read them alike."""
    folder, _ = run
    assert main(["predict", str(folder), "-o", str(tmp_path / "png")]) == 0
    assert (
        main(["score-external", str(tmp_path / "png"), "--name", "T", "--like", str(folder), "-o", str(tmp_path)]) == 0
    )
    scores = primary(external(tmp_path, "T"), "global")
    ours = primary(RunFolder(folder).summary(), "global")
    exact = {key for key in scores if key[1] in ("human_parts", "depth")}
    assert exact and {key: scores[key] for key in exact} == {key: ours[key] for key in exact}
    for key in scores.keys() - exact:
        assert scores[key]["value"] == pytest.approx(ours[key]["value"], abs=3)


def test_leaderboards_show_it_marked_with_its_origin(run, tmp_path, capsys):
    folder, pred = run
    shutil.copytree(folder.parents[2], tmp_path / "runs")
    for name in ("Theirs", "Others"):
        asked = ["score-external", str(pred), "--name", name, "--by", "A. Author", "--like", str(folder)]
        assert main([*asked, "-o", str(tmp_path / "runs")]) == 0
    capsys.readouterr()
    assert main(["leaderboard", str(tmp_path / "runs"), "--format", "md"]) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("| Theirs")]
    assert len(rows) == 1 and "Theirs (external)" in rows[0]
    local = next(line for line in out.splitlines() if line.startswith("| Local"))
    assert rows[0].split("|")[2:6] == local.split("|")[2:6]
    assert "0.00" in rows[0]  # Δm against Local, whose predictions they are
    assert "Theirs (external): external predictions by A. Author, not trained here: 20 files (sha256" in out
    figure, runs = ("-o", str(tmp_path / "figure.png")), str(tmp_path / "runs")
    for words in (
        ("export", runs),
        ("stats", runs),
        ("cost", runs),
        ("leaderboard", runs, "--fairness"),
        ("leaderboard", runs, "--format", "html", "-o", str(tmp_path / "site")),
        ("plot", "rounds", runs, *figure),
        ("plot", "pareto", runs, *figure),
        ("plot", "distribution", runs, *figure),
    ):
        code, captured = main(list(words)), capsys.readouterr()
        assert code == 0, (words, captured.err)
    pages = [page.read_text() for page in (tmp_path / "site").rglob("*.html")]
    assert any("Theirs (external)" in page for page in pages)


def test_the_hashes_name_the_files(run, tmp_path):
    folder, pred = run
    assert main(["score-external", str(pred), "--name", "T", "--like", str(folder), "-o", str(tmp_path)]) == 0
    summary = external(tmp_path, "T")
    listing = (summary["folder"] / "predictions.sha256").read_text()
    assert hashlib.sha256(listing.encode()).hexdigest() == summary["external"]["sha256"]
    for line in listing.splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((pred / name).read_bytes()).hexdigest() == digest
    assert len(listing.splitlines()) == summary["external"]["files"] == 20
    assert summary["external"]["metrics"]["depth"]["metric"] == "rmse"


def test_one_client_in_a_scenario(run, tmp_path, capsys, tiny_flags):
    folder, pred = run
    scenario = str(folder.parents[3] / "six.yml")
    asked = ["score-external", str(pred), "--name", "T", "--scenario", scenario, "--rounds", "2", *tiny_flags]
    assert main([*asked, "--client", "nyud-multi", "-o", str(tmp_path)]) == 0
    summary = external(tmp_path, "T")
    assert [client["id"] for client in summary["clients"]] == ["nyud-multi"]
    assert summary["setting"] == RunFolder(folder).summary()["setting"]
    shutil.copytree(folder, tmp_path / "six" / "local" / folder.name)
    capsys.readouterr()
    assert main(["leaderboard", str(tmp_path), "--format", "csv"]) == 0
    assert "T (external)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("--name", "local"), 2, "a method of the zoo has this name"),
        (("--name", "../up"), 2, "it holds a slash"),
        (("--name", ""), 2, "it is empty"),
        (("--name", "T", "--client", "nobody"), 2, "no client 'nobody'"),
        (("--name", "T", "--split", "nowhere"), 2, "no split 'nowhere'"),
        (("--name", "T", "--split", "personal"), 1, "missing prediction"),
        (("--name", "T", "--set", "train.lr=1"), 2, "--set: does not go with --like"),
    ],
)
def test_what_is_refused(run, tmp_path, capsys, change, code, said):
    folder, pred = run
    assert main(["score-external", str(pred), "--like", str(folder), "-o", str(tmp_path / "o"), *change]) == code
    assert said in capsys.readouterr().err and not (tmp_path / "o").exists()


def test_what_cannot_be_right_is_refused_unless_trusted(run, tmp_path, capsys):
    folder, pred = run
    shutil.copytree(pred, tmp_path / "mm")
    for file in (tmp_path / "mm" / "nyud-multi" / "depth").glob("*.npy"):
        np.save(file, 10_000 * np.load(file))
    asked = ["score-external", str(tmp_path / "mm"), "--name", "T", "--like", str(folder), "-o", str(tmp_path / "o")]
    assert main(asked) == 1 and "millimetres" in capsys.readouterr().err
    assert main([*asked, "--trust"]) == 0
    assert "millimetres" in external(tmp_path / "o", "T")["external"]["doubts"][0]
    capsys.readouterr()
    assert main(["leaderboard", str(tmp_path / "o")]) == 0
    assert "millimetres" in capsys.readouterr().out


def test_it_is_no_run_to_predict_with(run, tmp_path, capsys):
    folder, pred = run
    assert main(["score-external", str(pred), "--name", "T", "--like", str(folder), "-o", str(tmp_path)]) == 0
    made = external(tmp_path, "T")["folder"]
    capsys.readouterr()
    assert main(["predict", str(made)]) == 1
    assert "external predictions" in capsys.readouterr().err


def test_a_dataset_of_files(tmp_path, capsys):
    from robots import good_array, npy, robots

    for name, content in robots().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    tasks = {"semseg": {"classes": ["a", "b", "c"]}, "depth": {}}
    (tmp_path / "robots" / "dataset.yml").write_text(json.dumps({"tasks": tasks}))
    (tmp_path / "pred" / "depth").mkdir(parents=True)
    (tmp_path / "pred" / "depth" / "2.npy").write_bytes(npy(good_array("depth", 2) + 1))
    asked = ["score-external", str(tmp_path / "pred"), "--name", "T", "-o", str(tmp_path / "runs")]
    assert main([*asked, "--dataset", str(tmp_path / "robots" / "dataset.yml")]) == 0
    summary = external(tmp_path / "runs", "T")
    assert summary["scores"][0]["value"] == pytest.approx(1.0) and summary["scenario"] == "robots-test"
    capsys.readouterr()
    assert main(["leaderboard", str(tmp_path / "runs")]) == 0
    assert "T (external)" in capsys.readouterr().out
