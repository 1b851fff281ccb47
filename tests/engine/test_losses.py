"""Losses and their gradients against the public implementation, and by hand where it has no answer."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.engine.losses import LOSSES, task_loss
from fmtlbench.tasks import TASKS

NAMES = {
    "ce": ("cross_entropy", {}),
    "cebal": ("balanced_cross_entropy", {}),
    "bbce0.95": ("weighted_bce", {"positive": 0.95}),
    "bbce0.8": ("weighted_bce", {"positive": 0.8}),
    "l1norm": ("l1_unit", {}),
    "l1": ("l1", {}),
}


def label_of(array):
    tensor = torch.from_numpy(array)
    return tensor[:, 0] if tensor.shape[1] == 1 else tensor


def test_a_loss_that_is_no_number_is_told():
    spec = replace(TASKS["depth"], loss=lambda raw, label: (raw[:, 0] - label).abs())
    with pytest.raises(
        FmtlbenchError, match=r"task 'depth': its loss gave shape \[1, 2, 2\], expected a tensor of one"
    ):
        task_loss(spec, torch.zeros(1, 1, 2, 2), torch.ones(1, 2, 2))
    with pytest.raises(FmtlbenchError, match=r"no loss 'l2'; .*'l1'"):
        task_loss(replace(TASKS["depth"], loss="l2"), torch.zeros(1, 1, 2, 2), torch.ones(1, 2, 2))


def test_values_and_gradients_equal_the_public_code(reference):
    data = np.load(reference / "B_losses" / "losses.npz")
    index = json.loads((reference / "B_losses" / "losses_index.json").read_text())
    compared = 0
    for entry in index:
        key, kind = entry["key"], entry["loss"].split("_")[0]
        if kind not in NAMES:
            continue  # the totals, below
        name, options = NAMES[kind]
        raw = torch.from_numpy(data[f"{key}_logits"]).requires_grad_()
        value = LOSSES[name](raw, label_of(data[f"{key}_label"]), **options)
        value.backward()
        np.testing.assert_allclose(value.item(), data[f"{key}_value"], rtol=1e-5, atol=1e-7, err_msg=key)
        assert_gradients_equal(raw.grad, data[f"{key}_grad"], key)
        compared += 1
    assert compared == 3 * 19  # seeds, cases


def assert_gradients_equal(ours, theirs, key):
    """To 1e-5 of each, or 1e-6 of the largest: s(z) − y near 0 is what is left of two numbers of its size."""
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6 * np.abs(theirs).max(), err_msg=key)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "domain, tasks",
    [
        ("pascalcontext", ("semseg", "human_parts", "normals", "sal", "edge")),
        ("nyud", ("semseg", "normals", "edge", "depth")),
    ],
)
def test_weighted_total_equals_the_public_multi_task_loss(reference, domain, tasks, seed):
    data = np.load(reference / "B_losses" / "losses.npz")
    prefix = f"s{seed}_multitask_{domain}"
    raw = {task: torch.from_numpy(data[f"{prefix}_{task}_logits"]).requires_grad_() for task in tasks}
    total = 0.0
    for task in tasks:
        loss = task_loss(TASKS[task], raw[task], label_of(data[f"{prefix}_{task}_label"]))
        assert loss.item() == pytest.approx(float(data[f"{prefix}_{task}_value"]), rel=1e-5)
        total += TASKS[task].weight * loss
    assert total.item() == pytest.approx(float(data[f"{prefix}_total"]), rel=1e-5)
    total.backward()
    for task in tasks:
        assert_gradients_equal(raw[task].grad, data[f"{prefix}_{task}_gradtotal"], task)


@pytest.mark.parametrize("task", sorted(TASKS))
def test_nothing_to_learn_from_is_zero(task):
    spec = TASKS[task]
    raw = torch.randn(2, spec.outputs({"semseg": 4, "human_parts": 7}), 8, 8, requires_grad=True)
    label = torch.full((2, 3, 8, 8) if task == "normals" else (2, 8, 8), 255.0)
    loss = task_loss(spec, raw, label)
    loss.backward()
    assert loss.item() == 0 and not raw.grad.any()


def test_ignored_pixels_do_not_count():
    raw = torch.tensor([[[[2.0, -9.0]]]])
    label = torch.tensor([[[3.0, 255.0]]])
    assert LOSSES["l1"](raw, label).item() == 1.0
    edge = LOSSES["weighted_bce"](raw, torch.tensor([[[1.0, 255.0]]]), positive=0.95).item()
    assert edge == pytest.approx(0.95 * math.log1p(math.exp(-2.0)), rel=1e-6)
