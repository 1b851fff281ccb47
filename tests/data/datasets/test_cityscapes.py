"""Cityscapes on a small archive in its own layout: classes, disparity, depth, and damage told by file."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.cli import main
from fmtlbench.data.datasets import dataset_for, open_split
from fmtlbench.data.datasets.cityscapes import CLASSES

IMAGES = {
    "train": ("aachen_000000_000019", "aachen_000001_000019", "bochum_000000_000313"),
    "val": ("frankfurt_000000_000294",),
}
BASELINE, FOCAL = 0.2, 2000.0


@pytest.fixture
def root(tmp_path):
    rng = np.random.default_rng(0)
    for split, names in IMAGES.items():
        for name in names:
            city = name.partition("_")[0]

            def at(folder, suffix, split=split, city=city, name=name):
                path = tmp_path / "cityscapes" / folder / split / city / f"{name}{suffix}"
                path.parent.mkdir(parents=True, exist_ok=True)
                return path

            Image.fromarray(rng.integers(255, size=(32, 64, 3), dtype=np.uint8)).save(
                at("leftImg8bit", "_leftImg8bit.png")
            )
            ids = (np.arange(32 * 64) % 34).reshape(32, 64).astype(np.uint8)
            Image.fromarray(ids).save(at("gtFine", "_gtFine_labelIds.png"))
            codes = np.full((32, 64), 1 + 256 * 20, np.uint16)
            codes[:4] = 0
            Image.fromarray(codes).save(at("disparity", "_disparity.png"))
            camera = {"extrinsic": {"baseline": BASELINE}, "intrinsic": {"fx": FOCAL}}
            at("camera", "_camera.json").write_text(json.dumps(camera))
    return tmp_path


def test_labels_are_what_the_benchmark_evaluates(root):
    dataset = open_split(dataset_for("cityscapes", "real"), "train", root)
    assert dataset.ids == sorted(IMAGES["train"]) and dataset.info.classes == {"semseg": 19}
    sample = dataset.sample(0)
    expected = np.full(34, 255)
    expected[list(CLASSES)] = np.arange(19)
    assert np.array_equal(sample["semseg"].ravel(), expected[np.arange(32 * 64) % 34])
    assert (
        sample["semseg"].ravel()[7] == 0 and sample["semseg"].ravel()[33] == 18 and sample["semseg"].ravel()[0] == 255
    )
    assert (sample["disparity"][:4] == 0).all() and (sample["disparity"][4:] == 20).all()
    assert (sample["depth"][:4] == 0).all() and np.allclose(sample["depth"][4:], BASELINE * FOCAL / 20)
    assert all(sample[key].dtype == np.float32 for key in ("disparity", "depth"))


def test_val_is_the_test_split_and_cameras_are_for_depth_only(root):
    assert open_split(dataset_for("cityscapes", "real"), "test", root).ids == list(IMAGES["val"])
    for file in (root / "cityscapes" / "camera").rglob("*.json"):
        file.unlink()
    info = dataset_for("cityscapes", "real")
    assert len(open_split(info, "train", root, tasks=("semseg", "disparity"))) == 3
    with pytest.raises(FmtlbenchError, match=r"3 files are missing .*_camera\.json"):
        open_split(info, "train", root)


@pytest.mark.parametrize(
    ("folder", "suffix", "content", "message"),
    [
        ("gtFine", "_gtFine_labelIds.png", np.full((32, 64), 40, np.uint8), "expected labelIds from 0 to 33"),
        ("disparity", "_disparity.png", np.zeros((32, 64), np.uint8), "expected a grey picture of 16 bits"),
        ("disparity", "_disparity.png", np.zeros((8, 64), np.uint16), "its image has 32×64"),
    ],
)
def test_a_damaged_file_is_named(root, folder, suffix, content, message):
    path = root / "cityscapes" / folder / "val" / "frankfurt" / f"{IMAGES['val'][0]}{suffix}"
    Image.fromarray(content).save(path)
    with pytest.raises(FmtlbenchError, match=rf"{path.name}: .*{message}"):
        open_split(dataset_for("cityscapes", "real"), "test", root).sample(0)


def test_check_and_two_rounds(root, tmp_path, capsys):
    assert main(["data", "check", "cityscapes", "--data-root", str(root), "--subset"]) == 0
    assert "another, of 2975" in capsys.readouterr().out
    scenario = tmp_path / "streets.yml"
    scenario.write_text(
        "description: d\npaper: p\nversion: 1\nclients:\n  - {dataset: cityscapes, tasks: [semseg]}\n"
        "  - {dataset: cityscapes, tasks: [disparity, depth]}\n"
    )
    argv = [
        "run",
        "--algo",
        "fedhca2",
        "--scenario",
        str(scenario),
        "--data-root",
        str(root),
        "--rounds",
        "2",
        "--no-energy",
    ]
    more = ["--device", "cpu", "--set", "train.batch_size=1", "--set", "data.size.cityscapes=[32,64]"]
    assert main([*argv, *more, "--out", str(tmp_path / "runs"), "--format", "tsv"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("semseg", "disparity", "depth", "mIoU", "RMSE"))


def test_without_files_it_says_where_they_come_from(tmp_path):
    with pytest.raises(FmtlbenchError, match=r"no cityscapes/ found.*www\.cityscapes-dataset\.com"):
        open_split(dataset_for("cityscapes", "real"), "train", tmp_path)
