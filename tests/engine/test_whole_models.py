"""Whole models as one row: resuming, absent clients and anchors, in each network that exchanges them."""

from __future__ import annotations

import json

import pytest
import torch
from tiny import TINY

from fmtlbench.config import resolve
from fmtlbench.data.open import open_datasets
from fmtlbench.data.views import client_data
from fmtlbench.engine import run as engine_run
from fmtlbench.engine.federation import Federation
from fmtlbench.progress import Quiet

WHOLE = {
    **TINY,
    "federation.exchange": "models",
    "data.size": {"pascal": [32, 64], "nyud": [32, 64]},  # instance norm needs two positions
    "data.train_samples": {"pascal": 12, "nyud": 12},
    "train.local_epochs.nyud": 1,
    "model.backbone": "resnet_nano",
}
NETWORKS = {
    "md": {"model.architecture": "md"},
    "tc": {"model.architecture": "tc", "train.tc": "sequential"},
    "matfl": {"model.architecture": "matfl", "train.optimizer_state": "fresh"},
}
ALIKE = """\
description: three alike clients, whose heads travel
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, edge], count: 3}
"""
# As many tasks each, as whole models need; other ones, so that heads stay home.
UNLIKE = ALIKE.replace("count: 3", "count: 2") + "  - {dataset: pascal, tasks: [edge, sal]}\n"
SHUFFLED = ALIKE.replace("count: 3", "count: 2") + "  - {dataset: nyud, tasks: [edge, depth], id: last}\n"


@pytest.fixture
def scenario(tmp_path):
    def write(text):
        path = tmp_path / "mine.yml"
        path.write_text(text)
        return str(path)

    return write


def federation(algo, scenario, **overrides) -> Federation:
    config = resolve(algo, scenario, overrides={**WHOLE, "federation.rounds": 4, **overrides})
    return Federation(config, client_data(config, open_datasets(config, None, Quiet())), torch.device("cpu"))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("algo", ["fedavg", "fedprox", "ditto", "fedamp", "fedmtl", "fedhca2"])
@pytest.mark.parametrize("network", NETWORKS)
def test_stopped_and_resumed_equals_uninterrupted(tiny_run, scenario, monkeypatch, tmp_path, network, algo):
    """Absent clients, anchors, tracks and the order of tasks survive; a third of the clients is absent each round."""
    given = {**WHOLE, **NETWORKS[network], "rounds": 3, "scenario": scenario(ALIKE), "federation.participation": 0.67}
    whole = tiny_run(algo, out=tmp_path / "whole", **given)
    save = engine_run.save_checkpoint

    def stop_after_two(folder, done, states):
        save(folder, done, states)
        if done == 2:
            raise Stopped

    monkeypatch.setattr(engine_run, "save_checkpoint", stop_after_two)
    with pytest.raises(Stopped):
        tiny_run(algo, out=tmp_path / "stopped", **given)
    monkeypatch.undo()
    resumed = tiny_run(algo, out=tmp_path / "stopped", **given)
    files = [result.folder / "metrics.jsonl" for result in (resumed, whole)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert [json.loads(line)["round"] for line in files[0].read_text().splitlines()] == [1, 2, 3]
