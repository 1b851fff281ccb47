"""What the metrics are given, against the public code's `get_output`. It scales to 0…255 what we keep as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fmtlbench.tasks import TASKS

# From what a task decodes to what the public function returns.
PUBLIC = {
    "semseg": lambda classes: classes,
    "human_parts": lambda classes: classes,
    "sal": lambda probability: 255 * probability,
    "edge": lambda probability: 255 * probability,
    "normals": lambda vectors: 255 * (np.moveaxis(vectors, 1, 3) + 1) / 2,
    "depth": lambda metres: metres,  # theirs stops at 0 and becomes 1e-9 in the meter, ours stops there at once
}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("task", PUBLIC)
def test_decoding(golden, task, number):
    file = golden(f"C_meters/get_output_set{number}.npz")
    given, expected = torch.from_numpy(file[f"{task}_logits"]), file[f"{task}_out"]
    ours = PUBLIC[task](TASKS[task].decode(given).numpy())
    if task in ("semseg", "human_parts"):
        np.testing.assert_array_equal(ours, expected)
        return
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-8 if task == "depth" else 1e-4)
    if task == "depth":
        assert (expected == 0).any() and ours.min() == np.float32(1e-9)
