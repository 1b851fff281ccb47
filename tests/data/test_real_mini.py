"""The readers on a few real samples, where they lie beside the checkout."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from archives import open_real

from fmtlbench.data.check import check_split
from fmtlbench.data.datasets import DATASETS

MINI = Path(__file__).parents[3] / "shared" / "mini"
pytestmark = pytest.mark.skipif(not MINI.is_dir(), reason="the real samples are not beside this checkout")


def facts(archive):
    return json.loads((MINI / archive / "SOURCES.json").read_text())


@pytest.mark.parametrize("layout", ["NYUDv2", "NYUD_MT"])
def test_nyud(layout):
    known, seen = facts("NYUDv2"), 0
    for split, count in (("train", 4), ("test", 3)):
        dataset = open_real("nyud", split, MINI, layout=layout)
        assert len(dataset) == count
        for index in range(count):
            sample, fact = dataset.sample(index), known[dataset.image_id(index)]
            assert sample["image"].shape[:2] == tuple(fact["shape"])
            classes = {255 if number == 0 else number - 1 for number in fact["classes"]}
            assert set(np.unique(sample["semseg"]).tolist()) == classes
            depth = sample["depth"]
            low, high, share = fact["depth"]
            measured = depth[depth > 0]
            assert np.allclose(
                [measured.min(), measured.max(), measured.size / depth.size], [low, high, share], atol=1e-3
            )
            lengths = np.linalg.norm(sample["normals"], axis=-1)
            assert ((lengths == 0) | (abs(lengths - 1) < 0.06)).all()
            seen += 1
    assert seen == 7


def test_real_normals_of_nyud_mark_what_is_unknown():
    dataset = open_real("nyud", "test", MINI)
    unknown = (dataset.sample(dataset.ids.index("0433"), ["normals"])["normals"] == 0).all(-1)
    assert 0 < unknown.mean() < 0.5


def test_both_layouts_hold_the_same_labels():
    new, old = (open_real("nyud", "train", MINI, layout=name) for name in ("NYUDv2", "NYUD_MT"))
    assert new.ids == old.ids
    for index in range(len(new)):
        one, other = new.sample(index), old.sample(index)
        for key in ("semseg", "depth", "edge"):
            assert np.array_equal(one[key], other[key])
        both = (one["normals"] != 0).any(-1) & (other["normals"] != 0).any(-1)
        cosine = (one["normals"] * other["normals"]).sum(-1)[both]
        assert both.mean() > 0.5 and cosine.mean() > 0.999


@pytest.mark.parametrize(("split", "count"), [("train", 11), ("test", 21)])
def test_pascal(split, count):
    known, dataset = facts("PASCALContext"), open_real("pascal", split, MINI)
    assert len(dataset) == count
    people = set(dataset.eligible(("human_parts",)).tolist())
    for index in range(count):
        sample, fact = dataset.sample(index), known[dataset.image_id(index)]
        assert fact["split"] == {"train": "train", "test": "val"}[split]
        assert sample["image"].shape[:2] == tuple(fact["shape"])
        assert np.unique(sample["semseg"]).tolist() == fact["voc"]
        assert (index in people) == (15 in fact["voc"]), dataset.image_id(index)
        assert sample["human_parts"].max() <= 6
        # parts lie on people, but where things overlap
        parts = sample["human_parts"] > 0
        assert not parts.any() or (sample["semseg"][parts] == 15).mean() > 0.9
        assert sample["edge"].any() and sample["sal"].any()


def test_archives_own_lists_of_people_agree():
    for split, name in (("train", "train"), ("test", "val")):
        dataset = open_real("pascal", split, MINI)
        listed = json.loads((MINI / "PASCALContext" / "ImageSets" / "Parts" / f"{name}.txt").read_text())
        expected = [index for index, image in enumerate(dataset.ids) if 15 in listed[image]]
        assert dataset.eligible(("human_parts",)).tolist() == expected


def test_normals_of_pascal_live_on_the_classes_of_rooms():
    dataset = open_real("pascal", "test", MINI)
    cow = dataset.sample(dataset.ids.index("2008_000009"), ["normals"])["normals"]
    assert not cow.any()  # a cow and "unknown": nothing a room has
    screen = dataset.sample(dataset.ids.index("2010_002526"))
    assert screen["normals"][screen["semseg"] == 20].any(-1).mean() > 0.9


@pytest.mark.parametrize("domain", ["nyud", "pascal"])
def test_nothing_is_wrong_with_them(domain):
    for split in ("train", "test"):
        dataset = open_real(domain, split, MINI)
        found = check_split(dataset, DATASETS[domain], split)
        assert not found.bad and found.is_official is False
        for task in dataset.tasks:
            assert found.labels[task].images == len(dataset)


@pytest.mark.parametrize(
    ("domain", "lists"), [("nyud", "NYUDv2/gt_sets_official"), ("pascal", "PASCALContext/ImageSets_official/Context")]
)
def test_the_catalogue_knows_the_official_lists(domain, lists):
    for split, name in (("train", "train"), ("test", "val")):
        ids = (MINI / lists / f"{name}.txt").read_text().split()
        official = DATASETS[domain].official[split]
        assert len(ids) == official.images
        assert hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest() == official.sha256
