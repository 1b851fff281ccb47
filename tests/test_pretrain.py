"""`fmtlbench pretrain`: image-level labels only, the same bytes whatever happens in between, and files that load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from interrupt import Stopped, stop, unless
from safetensors.torch import load_file

from fmtlbench import pretrain as module
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.files import sha256_file
from fmtlbench.cli import main
from fmtlbench.config.run_config import ModelConfig
from fmtlbench.data.datasets.synth.labels import presence
from fmtlbench.engine.client_models import build_model
from fmtlbench.engine.epoch_watch import DivergedError
from fmtlbench.listeners import Listener
from fmtlbench.networks.weights_shipped import read_manifest
from fmtlbench.pretrain import Plan, area_under_roc, new_track, open_scenes, pretrain, train_step

BACKBONES = ("swin_nano", "resnet_nano")
SCENES = 40


def small(backbone="resnet_nano", **changes) -> Plan:
    return Plan(backbone, **{"steps": 6, "scenes": SCENES, "size": (32, 32), **changes})


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A checkpoint after every second step."""
    monkeypatch.setattr(module, "CHECKPOINT_EVERY", 2)


class Notes(Listener):
    def __init__(self):
        self.notes, self.steps = [], []

    def note(self, message):
        self.notes.append(message)

    def pretraining(self, what, step, steps, loss):
        self.steps.append((what, step, steps))


# -- what is learnt ----------------------------------------------------------------------------------------------------


def test_labels_are_of_the_whole_image_and_a_tenth_is_held_out():
    plan = small(scenes=60)
    for scenes in open_scenes(plan, Listener()):
        assert scenes.dataset.split == "pretrain" and scenes.dataset.keys == ("image", "semseg")
        assert (len(scenes.dataset), scenes.trained, scenes.held_out) == (30, 27, 3)
        assert scenes.shown.shape == (30, len(scenes.classes))
        expected = presence(scenes.dataset.arrays("semseg"), len(scenes.classes))
        assert np.array_equal(scenes.shown, expected) and 0 < scenes.shown.mean() < 1


def test_nothing_pixel_level_enters_the_training(monkeypatch):
    """Once the presence of classes is known, the label maps may be anything."""
    asked = []
    plan = small()
    scenes = open_scenes(plan, Listener())
    for s in scenes:
        original = s.dataset.batch
        monkeypatch.setattr(
            s.dataset, "batch", lambda i, keys, original=original: asked.append(keys) or original(i, keys)
        )
    train_step(plan, new_track(plan, scenes), scenes, 0)
    assert asked == [("image",)] * 2


def test_held_out_scenes_are_never_drawn(monkeypatch):
    drawn = []
    plan = small()
    scenes = open_scenes(plan, Listener())
    track = new_track(plan, scenes)
    original = module.Scenes.images
    monkeypatch.setattr(module.Scenes, "images", lambda s, i, m=None: drawn.append(i) or original(s, i, m))
    for step in range(4):
        train_step(plan, track, scenes, step)
    assert {len(i) for i in drawn} == {16} and np.concatenate(drawn).max() < scenes[0].trained
    assert len({i.tobytes() for i in drawn}) == 8  # another batch for every step and domain


@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_loss_reaches_every_parameter_of_a_clients_encoder(backbone):
    plan = small(backbone)
    scenes = open_scenes(plan, Listener())
    track = new_track(plan, scenes)
    encoder = track.model.encoder
    client = build_model(ModelConfig("fedhca2", backbone, False, init="lecun"), plan.size, {"depth": 1}, plan.seed)
    start = {name: value.clone() for name, value in encoder.state_dict().items()}
    assert all(torch.equal(value, start[name]) for name, value in client.encoder.state_dict().items())
    for step in range(3):  # the heads start at zero: in the first step nothing passes them
        train_step(plan, track, scenes, step)
    still = [name for name, p in encoder.named_parameters() if p.grad is None or torch.equal(p, start[name])]
    assert still == []
    assert any(name.startswith("norms.") for name in start) == (backbone == "swin_nano")


def test_area_under_roc_by_hand():
    scores, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    assert area_under_roc(scores, positive) == 0.75  # of four pairs one is the wrong way round
    assert area_under_roc(np.array([1.0, 1.0]), np.array([True, False])) == 0.5
    assert area_under_roc(-scores, positive) == 0.25


