"""Real data all the way: archive, reader, transforms, rounds, scores, predictions, and the scores of these again."""

from __future__ import annotations

import json
import multiprocessing
import signal
from pathlib import Path

import archives
import numpy as np
import pytest
import torch
from interrupt import AtStep, die
from kit import as_flags
from rooms import ROOT
from safetensors.torch import save_file

import fmtlbench
from fmtlbench.base.errors import RefusedError
from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve

MINI = ROOT.parent / "shared" / "mini"
AUGMENT = ["scale", "crop", "flip", "photometric"]
SMALL = {
    "data.size": {"pascal": [96, 96], "nyud": [64, 96]},
    "data.train_samples": None,
    "data.test_samples": None,
    "train.batch_size": 2,
    "train.local_epochs": {"pascal": 1, "nyud": 1},
    "train.threads": 1,
    "evaluation.batch_size": 3,
}
NANO = {**SMALL, "data.source": "real", "model.init": "torch", "train.augment": AUGMENT}
SCRATCH = {"model.init": "lecun", "model.pretrained": False}
PARTS_AND_ROOMS = """\
description: One client that does parts, one with every task of rooms
paper: none
version: 1
clients:
  - {dataset: pascal, tasks: [human_parts]}
  - {dataset: nyud, tasks: [semseg, depth, normals, edge]}
evaluation: [global]
"""
SCORED = {"semseg": "mIoU", "human_parts": "mIoU", "sal": "maxF", "normals": "mErr", "edge": "odsF", "depth": "RMSE"}


@pytest.fixture(autouse=True)
def no_roots(tmp_path, monkeypatch):
    """No root but the one a test names."""
    monkeypatch.delenv("FMTLBENCH_DATA", raising=False)
    monkeypatch.delenv("FMTLBENCH_CONFIG", raising=False)
    monkeypatch.setattr("platformdirs.user_config_path", lambda name: tmp_path / "settings")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Archives of 9 and 6 images that fit into the sizes, but not when they are scaled up."""
    folder = tmp_path_factory.mktemp("archives")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "SIZES", ((60, 88), (48, 64), (62, 90)))
        archives.multiply(archives.write_nyudv2(folder), "gt_sets/{}.txt", 3)
        archives.multiply(archives.write_pascal(folder), "ImageSets/Context/{}.txt", 3)
    return folder


@pytest.fixture(scope="module")
def duo(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "duo.yml"
    path.write_text(PARTS_AND_ROOMS)
    return path


def command(scenario, out, *more, settings=NANO):
    flags = as_flags(settings)
    argv = ["run", "--algo", "fedhca2", "--scenario", str(scenario), "--out", str(out), "--device", "cpu", *flags]
    return [*argv, "--format", "json", *map(str, more)]


def run(*arguments, **named):
    """The folder of the run, which must have succeeded."""
    assert main(command(*arguments, **named)) == 0
    (summary,) = Path(arguments[1]).rglob("summary.json")
    return summary.parent


def metrics(folder):
    return (folder / "metrics.jsonl").read_bytes()


# -- MaT-FL's way: turned, magnified, stretched ------------------------------------------------------------------------


def test_stretched_images_are_trained_scored_and_predicted_at_their_own_size(root, duo, tmp_path, capsys):
    settings = {
        **NANO, "data.resize": "fixed", "train.augment": ["flip", "rotate", "scale"],
        "train.rotate_degrees": {"pascal": 20, "nyud": 0},
        "train.scales": {"pascal": [0.75, 1.25], "nyud": [1.0, 1.2, 1.5]},
    }  # fmt: skip
    folders = [
        run(duo, tmp_path / name, "--rounds", 1, "--data-root", root, *more, settings=settings)
        for name, more in (("one", ["--save-predictions"]), ("two", ["--set", "data.workers=2"]))
    ]
    assert metrics(folders[0]) == metrics(folders[1])
    (depths,) = (folders[0] / "predictions").glob("nyud-multi/depth")
    shapes = {np.load(file).shape for file in depths.glob("*.npy")}
    assert shapes and shapes <= {(60, 88), (48, 64), (62, 90)}  # the archive's, not the network's 64×96
    capsys.readouterr()
    argv = ["score", "--task", "depth", "--dataset", "nyud", "--pred", depths, "--gt", root / "NYUDv2"]
    assert main([*map(str, argv), "--json", "--trust"]) == 0  # what MaT-FL's code scores; one round learns no metres
    value = json.loads(capsys.readouterr().out)["value"]
    inside = next(r["value"] for (_, task), r in scores(folders[0]).items() if task == "depth")
    assert value == pytest.approx(inside, rel=0.05)


# -- st_mt_1, two rounds -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    more = ("--rounds", 2, "--data-root", root, "--save-predictions")
    return run("st_mt_1", tmp_path_factory.mktemp("runs"), *more)


def scores(folder):
    records = json.loads((folder / "summary.json").read_text())["scores"]
    return {(record["client"], record["task"]): record for record in records if record["primary"]}


def test_every_client_learns_and_is_scored(finished):
    rows = [json.loads(line) for line in metrics(finished).splitlines()]
    assert len(rows) == 2 and finished.name.startswith("nano-real-s0-")
    found = scores(finished)
    assert {task for _, task in found} == set(SCORED) and len(found) == 9
    for (_, task), record in found.items():
        assert record["metric"] == SCORED[task] and record["value"] is not None and record["trivial"] is not None
    samples = {c["id"]: c["samples"] for c in json.loads((finished / "summary.json").read_text())["clients"]}
    assert samples.pop("nyud-multi") == 9
    assert samples.pop("pascal-human_parts") in (1, 2) and sorted(samples.values()) == [1, 2, 2, 2]  # a fifth each
    for row in rows:
        assert all(loss >= 0 for losses in row["losses"].values() for loss in losses.values())


def evaluate(capsys, task, dataset, pred, gt, *more):
    capsys.readouterr()
    argv = ["score", "--task", task, "--dataset", dataset, "--pred", pred, "--gt", gt, "--json", "--trust", *more]
    assert main([str(word) for word in argv]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("client_id", "task", "close"),
    [
        ("pascal-semseg", "semseg", 1e-9),
        ("pascal-human_parts", "human_parts", 1e-9),  # labels are Pascal-Part files
        ("nyud-multi", "semseg", 1e-9),
        ("nyud-multi", "depth", 1e-6),
        ("pascal-sal", "sal", 2.0),  # the rest is written in 8 bits
        ("pascal-normals", "normals", 0.1),
        ("nyud-multi", "normals", 0.1),
    ],
)
def test_predictions_score_what_the_run_says(finished, root, capsys, tmp_path, client_id, task, close):
    domain = client_id.partition("-")[0]
    pred = finished / "predictions" / client_id
    named = sorted(path.stem for path in (pred / task).iterdir() if path.suffix in (".png", ".npy"))
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(dict.fromkeys(named)))
    assert len(set(named)) == (3 if task == "human_parts" else 6)  # half of the test images show nobody
    archive = root / {"nyud": "NYUDv2", "pascal": "PASCALContext"}[domain]
    found = evaluate(capsys, task, domain, pred, archive, "--ids", ids)
    assert found["value"] == pytest.approx(scores(finished)[client_id, task]["value"], abs=close)
    assert found["images"] == len(set(named))


@pytest.mark.parametrize(("client_id", "archive"), [("pascal-edge", "PASCALContext"), ("nyud-multi", "NYUDv2")])
def test_edges_are_scored_too(finished, root, capsys, client_id, archive):
    domain = client_id.partition("-")[0]
    found = evaluate(capsys, "edge", domain, finished / "predictions" / client_id, root / archive)
    assert found["images"] == 6 and 0 <= found["value"] <= 100


# -- where data come from moves no number ------------------------------------------------------------------------------


def test_predictions_made_elsewhere_get_the_scores_of_the_run(finished, root, tmp_path):
    """Padded, cropped and scored as the run's own images are."""
    from fmtlbench.runs.folder import RunFolder

    data = ("--data-root", str(root))
    assert main(["predict", str(finished), "--arrays", "-o", str(tmp_path / "pred"), *data]) == 0
    asked = ["score", str(tmp_path / "pred"), "--name", "Theirs", "--like", str(finished), "--trust", *data]
    assert main([*asked, "-o", str(tmp_path / "runs")]) == 0
    (folder,) = (tmp_path / "runs").glob("*/Theirs/*")
    ours, theirs = (RunFolder(Path(place)).summary() for place in (finished, folder))
    assert theirs["scores"] == ours["scores"] and theirs["setting"] == ours["setting"]


