"""Another world's labels: the rules, where they reach, and how many images a client keeps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fake_data import Images
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import TINY

from fmtlbench.base.seeds import stream
from fmtlbench.config.resolve import resolve
from fmtlbench.data.batches import test_batches as scored_batches
from fmtlbench.data.batches import train_batches
from fmtlbench.data.open import open_datasets
from fmtlbench.data.partitions import deal
from fmtlbench.data.relabel import relabel
from fmtlbench.data.views import client_data
from fmtlbench.listeners import Listener

CPU = torch.device("cpu")
WORLDS = """\
description: two worlds
paper: none
version: 1
clients:
  - {dataset: pascal, tasks: [human_parts, sal, normals], id: plain, images: 5}
  - {dataset: pascal, tasks: [human_parts, sal, normals], id: twisted,
     relabel: {human_parts: rotate, sal: invert, normals: negate}}
evaluation: [global, personal]
"""


def test_rules_leave_what_was_not_labelled():
    classes = torch.tensor([[0, 1, 6, 255]], dtype=torch.uint8)
    signs, maps = torch.tensor([0.5, -1.0, 255.0]), torch.tensor([0, 1, 255], dtype=torch.uint8)
    batch = {"image": signs, "human_parts": classes, "normals": signs, "sal": maps}
    new = relabel(batch, {"human_parts": "rotate", "normals": "negate", "sal": "invert"}, {"human_parts": 7})
    assert new["human_parts"].tolist() == [[3, 4, 2, 255]] and new["human_parts"].dtype == torch.uint8
    assert new["normals"].tolist() == [-0.5, 1.0, 255.0] and new["sal"].tolist() == [1, 0, 255]
    assert new["image"] is signs and batch["sal"] is maps


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    file = tmp_path_factory.mktemp("worlds") / "worlds.yml"
    file.write_text(WORLDS)
    config = resolve("fedavg", str(file), overrides=TINY)
    return client_data(config, open_datasets(config, None, Listener()))


def test_training_and_scoring_see_the_same_world(worlds):
    tasks = ("human_parts", "sal", "normals")
    plain, twisted = worlds
    for split in ("global", "personal"):
        assert twisted.tests[split].relabel == twisted.train.relabel and not plain.tests[split].relabel
    own = next(scored_batches(plain.tests["global"], tasks, 4, CPU))
    other = next(scored_batches(twisted.tests["global"], tasks, 4, CPU))
    known = own["human_parts"] != 255
    assert torch.equal(own["image"], other["image"]) and known.any()
    assert torch.equal((own["human_parts"][known] + 3) % 7, other["human_parts"][known])
    measured = own["normals"] != 255
    assert torch.equal(own["normals"][measured], -other["normals"][measured])
    assert torch.equal(own["sal"] == 1, other["sal"] == 0)
    # Mirrored images get mirrored labels first: the normals of both worlds stay opposite.
    plain_view = type(twisted.train)(twisted.train.dataset, twisted.train.indices)
    batches = [
        next(train_batches(view, ("normals",), 4, stream(0, "order"), ("flip",), CPU))["normals"]
        for view in (plain_view, twisted.train)
    ]
    measured = batches[0] != 255
    assert torch.equal(batches[0][measured], -batches[1][measured])


def test_a_client_keeps_some_images_of_its_share(worlds):
    plain, twisted = worlds
    assert len(plain.train) + len(plain.tests["personal"]) == 5
    assert len(twisted.train) + len(twisted.tests["personal"]) == 8  # all of its half
    taken = np.concatenate([plain.train.indices, plain.tests["personal"].indices, twisted.train.indices])
    assert len(set(taken.tolist())) == len(taken)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 2), st.integers(0, 80), st.sampled_from([1e-3, 0.3, 1e6]), st.integers(0, 3))
def test_skewed_amounts_are_disjoint_complete_and_leave_nobody_without(clients, least, spare, alpha, seed):
    images = range(clients * least + spare)
    parts = deal("quantity", Images(len(images)), clients, stream(seed, "partition"), least, alpha)
    assert sorted(np.concatenate(parts).tolist()) == list(images) and min(map(len, parts)) >= least


def test_a_small_alpha_is_more_skewed():
    def largest(alpha):
        seeds = [deal("quantity", Images(400), 4, stream(seed, "p"), alpha=alpha) for seed in range(20)]
        return np.mean([max(map(len, parts)) for parts in seeds])

    assert largest(1e6) < 110 < 250 < largest(0.1)