# -- the same bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backbone", BACKBONES)
def test_same_plan_same_bytes_and_another_seed_others(backbone, tmp_path):
    progress = Notes()
    entries = [pretrain(small(backbone), tmp_path / name, progress) for name in "ab"]
    files = [(tmp_path / name / f"{backbone}.safetensors").read_bytes() for name in "ab"]
    assert files[0] == files[1] and entries[0] == entries[1]
    assert progress.steps == [(backbone, 6, 6)] * 2
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in "ab"]
    assert manifests[0] == manifests[1]
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["manifest.json", f"{backbone}.safetensors"]
    other = pretrain(small(backbone, seed=1), tmp_path / "c")
    assert other["sha256"] != entries[0]["sha256"]


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from interrupt import unless
from fmtlbench import pretrain as module
module.CHECKPOINT_EVERY = 2
module.train_step = unless(module.train_step, lambda plan, track, scenes, step: step == 5)
module.pretrain(module.Plan({backbone!r}, steps=6, scenes={scenes}, size=(32, 32)), {folder!r})
"""


@pytest.mark.parametrize("backbone", BACKBONES)
def test_killed_and_started_again_gives_the_same_bytes(backbone, tmp_path):
    whole = pretrain(small(backbone), tmp_path / "whole")
    folder = tmp_path / "killed"
    code = KILLED.format(tests=str(Path(__file__).parent), backbone=backbone, scenes=SCENES, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [p.name[:2] for p in folder.iterdir()] == [f".{backbone[0]}"]  # checkpoints, and nothing half done
    progress = Notes()
    assert pretrain(small(backbone), folder, progress) == whole
    assert len(progress.notes) == 1 and "going on after step 4 of 6" in progress.notes[0]
    assert sha256_file(folder / f"{backbone}.safetensors") == whole["sha256"]


def interrupted(folder, monkeypatch, **changes):
    with monkeypatch.context() as patch:
        patch.setattr(module, "train_step", unless(train_step, lambda plan, track, scenes, step: step == 5, stop))
        with pytest.raises(Stopped):
            pretrain(small(**changes), folder)


def test_damaged_checkpoints_cost_steps_and_no_other_plan_goes_on_from_them(tmp_path, monkeypatch):
    whole = pretrain(small(), tmp_path / "whole")
    interrupted(tmp_path, monkeypatch)
    (newest,) = tmp_path.glob(".resnet_nano-*/round-00004/track.safetensors")
    newest.write_bytes(newest.read_bytes()[:-1] + b"x")
    progress = Notes()
    other = pretrain(small(seed=1), tmp_path / "other", progress)
    assert progress.notes == [] and other["sha256"] != whole["sha256"]
    assert pretrain(small(), tmp_path, progress)["sha256"] == whole["sha256"]
    assert "damaged checkpoint" in progress.notes[0] and "after step 2 of 6" in progress.notes[1]


def test_what_was_there_stays_until_the_new_is_whole(tmp_path, monkeypatch):
    pretrain(small(), tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    interrupted(tmp_path, monkeypatch, seed=1)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    monkeypatch.setattr(module.F, "binary_cross_entropy_with_logits", lambda *_: torch.tensor(float("nan")))
    with pytest.raises(DivergedError, match="pretraining resnet_nano, step 1: the loss is nan"):
        pretrain(small(seed=2), tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before


# -- what is written ---------------------------------------------------------------------------------------------------


def test_the_manifest_tells_how_and_keeps_the_other_backbones_entry(tmp_path):
    first = pretrain(small("swin_nano"), tmp_path)
    second = pretrain(small("resnet_nano", seed=3), tmp_path)
    manifest = read_manifest(tmp_path)
    assert manifest == {"resnet_nano": second, "swin_nano": first} == json.loads(json.dumps(manifest))
    assert second["command"] == "fmtlbench pretrain --backbone resnet_nano --steps 6 --scenes 40 --seed 3"
    assert second["sha256"] == sha256_file(tmp_path / second["file"])
    assert {name: (d["version"], d["split"], d["trained"], d["held_out"]) for name, d in second["data"].items()} == {
        "synth-nyud": (1, "pretrain", 18, 2), "synth-pascal": (1, "pretrain", 18, 2)
    }  # fmt: skip
    assert second["not_reached"] == [] and second["versions"]["torch"]
    score = second["score"]
    assert score["chance"] == 0.5 and 0 <= score["value"] <= 1
    classes = [*score["by_class"], *score["in_all_or_no_held_out_scene"]]
    assert len(classes) == len(set(classes)) == 13 + 8 and "synth-nyud/bed" in classes
    tensors = load_file(tmp_path / "swin_nano.safetensors")
    assert all(t.dtype == torch.float32 for t in tensors.values())
    assert sum(t.numel() for t in tensors.values()) == first["parameters"]
    assert not any("head" in name for name in tensors)


def test_a_damaged_manifest_is_told_first(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(FmtlbenchError, match=r"manifest\.json cannot be read"):
        pretrain(small(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_verb_tells_steps_on_stderr_and_prints_the_file(tmp_path, capsys):
    flags = ["--backbone", "resnet_nano", "--steps", "2", "--scenes", str(SCENES), "-o", str(tmp_path / "w")]
    assert main(["pretrain", *flags]) == 0
    out, err = capsys.readouterr()
    head, row = (line.split("\t") for line in out.splitlines())
    told = dict(zip(head, row, strict=True))
    assert told["file"] == str(tmp_path / "w" / "resnet_nano.safetensors")
    assert told["sha256"] == sha256_file(Path(told["file"])) and told["chance"] == "0.5"
    (event,) = map(json.loads, err.splitlines())
    assert (event["event"], event["step"], event["steps"]) == ("pretrain", 2, 2) and event["loss"] > 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"backbone": "swin_nan"}, "--backbone: no backbone to pretrain 'swin_nan'; did you mean 'swin_nano'"),
        ({"backbone": "resnet18"}, "did you mean 'resnet_nano'"),
        ({"steps": 0}, "--steps 0: expected a whole number from 1 to"),
        ({"scenes": 39}, "--scenes 39: expected a whole number from 40 to"),
        ({"seed": -1}, "--seed -1: expected a whole number from 0 to"),
    ],
)
def test_bad_flags_are_one_line_and_touch_nothing(tmp_path, capsys, flags, said):
    words = [w for k, v in {"backbone": "swin_nano", **flags}.items() for w in (f"--{k}", str(v))]
    assert main(["pretrain", *words, "-o", str(tmp_path / "w")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
    assert not (tmp_path / "w").exists()


def test_a_plan_is_refused_from_python_too(tmp_path):
    with pytest.raises(UsageError, match="--scenes 2"):
        pretrain(small(scenes=2), tmp_path)
