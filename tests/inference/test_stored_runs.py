"""Predictions of a run are those it was scored by, and asking for them leaves the run as it was."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_data import FakeReader
from interrupt import AfterRound, Stopped
from kit import TINY
from notes import Notes

import fmtlbench
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.cli import main
from fmtlbench.data.batches import test_batches as batches_of
from fmtlbench.data.transforms import test_transform as padded
from fmtlbench.data.views import ClientData, View
from fmtlbench.inference.predict import check_comparable, panel_rows, predict_run, save_predictions
from fmtlbench.inference.prediction_folder import ABOUT
from fmtlbench.inference.stored_run import StoredRun, sample_at_own_size, stretch
from fmtlbench.listeners import Listener
from fmtlbench.runs.folder import RunFolder

CPU = torch.device("cpu")
ALL_TASKS = """\
description: every task once
paper: none
version: 1
clients:
  - {dataset: pascal, tasks: [human_parts, sal, normals]}
  - {dataset: nyud, tasks: [semseg, depth, edge]}
evaluation: [global, personal]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    (folder / "all.yml").write_text(ALL_TASKS)
    settings = {**TINY, "train.lr": 5e-3, "evaluation.batch_size": 3}
    given = {"rounds": 2, "out": folder / "runs", "device": "cpu"}
    return fmtlbench.run("fedavg", folder / "all.yml", **given, **settings)


@pytest.fixture
def stopped(tiny_run, tmp_path) -> Path:
    """A run that was stopped after the first of two rounds, which is scored before the server's step."""
    with pytest.raises(Stopped):
        tiny_run("fedavg", rounds=2, progress=AfterRound(1), **{"evaluation.when": "before_aggregation"})
    (config,) = (tmp_path / "runs").rglob("config.yaml")
    return config.parent


def test_an_unfinished_run_is_asked_after_its_last_checkpoint_and_says_so(stopped):
    notes = Notes()
    run = opened(stopped, notes)
    assert run.done == 1 and "after round 1 of 2" in notes.told[0]
    assert "was scored before the server's step" in notes.told[1]
    assert len(list(run.predictions(run.parties[0], "global", run.parties[0].tasks, [0]))) == 1


@pytest.fixture
def copy(result, tmp_path) -> Path:
    """A run folder to damage."""
    return Path(shutil.copytree(result.folder, tmp_path / "run"))


