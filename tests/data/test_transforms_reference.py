"""The transforms against outputs of the papers' public code."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fmtlbench.data.tensors import to_tensors
from fmtlbench.data.transforms import geometry, test_transform
from fmtlbench.data.transforms.geometry import centred
from fmtlbench.tasks import TASKS

scored = test_transform
del test_transform  # pytest would take it for a test
BYTES = ("semseg", "human_parts", "sal", "edge")


@pytest.fixture(scope="module")
def cases(reference):
    """Transform name -> list of (input, output), in our convention: maps [H, W], classes as bytes."""
    folder = reference / "F_transforms"
    arrays = np.load(folder / "transforms.npz")
    found = {}
    for entry in json.loads((folder / "transforms_index.json").read_text()):
        pair = tuple({key: arrays[f"{entry['id']}_{side}_{key}"] for key in entry["keys"]} for side in ("in", "out"))
        found.setdefault(entry["transform"], []).append(pair)
    return found


def ours(sample):
    result = {}
    for key, value in sample.items():
        value = value[..., 0] if value.shape[-1] == 1 else value
        result[key] = value.astype(np.uint8) if key in BYTES else value
    return result


def select(cases, start):
    found = [(name, *pair) for name, pairs in cases.items() if name.startswith(start) for pair in pairs]
    assert found, start
    return found


def test_scaling(cases):
    for name, given, expected in select(cases, "RandomScaling"):
        scale = float(name.partition("fixed ")[2].rstrip(")"))
        given, expected = ours(given), ours(expected)
        shape = expected["image"].shape[:2]
        window = centred(given["image"].shape[:2], shape, scale)
        assert (window.rows.scaled, window.columns.scaled) == shape
        np.testing.assert_allclose(window.image(given["image"], np.float32), expected["image"], atol=1e-2)
        for key in set(given) - {"image"}:
            label = window.label(given[key], 255) / (np.float32(scale) if key == "depth" else 1)
            np.testing.assert_allclose(label, expected[key], atol=1e-5)


def test_cropping(cases):
    for name, given, expected in select(cases, "RandomCrop"):
        top, bottom, left, right = json.loads(name.partition("loc=")[2].rstrip(")"))
        given, expected = ours(given), ours(expected)
        axes = [
            geometry.Axis(source, source, start, stop - start, stop - start)
            for source, start, stop in zip(given["image"].shape, (top, left), (bottom, right))
        ]
        for key, value in given.items():
            assert np.array_equal(geometry.Window(*axes).label(value, 255), expected[key])


def test_mirroring(cases):
    for _, given, expected in select(cases, "RandomHorizontallyFlip (forced)"):
        given, expected = ours(given), ours(expected)
        shape = given["image"].shape[:2]
        window = centred(shape, shape).mirrored()
        for key, value in given.items():
            label = window.label(value, 255)
            if key == "normals":
                label[..., 0] *= -1
            np.testing.assert_allclose(label, expected[key], atol=1e-5)


def test_padding(cases):
    """Where the image fits; the public code leaves a larger one as it is."""
    checked = 0
    for name, given, expected in select(cases, "PadImage"):
        size = tuple(json.loads(name.partition("size=")[2].rstrip(")").replace("(", "[") + "]"))
        given, expected = ours(given), ours(expected)
        if any(had > wanted for had, wanted in zip(given["image"].shape, size)):
            continue
        checked += 1
        window = centred(given["image"].shape[:2], size)
        for key, value in given.items():
            fill = 0 if key == "image" else TASKS[key].kind.unlabelled
            np.testing.assert_allclose(window.label(value, fill), expected[key], atol=1e-5)
    assert checked >= 4


@pytest.mark.parametrize("name", ["validation pipeline", "AddIgnoreRegions"])
def test_evaluation(cases, name):
    """Normalise, pad, mark what is to be ignored, channels first; the second is the third step alone."""
    for _, given, expected in select(cases, name):
        size = expected["image"].shape[-2:] if name.startswith("val") else given["image"].shape[:2]
        result = to_tensors({key: value[None] for key, value in scored(ours(given), size).items()}, "cpu")
        for key, tensor in result.items():
            if name == "AddIgnoreRegions":
                if key == "image":
                    continue
                want = ours(expected)[key]
                want = want.transpose(2, 0, 1) if want.ndim == 3 else want
            else:
                want = expected[key][0] if expected[key].shape[0] == 1 else expected[key]
            np.testing.assert_allclose(tensor[0].numpy(), want, atol=1e-5)


def test_normalisation(cases):
    for _, given, expected in select(cases, "Normalize"):
        tensor = to_tensors({"image": given["image"][None]}, "cpu")["image"]
        np.testing.assert_allclose(tensor[0].permute(1, 2, 0), expected["image"], atol=1e-5)
