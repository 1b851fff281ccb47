"""`fmtlbench predict` as a user meets it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from fmtlbench.cli import main


@pytest.fixture
def predict(capsys):
    """(exit code, stdout, stderr) of `fmtlbench predict`."""

    def call(*argv):
        capsys.readouterr()
        try:
            code = main(["predict", *map(str, argv)])
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def runs(tiny_run):
    return [tiny_run(algo, rounds=1).folder for algo in ("fedavg", "local")]


def test_files_per_client_task_and_image(predict, runs, tmp_path):
    code, out, _ = predict(runs[0])
    assert (code, out) == (0, f"{runs[0] / 'predictions'}\n")
    found = sorted(str(path.relative_to(runs[0] / "predictions")) for path in (runs[0] / "predictions").rglob("*.*"))
    depth = [f"nyud-multi/depth/{i:05d}.{ending}" for i in range(4) for ending in ("npy", "png")]
    edge = [f"nyud-multi/edge/{i:05d}.png" for i in range(4)]
    parts = [f"pascal-human_parts/human_parts/{i:05d}.png" for i in range(4)]
    kinds = ("depth-prediction", "depth-truth", "edge-prediction", "edge-truth", "input")
    examples = [f"examples/nyud-multi/{i:05d}/{name}.png" for i in range(3) for name in kinds]
    kinds = ("human_parts-prediction", "human_parts-truth", "input")
    examples += [f"examples/pascal-human_parts/{i:05d}/{name}.png" for i in range(3) for name in kinds]
    assert found == [*examples, *depth, *edge, *parts, "predictions.json"]
    code, out, _ = predict(runs[0], "--client", "nyud-multi", "--task", "edge", "--limit", 1, "-o", tmp_path / "p")
    assert code == 0 and [p.name for p in (tmp_path / "p" / "nyud-multi").rglob("*.png")] == ["00000.png"]
    assert len(list((tmp_path / "p" / "examples").rglob("*.png"))) == 3
    code, out, _ = predict(*runs, "--images", "1,3", "-o", tmp_path / "both")
    assert code == 0 and len(out.splitlines()) == 2
    for run, line in zip(runs, out.splitlines()):
        assert line == str(tmp_path / "both" / "duo" / run.parent.name / run.name)
    assert len(list((tmp_path / "both").rglob("*.npy"))) == 4


def test_networks_that_other_code_builds_are_told_once(predict, tiny_run, tmp_path):
    folder = tiny_run("fedavg", rounds=1).folder
    record = json.loads((folder / "manifest.json").read_text())

    def said(*changes):
        """What `predict` says of the code, if these files were others when the run was made."""
        made = json.loads(json.dumps(record))
        for part, file in changes:
            assert file in made["sessions"][-1]["code"]["files"][part]
            made["sessions"][-1]["code"]["files"][part][file] = "0" * 12
        (folder / "manifest.json").write_text(json.dumps(made))
        code, _, err = predict(folder, "--limit", 1, "-o", tmp_path / "p")
        assert code == 0
        return [line for line in err.splitlines() if "today's code" in line]

    assert said() == said(("engine", "data/batches.py"), ("method", "algorithms/fedavg.py")) == []
    (line,) = said(("engine", "networks/net.py"), ("network", "networks/architectures/fedhca2.py"))
    assert "(fedhca2.py, net.py changed)" in line and str(folder) in line
    assert len(said(("engine", "engine/client_models.py"))) == 1
    del record["sessions"][-1]["code"]  # as runs were recorded once
    assert said() == []


def test_a_panel_of_two_runs(predict, runs, tmp_path):
    code, out, error = predict(*runs, "--panel", tmp_path / "p.png", "--images", "0,2", "--tasks", "depth,edge")
    assert (code, out) == (0, f"{tmp_path / 'p.png'}\n"), error
    assert not any((run / "predictions").exists() for run in runs)
    with Image.open(tmp_path / "p.png") as picture:
        pixels = np.array(picture.convert("L"))
    # two rows of seven pictures, separated by white: the input, and two tasks of truth and two runs
    assert (pixels.min(0) == 255).sum() > 8 and (pixels.min(1) == 255).sum() > 8
    assert pixels.shape[1] > 2.5 * pixels.shape[0] and pixels.shape[0] > 300
    code, *_ = predict(*runs, "--panel", tmp_path / "p.pdf", "--client", "nyud-multi", "-o", tmp_path / "files")
    assert code == 0 and (tmp_path / "p.pdf").read_bytes()[:5] == b"%PDF-"
    assert len(list((tmp_path / "files").rglob("predictions.json"))) == 2


def test_mistakes_are_one_line(predict, runs, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")
    for argv, said in (
        ([tmp_path], "no run in it"),
        ([runs[0], runs[0]], "the same run twice"),
        ([runs[0], "--limit", 0], "expected 1 or more"),
        ([runs[0], "--limit", 2, "--images", "1"], "no --images beside it"),
        ([runs[0], "--images", "9"], "from 0 to 3"),
        ([runs[0], "--clients", ","], "expected at least one"),
        ([runs[0], "--split", "val"], "no split 'val'"),
        ([runs[0], "--panel", "p.gif"], "ending in .png, .pdf or .svg"),
        ([runs[0], "--panel", tmp_path / "no" / "p.png"], "no folder"),
        ([runs[0], "-o", tmp_path / "mine"], "holds other files"),
        ([runs[0], "--device", "tpu"], "expected auto, cpu, cuda"),
    ):
        code, out, error = predict(*argv)
        assert (code, out, len(error.splitlines())) == (2, "", 1) and said in error, (argv, error)
    assert predict(runs[0], "--images", "a")[0] == 2
    assert not (runs[0] / "predictions").exists()


def test_run_keeps_its_predictions_when_asked(capsys, tmp_path, scenario_file, tiny_flags):
    def run(*argv):
        words = ["run", "--algo", "local", "--scenario", scenario_file, "--rounds", 1, "--out", tmp_path, *tiny_flags]
        assert main([*map(str, words), "--device", "cpu", *argv]) == 0
        capsys.readouterr()
        (folder,) = (tmp_path / "duo" / "local").iterdir()
        return folder

    folder = run()
    assert not (folder / "predictions").exists()
    run("--save-predictions")  # finished before: nothing is trained again
    for name in ("predictions", "predictions-personal"):
        assert (folder / name / "nyud-multi" / "depth").is_dir()
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 1
    run("--fresh")
    assert not list(folder.glob("predictions*"))
