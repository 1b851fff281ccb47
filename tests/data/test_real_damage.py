"""Damaged archives: every fault is an error that names the file and what is wrong, never a guess."""

from __future__ import annotations

import json
import random
import shutil

import archives
import numpy as np
import pytest
from archives import open_real
from PIL import Image
from scipy.io import savemat

from fmtlbench.base.errors import FmtlbenchError

FIRST = {"NYUDv2": "0003", "NYUD_MT": "0003", "PASCALContext": "2008_000008"}
DOMAIN = {"NYUDv2": "nyud", "NYUD_MT": "nyud", "PASCALContext": "pascal"}
WRITE = {"NYUDv2": archives.write_nyudv2, "NYUD_MT": archives.write_nyud_mt, "PASCALContext": archives.write_pascal}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pristine")
    for write in WRITE.values():
        write(folder)
    return folder


@pytest.fixture
def archive(pristine, tmp_path):
    """A copy to damage: archive("NYUDv2") is its folder."""

    def copy(name):
        shutil.copytree(pristine / name, tmp_path / name)
        return tmp_path / name

    return copy


def read(folder, key):
    return open_real(DOMAIN[folder.name], "train", folder.parent).sample(0, [key])[key]


def png(pixels, mode=None):
    def damage(path):
        picture = Image.fromarray(pixels)
        (picture.convert(mode) if mode else picture).save(path)

    return damage


def npy(array, **options):
    return lambda path: np.save(path, array, **options)


def npz(path):
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))


def mat(**content):
    return lambda path: savemat(path, content)


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * 0.8)])


def empty(path):
    path.write_bytes(b"")


def html(path):
    path.write_text("<!DOCTYPE html><p>quota exceeded</p>")


def anno(*things):
    return mat(anno=archives.annotation("x", list(things)))


def person(shape=(30, 40), number=15, **parts):
    return {"class_ind": number, "mask": np.ones(shape, np.uint8), "parts": parts}


def grey(value, shape=(30, 40)):
    return np.full(shape, value, np.uint8)


def floats(value, shape=(30, 40)):
    array = np.ones(shape, np.float32)
    array[1, 2] = value
    return array