def opened(folder: Path, progress: Listener | None = None) -> StoredRun:
    run = StoredRun(folder)
    run.open(None, CPU, progress or Listener())
    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_labels(run: StoredRun, client: int, task: str, split: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    view = run.view(run.parties[client], split)
    for index in view.indices:
        np.save(folder / f"{index:05d}.npy", sample_at_own_size(view.dataset, int(index), ("image", task))[task])


# -- the same numbers as the run's scores ----------------------------------------------------------------------------

EIGHT_BITS = {"sal": 0.5, "normals": 0.2, "edge": 1.0}  # per cent, degrees, per cent


@pytest.mark.parametrize("split", ["global", "personal"])
def test_evaluate_reads_the_runs_scores_out_of_its_predictions(result, tmp_path, capsys, split):
    run = opened(result.folder)
    save_predictions(run, tmp_path / "p", split)
    for party in run.parties:
        for task in party.tasks:
            write_labels(run, party.index, task, split, tmp_path / "gt" / task)
            argv = ["--task", task, "--dataset", "plain", "--gt", tmp_path / "gt" / task, "--json"]
            argv += ["--pred", tmp_path / "p" / party.id]
            if task in ("semseg", "human_parts"):
                argv += ["--classes", 13 if task == "semseg" else 7]
            if task == "edge":
                argv += ["--max-dist", 1.5 / np.hypot(32, 64)]
            capsys.readouterr()
            assert main(["score", *map(str, argv)]) == 0
            scored = json.loads(capsys.readouterr().out)["value"]
            assert scored == pytest.approx(result.value(party.id, task, split), abs=EIGHT_BITS.get(task, 1e-6)), task
    about = json.loads((tmp_path / "p" / ABOUT).read_text())
    assert (about["round"], about["split"], about["complete"]) == (2, split, True)


@pytest.mark.usefixtures("checkpoints_stay")
@pytest.mark.parametrize("algo", ["ditto", "fedbabu", "fedamp"])
def test_a_second_track_and_fine_tuning_are_respected(tiny_run, tmp_path, algo):
    """The methods whose scored model is not the one that travels, from their networks and from a checkpoint alone."""
    result = tiny_run(algo, rounds=2)
    bare = Path(shutil.copytree(result.folder, tmp_path / "bare"))
    shutil.rmtree(bare / "networks")
    shutil.rmtree(result.folder / "checkpoint")
    for folder in (result.folder, bare):
        assert depth_error(opened(folder)) == pytest.approx(result.value("nyud-multi", "depth"), rel=1e-6)


def depth_error(run):
    """The RMSE of the depths that its two-task client predicts."""
    party = run.parties[1]
    assert party.tasks == ("depth", "edge")
    view = run.view(party, "global")
    squares = count = 0.0
    for prediction in run.predictions(party, "global", ["depth"], range(len(view))):
        truth = view.dataset[prediction.index]["depth"]
        squares += ((prediction.values["depth"] - truth)[truth > 0].astype(float) ** 2).sum()
        count += (truth > 0).sum()
    return np.sqrt(squares / count)


def test_any_choice_of_images_gives_the_same_predictions(result):
    run = opened(result.folder)
    party = run.parties[0]
    everything = list(run.predictions(party, "global", party.tasks, range(4)))
    chosen = list(run.predictions(party, "global", ["sal"], [3, 1]))
    assert [p.image for p in everything] == ["00000", "00001", "00002", "00003"]
    assert [p.image for p in chosen] == ["00003", "00001"]
    for one in chosen:
        assert list(one.values) == ["sal"]
        assert np.allclose(one.values["sal"], everything[one.index].values["sal"], atol=1e-5)


# -- the run stays as it was -----------------------------------------------------------------------------------------


def test_files_are_written_once_and_the_run_is_untouched(copy):
    before = contents(copy)
    config = RunFolder(copy).run_config()
    folders = predict_run(copy, config, lambda: opened(copy))
    assert [f.name for f in folders] == ["predictions", "predictions-personal"]
    after = contents(copy)
    new = {name: data for name, data in after.items() if not name.startswith("predictions")}
    assert new == before
    stamps = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    predict_run(copy, config, lambda: pytest.fail("complete already"))
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == stamps
    (copy / "predictions" / ABOUT).write_text(json.dumps({"complete": False}))
    (next((copy / "predictions").glob("*/sal")) / "stale.png").write_text("")
    predict_run(copy, config, lambda: opened(copy))
    assert {n: d for n, d in contents(copy).items()} == after


def test_weights_that_the_encoder_started_from_are_not_needed_again(copy):
    text = (copy / "config.yaml").read_text()
    changed = text.replace("pretrained: false", "pretrained: true")
    changed = changed.replace("\n  weights: null", "\n  weights: /gone/w.pth")
    assert changed != text
    (copy / "config.yaml").write_text(changed)
    run = opened(copy)
    assert len(list(run.predictions(run.parties[0], "global", ["sal"], [0]))) == 1


def test_what_cannot_be_asked_says_why(copy, result, stopped, tmp_path):
    with pytest.raises(UsageError, match=r"no run in it .*runs below it: .*fedavg"):
        StoredRun(result.folder.parents[1])
    with pytest.raises(UsageError, match="uses the embedded data"):
        StoredRun(copy).open(tmp_path, CPU, Listener())
    run = opened(copy)
    for wrong, said in (
        ({"clients": ["nyud"]}, "did you mean 'nyud-multi'"),
        ({"tasks": ["deep"]}, "did you mean 'depth'"),
        ({"clients": ["nyud-multi"], "tasks": ["sal"]}, "none of the clients nyud-multi"),
        ({"images": [4]}, "expected numbers from 0 to 3"),
        ({"split": "local"}, "no split 'local'"),
    ):
        with pytest.raises(UsageError, match=said):
            save_predictions(run, tmp_path / "p", **wrong)
    assert not (tmp_path / "p").exists()
    file = copy / "networks" / "nyud-multi.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"oops")
    with pytest.raises(FmtlbenchError, match="checksum differs"):
        save_predictions(run, tmp_path / "p")
    assert not (tmp_path / "p").exists() and not list(tmp_path.glob(".p*"))
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["data"]["nyud/test"] = "0" * 64
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FmtlbenchError, match="nyud/test has changed"):
        opened(copy)
    shutil.copy(copy / "summary.json", stopped)
    with pytest.raises(FmtlbenchError, match="the last round, 2, is not there"):
        StoredRun(stopped)


def test_a_method_that_has_changed_is_refused(tiny_run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from fmtlbench.algorithms import ALGORITHMS, Algorithm\n\n\n"
        '@ALGORITHMS.register("mine")\nclass Mine(Algorithm):\n    title, paper = "Mine", "none"\n'
    )
    result = tiny_run(str(file), rounds=1)
    assert opened(result.folder).title == "Mine"
    file.write_text(file.read_text() + "# changed\n")
    with pytest.raises(FmtlbenchError, match=r"its method .*mine\.py is not there, or not as it was"):
        StoredRun(result.folder)


# -- padding ---------------------------------------------------------------------------------------------------------


class OwnSizes(FakeReader):
    """Images of different sizes, as a real archive gives them."""

    size, stacked = (32, 32), False
    shapes = ((20, 31), (32, 32), (9, 12), (40, 36))

    def __init__(self, dataset):
        self.dataset = dataset

    def image_id(self, index):
        return f"photo_{index}"

    def sample(self, index, keys=("image",)):
        height, width = self.shapes[index]
        item = self.dataset[index]
        return {key: np.tile(item[key], (2, 2, *[1] * (item[key].ndim - 2)))[:height, :width] for key in keys}


