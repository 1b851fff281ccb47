"""Folders with a few lines of YAML: read exactly, and every mistake named with its file."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from PIL import Image

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.cli import main
from fmtlbench.data.datasets import dataset_of_file, open_split

IDS = {"train": ["a", "b", "c"], "test": ["d"]}
DESCRIPTION = (
    "title: My robots\ntasks:\n  semseg: {classes: [floor, wall, thing]}\n  normals: {}\n  edge: {}\n  depth: {}\n"
)


@pytest.fixture
def robots(tmp_path):
    """The description, and what its files hold by (key, id)."""
    folder, rng, known = tmp_path / "robots", np.random.default_rng(0), {}
    for key in ("images", "semseg", "normals", "edge", "depth"):
        (folder / key).mkdir(parents=True)
    for split, ids in IDS.items():
        (folder / f"{split}.txt").write_text("\n".join(ids))
        for name in ids:
            shape = (20 + len(known) % 3, 30)
            known["image", name] = rng.integers(255, size=(*shape, 3), dtype=np.uint8)
            known["semseg", name] = rng.choice([0, 1, 2, 255], size=shape).astype(np.uint8)
            known["edge", name] = (rng.random(shape) < 0.2).astype(np.uint8)
            known["depth", name] = rng.uniform(0, 9, shape).astype(np.float32)
            vectors = rng.normal(size=(*shape, 3))
            known["normals", name] = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
            known["normals", name][:3] = 0
            Image.fromarray(known["image", name]).save(folder / "images" / f"{name}.png")
            Image.fromarray(known["semseg", name]).save(folder / "semseg" / f"{name}.png")
            Image.fromarray(known["edge", name] * 255).save(folder / "edge" / f"{name}.png")
            np.save(folder / "depth" / f"{name}.npy", known["depth", name])
            np.save(folder / "normals" / f"{name}.npy", known["normals", name])
    (folder / "dataset.yml").write_text(DESCRIPTION)
    return folder / "dataset.yml", known


def test_it_reads_what_the_files_hold(robots):
    file, known = robots
    info = dataset_of_file(str(file))
    assert (info.name, info.domain, info.title) == ("robots", "robots", "My robots")
    assert info.classes == {"semseg": 3} and info.tasks == ("semseg", "normals", "edge", "depth")
    for split, ids in IDS.items():
        dataset = open_split(info, split)
        assert [dataset.image_id(i) for i in range(len(dataset))] == ids
        for index, name in enumerate(ids):
            sample = dataset.sample(index)
            assert list(sample) == ["image", *info.tasks]
            for key, value in sample.items():
                assert value.dtype == known[key, name].dtype
                assert np.allclose(value, known[key, name], atol=1e-6)


def test_only_the_asked_tasks_must_be_there(robots):
    file, _ = robots
    for path in (file.parent / "depth").iterdir():
        path.unlink()
    info = dataset_of_file(str(file))
    assert len(open_split(info, "train", tasks=("semseg",))) == 3
    with pytest.raises(FmtlbenchError, match=r"robots train: 3 files are missing .*depth/a\.npy"):
        open_split(info, "train")
    assert len(open_split(info, "train", complete=False).missing) == 3


def test_the_fingerprint_follows_the_files(robots):
    file, _ = robots
    info = dataset_of_file(str(file))
    first = open_split(info, "train").fingerprint
    assert open_split(info, "train").fingerprint == first != open_split(info, "test").fingerprint
    np.save(file.parent / "depth" / "a.npy", np.ones((4, 4), np.float32))
    assert open_split(info, "train").fingerprint != first


def test_a_worker_process_opens_it_again(robots):
    file, known = robots
    dataset = pickle.loads(pickle.dumps(open_split(dataset_of_file(str(file)), "train", tasks=("depth",))))
    assert np.array_equal(dataset.sample(1, ("depth",))["depth"], known["depth", "b"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("semseg", np.full((20, 30), 3, np.uint8)), r"semseg/a\.png: class 3, expected 0 to 2 or 255 \(ignore\)"),
        (("semseg", np.zeros((5, 5), np.uint8)), r"semseg/a\.png: 5×5 pixels .*its image has 20×30"),
        (("edge", np.full((20, 30), 7, np.uint8)), r"edge/a\.png: uint8 from 7 to 7, expected a picture of 0 and 255"),
    ],
)
def test_a_label_that_cannot_be_is_named(robots, damage, message):
    file, _ = robots
    key, array = damage
    Image.fromarray(array).save(file.parent / key / "a.png")
    with pytest.raises(FmtlbenchError, match=message):
        open_split(dataset_of_file(str(file)), "train").sample(0)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("tasks: {semsec: {}}", r"dataset\.yml:1: tasks: no task 'semsec'; did you mean 'semseg'"),
        ("tasks: {semseg: {}}", r"dataset\.yml: dataset 'robots': semseg has classes; name them in class_names"),
        ("tasks: {semseg: {clases: [a]}}", r"dataset\.yml:1.*did you mean 'classes'"),
        ("title: x", r"dataset\.yml.*tasks"),
        ("tasks: {shade: {file: gone.py}}", r"no such file: .*gone\.py"),
    ],
)
def test_a_wrong_description_is_one_line(robots, description, message):
    file, _ = robots
    file.write_text(description)
    with pytest.raises(UsageError, match=message):
        dataset_of_file(str(file))


def test_an_unknown_domain_says_how_to_bring_it(robots, tmp_path, capsys):
    scenario = tmp_path / "mine.yml"
    scenario.write_text("description: d\npaper: p\nversion: 1\nclients: [{dataset: robots, tasks: [depth]}]\n")
    assert main(["run", "--algo", "local", "--scenario", str(scenario)]) == 2
    error = capsys.readouterr().err
    assert "no dataset 'robots'" in error and "--dataset-file" in error
    file, _ = robots
    assert main(["show", "scenario", str(scenario), "--dataset-file", str(file), "--seed", "0"]) == 0
    assert "robots-depth" in capsys.readouterr().out


def test_evaluate_reads_its_labels(robots, tmp_path, capsys):
    file, known = robots
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "out" / "d.npy", known["depth", "d"] + 2)
    argv = [
        "score",
        "--task",
        "depth",
        "--dataset",
        str(file),
        "--pred",
        str(tmp_path / "out"),
        "--gt",
        str(file.parent),
    ]
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(2, abs=1e-5)
