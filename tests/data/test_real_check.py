"""`fmtlbench data check` and `data show` on real archives."""

from __future__ import annotations

import hashlib
import json

import archives
import numpy as np
import pytest
from archives import open_real
from fake_data import FakeReader
from PIL import Image

from fmtlbench.cli import main
from fmtlbench.config.run_config import DataConfig
from fmtlbench.data import check
from fmtlbench.data.check import check_split
from fmtlbench.data.datasets import DATASETS
from fmtlbench.data.open import open_split


@pytest.fixture
def run(capsys):
    def call(*argv):
        code = main([str(word) for word in argv])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def root(tmp_path):
    archives.write_nyudv2(tmp_path)
    archives.write_pascal(tmp_path)
    return tmp_path


def report(run, root, *more, dataset="nyud", code=0):
    result = run("data", "check", dataset, "--data-root", root, "--json", "--subset", *more)
    assert result[0] == code, result
    return json.loads(result[1])


def test_a_sound_archive(run, root):
    found = report(run, root)
    assert found["ok"] and found["folder"] == str(root / "NYUDv2") and not found["in_both_splits"]
    train = found["splits"]["train"]
    assert (train["images"], train["official_images"], train["is_official_list"]) == (3, 795, False)
    assert train["smallest"] == [24, 30] and train["largest"] == [40, 40] and train["decoded"] == 3
    truth = [archives.nyud_labels("train", index) for index in range(3)]
    semseg = train["labels"]["semseg"]
    every = np.concatenate([labels["semseg"].ravel() for labels in truth])
    counted = np.bincount(every[every != 255], minlength=40)
    assert [row["pixels"] for row in semseg["classes"]] == counted.tolist()
    assert (semseg["pixels"], semseg["labelled"]) == (every.size, int((every != 255).sum()))
    assert semseg["classes"][39] == {"class": 39, "name": "other prop", "pixels": 96, "images": 3}
    depth = train["labels"]["depth"]
    assert (depth["lowest"], depth["highest"]) == (2.5, 4.5) and depth["labelled"] < depth["pixels"]
    assert 0.99 < train["labels"]["normals"]["lowest"] <= train["labels"]["normals"]["highest"] < 1.01


def test_an_archive_with_too_few_images_is_incomplete_unless_that_is_meant(run, root):
    code, _, err = run("data", "check", "nyud", "--data-root", root)
    assert code == 1 and "train: 3 of 795 images, the archive is incomplete; --subset if that is meant" in err
    assert not json.loads(run("data", "check", "nyud", "--data-root", root, "--json")[1])["ok"]
    assert run("data", "check", "nyud", "--data-root", root, "--subset")[0] == 0


def test_the_table_names_counts_and_classes(run, root):
    code, out, err = run("data", "check", "pascal", "--data-root", root, "--subset")
    assert code == 0 and "5 of 5 images decoded, nothing wrong in them, 10098 of 10103 images are not there" in err
    assert "test: 2 of 5105 images, as --subset says" in err
    assert str(root / "PASCALContext") in out and "official list: another, of 4998" in out
    for word in ("human_parts", "upper arms", "tvmonitor", "# pascal test: 2 images"):
        assert word in out
    assert "bad files" not in out


def test_every_bad_file_is_listed_once(run, root):
    folder = root / "PASCALContext"
    labelmap = folder / "pascal-context" / "trainval" / "2008_000008.mat"
    labelmap.write_bytes(b"junk")  # behind edges and normals
    (folder / "sal_distill" / "2008_000015.png").unlink()
    voc = folder / "semseg" / "VOC12" / "2008_000002.png"
    Image.fromarray(np.full((24, 32), 99, np.uint8)).save(voc)
    found = report(run, root, dataset="pascal", code=1)
    train, test = (found["splits"][split] for split in ("train", "test"))
    assert not found["ok"]
    assert {bad["file"]: bad["problem"].split(":")[0] for bad in train["bad"]} == {
        str(labelmap): "cannot be read as a MATLAB file",
        str(folder / "sal_distill" / "2008_000015.png"): "missing",
    }
    assert [bad["file"] for bad in test["bad"]] == [str(voc)] and "class 99" in test["bad"][0]["problem"]
    assert train["labels"]["edge"]["bad"] == train["labels"]["normals"]["bad"] == 1
    assert train["labels"]["edge"]["read"] == 2
    code, out, err = run("data", "check", "pascal", "--data-root", root)
    assert code == 1 and "3 bad files" in err
    assert all(str(bad["file"]) in out for bad in (*train["bad"], *test["bad"]))


def test_an_image_in_both_splits_is_bad(run, root):
    with (root / "NYUDv2" / "gt_sets" / "val.txt").open("a") as file:
        file.write("0003\n")
    assert report(run, root, code=1)["in_both_splits"] == ["0003"]
    assert "listed in train and in test" in run("data", "check", "nyud", "--data-root", root)[1]


def test_without_deep_a_seeded_choice_is_decoded(run, root, monkeypatch):
    monkeypatch.setattr(check, "SAMPLED", 2)
    (root / "NYUDv2" / "depth" / "0009.npy").unlink()  # absence is seen in any case
    found = [report(run, root, code=1)["splits"]["train"] for _ in range(2)]
    assert found[0] == found[1] and found[0]["decoded"] == 2
    assert [bad["problem"] for bad in found[0]["bad"]] == ["missing"]
    assert report(run, root, "--deep", code=1)["splits"]["train"]["decoded"] == 3
    assert "4 of 5 images decoded (--deep decodes all)" in run("data", "check", "nyud", "--data-root", root)[2]