def test_a_small_size_says_once_that_it_crops(root, duo):
    from fmtlbench.data.open import open_datasets
    from fmtlbench.listeners import Listener

    class Notes(Listener):
        def __init__(self):
            self.told = []

        def note(self, text):
            self.told.append(text)

    small = {**NANO, "data.size": {"pascal": [96, 96], "nyud": [32, 64]}}
    told = {}
    for name, values in {"cropped": small, "stretched": {**small, "data.resize": "fixed", "train.augment": []}}.items():
        notes = Notes()
        open_datasets(resolve("local", str(duo), overrides=values), root, notes)
        told[name] = [note for note in notes.told if "data.resize=fixed" in note]
    assert len(told["cropped"]) == 1 and told["cropped"][0].startswith("nyud: images such as the first, of")
    assert told["stretched"] == []


@pytest.fixture(scope="module")
def expected(root, duo, tmp_path_factory):
    return run(duo, tmp_path_factory.mktemp("expected"), "--rounds", 2, "--data-root", root)


def test_without_a_root_nothing_is_written(duo, tmp_path, capsys):
    assert main(command(duo, tmp_path / "runs")) == 1
    said = capsys.readouterr().err
    assert "--data-root: not set" in said and "$FMTLBENCH_DATA: not set" in said and said.count("\n") == 1
    assert not [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]