NYUD, OLD, PASCAL = "NYUDv2", "NYUD_MT", "PASCALContext"
LABELMAP = "pascal-context/trainval/{}.mat"
CASES = [
    (NYUD, "images/{}.png", cut, "image", "cannot be"),
    (NYUD, "images/{}.png", empty, "image", "not a picture"),
    (NYUD, "images/{}.png", html, "depth", "not a picture"),
    (NYUD, "images/{}.png", png(np.zeros((30, 40, 4), np.uint8)), "image", "mode RGBA, expected RGB or L"),
    (NYUD, "segmentation/{}.png", cut, "semseg", "cannot be"),
    (NYUD, "segmentation/{}.png", png(grey(1, (40, 30))), "semseg", "40×30 pixels .* its image has 30×40"),
    (NYUD, "segmentation/{}.png", png(grey(41)), "semseg", "class 41 in 1200 pixels, expected 0 to 40"),
    (NYUD, "segmentation/{}.png", png(grey(255)), "semseg", "class 255"),
    (NYUD, "segmentation/{}.png", png(np.zeros((30, 40, 3), np.uint8)), "semseg", "mode RGB, expected L or P"),
    (NYUD, "segmentation/{}.png", png(np.zeros((30, 40), np.uint16)), "semseg", "mode I;16"),
    (NYUD, "edge/{}.png", png(grey(90)), "edge", "value 90, expected an edge map of 0 and 255"),
    (NYUD, "edge/{}.png", png(grey(1)), "edge", "value 1, expected"),
    (NYUD, "edge/{}.png", png(grey(0, (15, 20))), "edge", "15×20 pixels"),
    (NYUD, "normals/{}.png", png(grey(9)), "normals", "mode L, expected RGB"),
    (NYUD, "normals/{}.png", png(np.zeros((29, 40, 3), np.uint8)), "normals", "29×40 pixels"),
    (NYUD, "depth/{}.npy", cut, "depth", "cannot be read as .npy"),
    (NYUD, "depth/{}.npy", empty, "depth", "cannot be read as .npy"),
    (NYUD, "depth/{}.npy", npz, "depth", "an .npz archive"),
    (NYUD, "depth/{}.npy", npy(floats(np.nan)), "depth", "NaN or infinity in 1 pixel$"),
    (NYUD, "depth/{}.npy", npy(floats(np.inf)), "depth", "NaN or infinity"),
    (NYUD, "depth/{}.npy", npy(floats(-0.5)), "depth", "a depth of -0.5 m"),
    (NYUD, "depth/{}.npy", npy(floats(2500)), "depth", "a depth of 2500, expected metres below 80"),
    (NYUD, "depth/{}.npy", npy(floats(1, (30, 41))), "depth", "30×41 pixels"),
    (NYUD, "depth/{}.npy", npy(floats(1, (30, 40, 1))), "depth", r"shape \[30, 40, 1\], expected \[H, W\]"),
    (NYUD, "depth/{}.npy", npy(np.ones((30, 40), np.uint16)), "depth", "type uint16, expected floating-point"),
    (NYUD, "depth/{}.npy", npy(np.array([{"a": 1}]), allow_pickle=True), "depth", "allow_pickle=False"),
    (OLD, "images/{}.jpg", cut, "image", "cannot be decoded"),
    (OLD, "edge/{}.npy", npy(grey(255)), "edge", "value 255, expected an edge map of 0 and 1"),
    (OLD, "edge/{}.npy", npy(floats(np.nan)), "edge", "value nan"),
    (OLD, "edge/{}.npy", npy(np.full((30, 40), "a")), "edge", "type <U1"),
    (OLD, "edge/{}.npy", npy(grey(1, (30, 30))), "edge", "30×30 pixels"),
    (OLD, "normals/{}.npy", npy(floats(np.nan, (30, 40, 3))), "normals", "NaN or infinity in 1 pixel$"),
    (OLD, "normals/{}.npy", npy(np.full((30, 40, 3), 127, np.float32)), "normals", "a normal of length 220"),
    (OLD, "normals/{}.npy", npy(floats(1, (3, 30, 40))), "normals", r"expected \[H, W, 3\]"),
    (OLD, "segmentation/{}.png", png(grey(77)), "semseg", "class 77"),
    (PASCAL, "JPEGImages/{}.jpg", cut, "image", "cannot be decoded"),
    (PASCAL, "semseg/VOC12/{}.png", png(grey(21)), "semseg", r"class 21 .* expected 0 to 20 or 255 \(ignore\)"),
    (PASCAL, "sal_distill/{}.png", png(np.zeros((30, 40, 3), np.uint8)), "sal", "mode RGB"),
    (PASCAL, "sal_distill/{}.png", cut, "sal", "cannot be"),
    (PASCAL, "normals_distill/{}.png", png(np.zeros((20, 40, 3), np.uint8)), "normals", "20×40 pixels"),
    (PASCAL, LABELMAP, cut, "edge", "cannot be read as a MATLAB file"),
    (PASCAL, LABELMAP, html, "edge", "cannot be read as a MATLAB file"),
    (PASCAL, LABELMAP, mat(labels=grey(1)), "edge", "no variable 'LabelMap' in it, it holds labels"),
    (PASCAL, LABELMAP, mat(LabelMap=grey(1, (30, 41))), "normals", "30×41 pixels"),
    (PASCAL, LABELMAP, mat(LabelMap=floats(0.5)), "edge", r"LabelMap is float32 \[30, 40\]"),
    (PASCAL, LABELMAP, mat(LabelMap=np.full((30, 40), 460, np.uint16)), "edge", "class 460 in LabelMap"),
    (PASCAL, LABELMAP, mat(LabelMap=np.full((30, 40), -1, np.int16)), "edge", "class -1 in LabelMap"),
    (PASCAL, "human_parts/{}.mat", cut, "human_parts", "cannot be read as a MATLAB file"),
    (PASCAL, "human_parts/{}.mat", mat(x=1), "human_parts", "no variable 'anno' in it, it holds x"),
    (PASCAL, "human_parts/{}.mat", mat(anno=grey(1)), "human_parts", "'anno' has no field 'objects'"),
    (PASCAL, "human_parts/{}.mat", mat(anno={"imname": "x"}), "human_parts", "'anno' has no field 'objects'"),
    (PASCAL, "human_parts/{}.mat", mat(anno={"objects": {"class_ind": 15}}), "human_parts", "no field 'mask'"),
    (PASCAL, "human_parts/{}.mat", anno(person(number=21)), "human_parts", "an object of class 21, expected 1 to 20"),
    (PASCAL, "human_parts/{}.mat", anno(person(number=[15, 15])), "human_parts", "'class_ind' is not one value"),
    (PASCAL, "human_parts/{}.mat", anno(person(number="dog")), "human_parts", "'class_ind' is not one value"),
    (PASCAL, "human_parts/{}.mat", anno(person(hed=grey(1))), "human_parts", "no part 'hed'; did you mean 'head'"),
    (PASCAL, "human_parts/{}.mat", anno(person(head=grey(1, (3, 3)))), "human_parts", "3×3 pixels"),
    (PASCAL, "human_parts/{}.mat", anno(person(head="x")), "human_parts", "a 'mask' is not a matrix"),
    (PASCAL, "json/nyu_classes.json", empty, "normals", "not JSON"),
    (PASCAL, "json/nyu_classes.json", lambda p: p.write_text('{"wall": "x"}'), "normals", "names and whole numbers"),
    (PASCAL, "json/context_classes.json", lambda p: p.write_text('{"wall": 440}'), "normals", "no class 'tvmonitor'"),
]


