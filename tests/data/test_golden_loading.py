"""Samples on their way into the network, against the public code's ToTensor and its whole validation pipeline."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fake_data import FakeReader
from golden_files import load

from fmtlbench.data import batches
from fmtlbench.data.tensors import MEAN, STD, to_tensors
from fmtlbench.data.views import View
from fmtlbench.tasks import IGNORE

BYTES = ("image", "semseg", "human_parts", "sal", "edge")


class Samples(FakeReader):
    """One golden input as a dataset of real images would give it: bytes, labels without a channel of one."""

    stacked = False

    def __init__(self, sample, size):
        self.size, self.resize, self.arrays = size, "none", {}
        for key, value in sample.items():
            value = value[..., 0] if value.shape[-1] == 1 else value
            self.arrays[key] = value.astype(np.uint8) if key in BYTES else value
            assert np.array_equal(self.arrays[key], value)  # nothing is lost in bytes

    def sample(self, index, keys):
        return {key: self.arrays[key] for key in keys}


def golden_cases(start):
    """Input and output of the two cases: one of PASCAL-Context's tasks, one of NYUD-v2's."""
    arrays = load("F_transforms/transforms.npz")
    entries = [e for e in load("F_transforms/transforms_index.json") if e["transform"].startswith(start)]
    assert len(entries) == 2
    for entry in entries:
        yield tuple({key: arrays[f"{entry['id']}_{side}_{key}"] for key in entry["keys"]} for side in ("in", "out"))


@pytest.mark.parametrize("which", [0, 1])
def test_the_validation_pipeline(which):
    """As the engine loads test images: normalised, padded, what is to be ignored marked, channels first."""
    given, expected = list(golden_cases("validation pipeline"))[which]
    tasks = tuple(key for key in given if key != "image")
    view = View(Samples(given, expected["image"].shape[1:]), np.arange(1))
    (batch,) = batches.test_batches(view, tasks, 1, torch.device("cpu"))
    assert batch.keys() == expected.keys()
    for key, want in expected.items():
        want = want if len(want) == 3 else want[0]  # label maps have no channel here
        assert batch[key].shape == (1, *want.shape)
        np.testing.assert_allclose(batch[key][0], want, atol=1e-5, rtol=0, err_msg=key)


@pytest.mark.parametrize("which", [0, 1])
def test_to_tensors(which):
    """Theirs only moves the channels; ours normalises the image and marks what was not measured on the way."""
    given, expected = list(golden_cases("ToTensor"))[which]
    arrays = Samples(given, None).arrays
    tensors = to_tensors({key: value[None] for key, value in arrays.items()}, "cpu")
    assert tensors.keys() == expected.keys()
    for key, want in expected.items():
        want = want if len(want) == 3 else want[0]
        if key == "image":
            want = (want / 255 - np.reshape(MEAN, (3, 1, 1))) / np.reshape(STD, (3, 1, 1))
        elif key in ("normals", "depth"):
            missing = (want == 0).all(0) if key == "normals" else want == 0
            assert missing.any()
            want = np.where(missing, IGNORE, want)
        np.testing.assert_allclose(tensors[key][0], want, atol=1e-5, rtol=0, err_msg=key)