def test_roots_workers_and_the_decoded_cache_give_the_same_bytes(expected, root, duo, tmp_path, monkeypatch):
    """The root comes from the environment for the one, from the user's config file for the other."""
    from fmtlbench.data.cache import CachedDataset

    read = []
    with monkeypatch.context() as patch:
        patch.setenv("FMTLBENCH_CACHE", str(tmp_path / "cache"))
        patch.setenv("FMTLBENCH_DATA", str(root))
        for dataset in ("nyud", "pascal"):
            assert main(["data", "cache", dataset]) == 0
        patch.setattr(CachedDataset, "sample", _told(CachedDataset.sample, read))
        cached = run(duo, tmp_path / "cached", "--rounds", 2)
    assert metrics(cached) == metrics(expected) and len(read) > 20
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "config.yml").write_text(f"data_root: {root}\n")
    working = run(duo, tmp_path / "workers", "--rounds", 2, "--set", "data.workers=2")
    assert metrics(working) == metrics(expected) and working.name == expected.name


def _told(function, calls):
    def call(*arguments):
        calls.append(arguments[1])
        return function(*arguments)

    return call


def test_killed_and_resumed_equals_uninterrupted(expected, root, duo, tmp_path):
    def doomed():
        asked = {"rounds": 2, "device": "cpu", "data_root": root, "out": tmp_path / "runs", **NANO}
        fmtlbench.run("fedhca2", duo, progress=AtStep(2, 3, then=die), **asked)

    child = multiprocessing.get_context("fork").Process(target=doomed)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, "the run was over before it could be killed"
    resumed = run(duo, tmp_path / "runs", "--rounds", 2, "--data-root", root)
    for name in ("metrics.jsonl", "summary.json", "config.yaml"):
        assert (resumed / name).read_bytes() == (expected / name).read_bytes()


# -- presets and real samples ------------------------------------------------------------------------------------------


def test_the_paper_preset_at_a_reduced_size_with_weights_from_a_file(root, duo, tmp_path):
    import timm

    from fmtlbench.networks.catalog import BACKBONES

    spec, file = BACKBONES["swin_nano"], tmp_path / "nano.safetensors"
    torch.manual_seed(1)
    save_file(timm.create_model(spec.timm, num_classes=3, **spec.options).state_dict(), file)
    settings = {**SMALL, "model.backbone": "swin_nano", "model.weights": str(file)}
    folder = run(duo, tmp_path / "runs", "--preset", "paper", "--rounds", 1, "--data-root", root, settings=settings)
    assert folder.name.startswith("paper-real-s0-")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["weights"]["source"] == "file" and len(manifest["weights"]["sha256"]) == 64
    config = (folder / "config.yaml").read_text()
    assert all(name in config for name in AUGMENT) and "pretrained: true" in config


@pytest.mark.parametrize("preset", ["paper", "fmtl-bench", "mat-fl"])
def test_presets_resolve_for_real_data(preset):
    config = resolve("fedhca2", "st_mt_1", preset, overrides={"federation.exchange": "decoders"})
    stretched = preset == "mat-fl"
    assert config.data.source == "real" and config.data.resize == ("fixed" if stretched else "none")
    assert config.train.augment == (("flip", "rotate", "scale") if stretched else tuple(AUGMENT))
    assert config.data.size == {"pascal": (512, 512), "nyud": (480, 640) if stretched else (448, 576)}


@pytest.mark.skipif(not MINI.is_dir(), reason="the real samples are not beside this checkout")
def test_real_samples(duo, tmp_path, capsys):
    settings = {**NANO, "data.train_samples": {"pascal": 6, "nyud": 4}, "data.test_samples": {"pascal": 6, "nyud": 2}}
    folder = run(duo, tmp_path, "--rounds", 1, "--data-root", MINI, "--save-predictions", settings=settings)
    assert "images are larger than data.size: their predictions lack the border" in capsys.readouterr().err
    assert all(record["value"] is not None for record in scores(folder).values())
    drawn = list((folder / "predictions").rglob("*.png"))
    assert len(drawn) >= 2 * 4 + 1


# -- what is refused ---------------------------------------------------------------------------------------------------


def gradient(init, image):
    from fmtlbench.config.run_config import ModelConfig
    from fmtlbench.engine.client_models import build_model

    model = build_model(ModelConfig("fedhca2", "swin_nano", False, init=init), (64, 64), {"semseg": 3}, 0)
    model(image)["semseg"].square().mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item()


def test_an_initialisation_that_padding_makes_overflow_is_refused():
    """Where the image is zero and all biases are, every LayerNorm multiplies the gradient by 1/√ε."""
    whole = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    padded = whole.clone()
    padded[..., 32:] = 0
    assert gradient("lecun", padded) > 1e6 > 1e3 * gradient("lecun", whole)
    assert gradient("torch", padded) < 10 * gradient("torch", whole)
    with pytest.raises(RefusedError, match=r"model\.init: lecun .*--set model\.init=torch"):
        resolve("fedavg", "st_mt_1", overrides={**NANO, **SCRATCH, "model.backbone": "swin_nano"})
    resnet = {**NANO, **SCRATCH, "model.backbone": "resnet_nano"}
    assert resolve("fedavg", "st_mt_1", overrides=resnet).model.init == "lecun"  # BatchNorm has no such trouble