@pytest.mark.parametrize(
    ("name", "file", "damage", "key", "message"), CASES, ids=[f"{c[0]}-{c[3]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_damaged_file_is_named(archive, name, file, damage, key, message):
    folder = archive(name)
    assert read(folder, key) is not None
    path = folder / file.format(FIRST[name])
    assert path.is_file()
    damage(path)
    with pytest.raises(FmtlbenchError, match=message) as caught:
        read(folder, key)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_random_damage_never_escapes_as_another_exception(archive):
    """Cut or changed anywhere: refused with the file's name, or the damage was where the format has no checksum."""
    rng = random.Random(0)
    files = {(name, file, key) for name, file, _, key, _ in CASES if "json" not in file}
    for name, file, key in sorted(files - {(NYUD, "images/{}.png", "depth")}):
        folder = archive(name)
        path = folder / file.format(FIRST[name])
        content = path.read_bytes()
        whole = read(folder, key)
        for trial in range(10):
            broken = bytearray(content)
            if trial % 2:
                broken = broken[: rng.randrange(len(broken))]
            else:
                broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            path.write_bytes(broken)
            try:
                got = read(folder, key)
            except FmtlbenchError as error:
                assert str(path) in str(error)
                continue
            assert (got.dtype, got.ndim) == (whole.dtype, whole.ndim)
            if trial % 2 or path.suffix == ".png":
                assert np.array_equal(got, whole)  # only a mark at the very end was lost; PNG has checksums
        shutil.rmtree(folder)


# -- lists and folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0003\n0004\n0003\n", r"line 3: 0003 is listed twice, first in line 1"),
        (b"", "lists no image"),
        (b"\r\n \n", "lists no image"),
        (b"0003\n\xff\xfe\n", "not a UTF-8 text file"),
        (b"0003\n../0004\n", r"line 2: '../0004' is not an image id"),
        (b"0003 1\n", "line 1: '0003 1' is not an image id"),
        (b"0003\n00\x0004\n", "is not an image id"),
    ],
)
def test_a_bad_list_is_refused(archive, content, message):
    path = archive(NYUD) / "gt_sets" / "train.txt"
    path.write_bytes(content)
    with pytest.raises(FmtlbenchError, match=message) as caught:
        open_real("nyud", "train", path.parents[2])
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"0003\r\n0004\r\n", b"\xef\xbb\xbf0003\n\n  0004  ", b"\n0003\n\n\n0004\n\n"])
def test_line_ends_blank_lines_and_marks_do_not_matter(archive, content):
    path = archive(NYUD) / "gt_sets" / "train.txt"
    path.write_bytes(content)
    assert open_real("nyud", "train", path.parents[2]).ids == ["0003", "0004"]


def test_a_listed_image_without_files_is_refused_at_once(archive):
    folder = archive(NYUD)
    with (folder / "gt_sets" / "train.txt").open("a") as file:
        file.write("7777\n")
    (folder / "depth" / "0004.npy").unlink()
    with pytest.raises(FmtlbenchError, match=r"6 of the files that gt_sets/train\.txt asks for are missing") as caught:
        open_real("nyud", "train", folder.parent)
    assert "images/7777.png" in str(caught.value) and "and 1 more" in str(caught.value)
    with pytest.raises(FmtlbenchError, match="2 of the files"):  # only what the task needs
        open_real("nyud", "train", folder.parent, tasks=("edge",))
    lenient = open_real("nyud", "train", folder.parent, complete=False)
    assert len(lenient.missing) == 6 and folder / "depth" / "0004.npy" in lenient.missing
    with pytest.raises(FmtlbenchError, match=r"0004\.npy: .*No such file"):
        lenient.sample(1)


def test_missing_folders_and_lists_are_named(archive):
    folder = archive(PASCAL)
    shutil.rmtree(folder / "sal_distill")
    shutil.rmtree(folder / "semseg")
    (folder / "json" / "nyu_classes.json").unlink()
    (folder / "ImageSets" / "Context" / "val.txt").unlink()
    with pytest.raises(FmtlbenchError, match="it lacks") as caught:
        open_real("pascal", "test", folder.parent)
    for part in (str(folder), "sal_distill/", "semseg/VOC12/", "json/nyu_classes.json", "ImageSets/Context/val.txt"):
        assert part in str(caught.value)
    assert len(open_real("pascal", "train", folder.parent, tasks=("edge", "human_parts"))) == 3


def test_people_are_not_counted_in_damaged_annotations(archive):
    folder = archive(PASCAL)
    (folder / "human_parts" / "2008_000019.mat").write_bytes(b"MATLAB")
    dataset = open_real("pascal", "train", folder.parent)
    with pytest.raises(FmtlbenchError, match=r"2008_000019\.mat: cannot be read"):
        dataset.eligible(("human_parts",))


def test_nothing_in_the_archive_is_written(archive):
    folder = archive(PASCAL)
    before = sorted((str(p), p.stat().st_mtime_ns) for p in folder.rglob("*"))
    dataset = open_real("pascal", "train", folder.parent)
    dataset.sample(0)
    dataset.eligible(("human_parts",))
    assert sorted((str(p), p.stat().st_mtime_ns) for p in folder.rglob("*")) == before
    assert json.loads((folder / "json" / "nyu_classes.json").read_text()) == archives.NYU_CLASSES
