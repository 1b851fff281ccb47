"""The table of deviations: every test it names exists, and what no other room tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from fmtlbench.config.resolve import resolve
from fmtlbench.engine.optim import make_optimizer

TESTS = Path(__file__).parents[1]


def test_every_test_named_in_the_table_exists():
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS.parent / "docs" / "deviations.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, test in named:
        assert f"def {test}(" in (TESTS / file).read_text(encoding="utf-8"), f"{file}::{test}"


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_adam_puts_the_decay_into_the_gradient(kind, scenario_file):
    """From a zero gradient Adam with decay takes a full step towards 0; AdamW shrinks by lr · decay."""
    overrides = {"train.optimizer": kind, "train.lr": 0.1, "train.weight_decay": 0.5}
    config = resolve("fedavg", scenario_file, overrides=overrides)
    parameter = torch.nn.Parameter(torch.tensor([2.0]))
    optimizer = make_optimizer(config.train, [parameter], torch.device("cpu"))
    parameter.grad = torch.zeros(1)
    optimizer.step()
    assert parameter.item() == pytest.approx(1.9 if kind == "adam" else 2.0 * (1 - 0.1 * 0.5), rel=1e-5)