def test_padding_is_removed_where_it_was_put(result):
    notes = Notes()
    run = opened(result.folder, notes)
    party = run.parties[0]
    photos = OwnSizes(run.data[0].tests["global"].dataset)
    view = View(photos, np.arange(4))
    run.data[0] = ClientData(run.data[0].train, {"global": view})
    network = [p.values["normals"] for p in _unpadded(run, party, photos)]
    for prediction, whole, shape in zip(
        run.predictions(party, "global", ["normals"], range(4)), network, photos.shapes
    ):
        height, width = (min(edge, 32) for edge in shape)
        assert prediction.values["normals"].shape == (3, height, width)
        assert prediction.image == f"photo_{prediction.index}"
        top, left = (32 - height) // 2, (32 - width) // 2
        assert np.allclose(prediction.values["normals"], whole[:, top : top + height, left : left + width], atol=1e-5)
        assert sample_at_own_size(photos, prediction.index, ("image", "sal"))["sal"].shape == (height, width)
    assert notes.told == ["pascal-multi: 1 images are larger than data.size: their predictions lack the border"]


def test_a_stretched_image_gets_its_prediction_at_its_own_size(result):
    notes = Notes()
    run = opened(result.folder, notes)
    party = run.parties[0]
    photos = OwnSizes(run.data[0].tests["global"].dataset)
    photos.resize = "fixed"
    run.data[0] = ClientData(run.data[0].train, {"global": View(photos, np.arange(4))})
    network = [p.values["normals"] for p in _unpadded(run, party, photos)]
    found = list(run.predictions(party, "global", ["normals", "human_parts"], range(4)))
    for prediction, whole, shape in zip(found, network, photos.shapes, strict=True):
        normals, classes = (prediction.values[task] for task in ("normals", "human_parts"))
        assert normals.shape == (3, *shape) and classes.shape == shape and np.issubdtype(classes.dtype, np.integer)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=0), 1, atol=1e-5)
        if shape == (32, 32):
            np.testing.assert_allclose(normals, whole, atol=1e-5)
        truth = sample_at_own_size(photos, prediction.index, ("image", "sal"))
        assert truth["sal"].shape == shape  # all of it, nothing cut
    assert notes.told == []


def test_stretching_a_prediction():
    classes = np.arange(12).reshape(3, 4)
    assert np.array_equal(stretch(classes, (6, 2)), classes.repeat(2, 0)[:, ::2])
    line = np.array([[0.0, 1.0]], np.float32)
    assert stretch(line, (1, 4)).tolist() == [[0.0, 0.25, 0.75, 1.0]]
    assert np.array_equal(stretch(line, (1, 2)), line)
    corner = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]], np.float32)
    np.testing.assert_allclose(np.linalg.norm(stretch(corner, (1, 3)), axis=0), 1, atol=1e-6)


def _unpadded(run, party, photos):
    """The network's whole output for the images as it sees them."""

    class Fixed(FakeReader):
        size, fingerprint = photos.size, ""

        def batch(self, indices, keys):
            images = [padded(photos.sample(int(i)), photos.size, photos.resize)["image"] for i in indices]
            return {"image": np.stack(images)}

    other = dataclasses.replace(run.data[0], tests={"global": View(Fixed(), np.arange(4))})
    mine, run.data[0] = run.data[0], other
    try:
        assert next(iter(batches_of(other.tests["global"], (), 4, CPU)))["image"].shape == (4, 3, 32, 32)
        return list(run.predictions(party, "global", ["normals"], range(4)))
    finally:
        run.data[0] = mine


# -- the panel's rows ------------------------------------------------------------------------------------------------


def test_panel_rows_pair_truth_and_predictions(result, tiny_run, copy):
    runs = [opened(result.folder), opened(copy)]
    check_comparable(runs)
    rows = panel_rows(runs, images=[2, 0], tasks=["normals", "depth"])
    assert [(r.client, [of.task for of in r.tasks], r.image) for r in rows] == [
        ("pascal-multi", ["normals"], "00002"),
        ("pascal-multi", ["normals"], "00000"),
        ("nyud-multi", ["depth"], "00002"),
        ("nyud-multi", ["depth"], "00000"),
    ]
    for row in rows:
        [of] = row.tasks
        shapes = {value.shape for value in (of.truth, *of.predictions)}
        assert len(of.predictions) == 2 and len(shapes) == 1
        assert row.picture.shape[:2] == of.truth.shape[:2]
    with pytest.raises(UsageError, match="another scenario than"):
        check_comparable([runs[0], StoredRun(tiny_run(rounds=1).folder)])


def test_runs_that_judge_on_other_images_have_no_common_panel(shared_run):
    runs = [opened(shared_run("local", rounds=1, seed=seed).folder) for seed in (0, 1)]
    check_comparable(runs)
    assert [len(row.tasks) for row in panel_rows(runs, "global", limit=1)] == [1, 2]
    with pytest.raises(UsageError, match="on other personal images than"):
        panel_rows(runs, "personal", limit=1)
