"""benchmarks/make_weights.py at a tiny size: image-level labels, held-out scenes, the same bytes again."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from rooms import ROOT

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.base.files import sha256_file
from fmtlbench.networks.weights_shipped import FOLDER, read_manifest

sys.path.insert(0, str(ROOT / "benchmarks"))
import make_weights as script

TINY = {"steps": 3, "scenes": 40, "size": (32, 32)}


def make(backbone, folder):
    return script.make_weights(backbone, folder, **TINY)


def test_it_makes_what_the_package_ships(tmp_path, tiny_run, monkeypatch):
    """Files that runs start from, and a manifest with the shipped one's keys."""
    asked = []
    images = script.Scenes.images
    monkeypatch.setattr(script.Scenes, "images", lambda s, i, m=None: asked.append((m is None, i)) or images(s, i, m))
    shipped = read_manifest(FOLDER)
    made = {backbone: make(backbone, tmp_path) for backbone in script.SHIPPED}
    assert read_manifest(tmp_path) == json.loads(json.dumps(made)) and made.keys() == shipped.keys()
    for backbone, entry in made.items():
        file = tmp_path / entry["file"]
        assert entry["sha256"] == sha256_file(file) and entry["not_reached"] == []
        assert entry.keys() == shipped[backbone].keys() and entry["parameters"] == shipped[backbone]["parameters"]
        assert {(d["split"], d["trained"], d["held_out"]) for d in entry["data"].values()} == {("pretrain", 18, 2)}
        classes = [*entry["score"]["by_class"], *entry["score"]["in_all_or_no_held_out_scene"]]
        assert len(classes) == len(set(classes)) == 13 + 8
        result = tiny_run("local", rounds=1, **{"model.backbone": backbone, "model.weights": str(file)})
        manifest = json.loads((result.folder / "manifest.json").read_text())
        assert manifest["weights"] == {"source": "file", "sha256": entry["sha256"]}
    trained = [indices for is_scored, indices in asked if not is_scored]
    assert len({indices.tobytes() for indices in trained}) == 2 * TINY["steps"]  # both backbones see the same batches
    assert np.concatenate(trained).max() < 18  # the held-out scenes are the last two


def test_the_same_again_is_the_same_bytes(tmp_path):
    assert make("resnet_nano", tmp_path / "a") == make("resnet_nano", tmp_path / "b")


def test_presence_by_hand():
    """20.48 pixels of 64×64 are the least share; unlabelled pixels are pixels without a class."""
    semseg = np.zeros((64, 64), np.uint8)
    semseg[:10] = 255
    semseg[20, :21] = 1  # just enough
    semseg[30, :20] = 2  # just not
    assert script.presence(semseg, 4).tolist() == [True, True, False, False]
    alone = np.full((64, 64), 255, np.uint8)
    assert script.presence(np.stack([semseg, alone]), 3).tolist() == [[True, True, False], [False] * 3]


def test_area_under_roc_by_hand():
    scores, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    assert script.area_under_roc(scores, positive) == 0.75  # of four pairs one is the wrong way round
    assert script.area_under_roc(np.array([1.0, 1.0]), np.array([True, False])) == 0.5


def test_a_damaged_manifest_is_told_first(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(FmtlbenchError, match=r"manifest\.json cannot be read"):
        make("resnet_nano", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]