def test_the_official_lists_are_recognised(root, monkeypatch):
    ids = "\n".join(sorted(archives.NYUD_IDS["train"]))
    info = DATASETS["nyud"]
    listed = check.OfficialList(3, hashlib.sha256(ids.encode()).hexdigest())
    monkeypatch.setitem(info.official, "train", listed)
    assert check_split(open_real("nyud", "train", root), info, "train").is_official


def test_images_larger_than_a_presets_size_are_mentioned(run, root):
    assert report(run, root)["splits"]["train"]["larger_than_preset"] == {}
    assert "larger than" not in run("data", "check", "nyud", "--data-root", root)[1]
    folder = root / "NYUDv2"
    for kind in ("images", "segmentation", "edge", "normals"):
        path = folder / kind / "0003.png"
        with Image.open(path) as picture:
            picture.resize((640, 440), Image.NEAREST).save(path)
    np.save(folder / "depth" / "0003.npy", np.ones((440, 640), np.float32))
    found = report(run, root)["splits"]
    assert found["train"]["larger_than_preset"]["paper"] == [448, 576]
    assert "mat-fl" not in found["train"]["larger_than_preset"]  # it stretches
    assert not found["test"]["larger_than_preset"]
    out = run("data", "check", "nyud", "--data-root", root)[1]
    assert "nyud train: some images are larger than the 448×576 pixels of --preset paper" in out


def test_embedded_data_can_be_checked_too(run):
    code, out, _ = run("data", "check", "synth-nyud", "--size", 32, 32, "--json")
    found = json.loads(out)
    assert code == 0 and found["ok"] and found["folder"] is None
    assert found["splits"]["test"]["images"] == 32 and found["splits"]["test"]["smallest"] == [32, 32]
    assert found["splits"]["test"]["is_official_list"] is None


def test_labels_against_the_convention_are_found():
    class Wrong(FakeReader):
        ids, missing = ["a"], ()

        def sample(self, index, keys):
            good = archives.nyud_labels("train", 0)
            good["semseg"][0, 0], good["depth"] = 77, good["depth"].astype(np.float64)
            return {key: good[key] for key in keys}

    found = check_split(Wrong(), DATASETS["nyud"], "train")
    assert set(found.bad) == {"a (semseg)", "a (depth)"}
    assert "class 77" in found.bad["a (semseg)"] and "float64" in found.bad["a (depth)"]


def test_show_draws_real_images_of_different_sizes(run, root, tmp_path):
    for dataset in ("nyud", "pascal"):
        file = tmp_path / f"{dataset}.png"
        assert run("data", "show", dataset, "--data-root", root, "--count", 9, "-o", file) == (0, f"{file}\n", "")
        assert Image.open(file).size[0] > 500


def test_cache_is_what_runs_read_afterwards(run, root, tmp_path, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_CACHE", str(tmp_path / "cache"))
    config = DataConfig("real", {"nyud": (32, 32)})
    read = open_split(config, "nyud", "train", root)
    code, out, err = run("data", "cache", "nyud", "--data-root", root)
    assert (code, err) == (0, "") and len(out.splitlines()) == 2
    cached = open_split(config, "nyud", "train", root)
    assert type(cached) is not type(read) and cached.fingerprint == read.fingerprint
    for index in range(len(read)):
        one, other = read.sample(index), cached.sample(index)
        assert all(np.array_equal(one[key], other[key]) for key in read.keys)
    some = open_split(DataConfig("real", {"nyud": (32, 32)}, {"nyud": 2}), "nyud", "train", root, tasks=("edge",))
    assert some.cached_keys == ("image", "edge") and len(some) == 2
    # The test split is cached with the edges that odsF needs; a run with the edge loss draws the others.
    drawn = open_split(config, "nyud", "test", root, purpose="training")
    assert drawn.cached_keys == ("image", "semseg", "depth", "normals")
    (root / "NYUDv2" / "depth" / "0003.npy").write_bytes(b"")  # other data now: the cache is no longer theirs
    with pytest.warns(UserWarning, match="depth-00000.bin: made of other files than are in the archive now"):
        assert "depth" not in open_split(config, "nyud", "train", root).cached_keys


@pytest.mark.parametrize(
    ("argv", "code", "part"),
    [
        (("show", "nyud", "-o", "x.png", "--first", 3), 2, "--first 3: nyud train has 3 images"),
        (("show", "nyud", "-o", "x.png", "--size", 64, 64), 2, "real images keep their own size"),
        (("check", "nyud", "--layout", "NYUD_MT"), 1, "no NYUD_MT/ found"),
        (("check", "nyu"), 2, "did you mean 'nyud'"),
        (("cache", "pascal", "--layout", "PASCAL"), 2, "did you mean 'PASCALContext'"),
        (("check", "synth-nyud"), 2, "synth-nyud is rendered, not read"),
    ],
)
def test_what_makes_no_sense_is_one_line(run, root, argv, code, part):
    result = run("data", *argv, "--data-root", root)
    assert result[:2] == (code, "") and part in result[2] and result[2].count("\n") == 1
