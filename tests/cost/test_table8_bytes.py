"""FMTL-Bench's Table 8, communication per round, booked by the federation from the paper's own networks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from fmtlbench import reports
from fmtlbench.config.resolve import resolve
from fmtlbench.data.views import ClientData, View
from fmtlbench.engine.client import Client, TrainReport
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation

ALGORITHMS = {"Local": "local", "FedAvg": "fedavg", "FedProx": "fedprox", "FedAMP": "fedamp", "MaT-FL": "matfl",
              "PCGrad": "pcgrad", "CAGrad": "cagrad", "FedRep": "fedrep", "FedMTL": "fedmtl"}  # fmt: skip
OPTIONS = {"FedMTL": {"algo.protocol": "whole"}}  # the table counts everybody's parameters, both ways
LOOK_AT_VALUES = {"FedAMP", "MaT-FL", "PCGrad", "CAGrad"}
META = torch.device("meta")  # tensors without storage: shapes are all that bytes need


def published() -> dict[tuple[str, str], float]:
    path = Path(reports.__file__).parent / "papers" / "published" / "fmtlbench_table8_cost_iid1.csv"
    with path.open(encoding="utf-8") as file:
        return {(row["method"], row["arch"]): float(row["comm_per_round_GB"]) for row in csv.DictReader(file)}


def exchanged(method: str, architecture: str, monkeypatch) -> tuple[dict, Federation]:
    """One round without training: four clients with NYUD-v2's four tasks, whole ResNet-18 models."""
    config = resolve(
        ALGORITHMS[method], "iid1_sdmt", "fmtl-bench",
        overrides={"model.architecture": architecture.lower(), "model.pretrained": False, **OPTIONS.get(method, {})},
    )  # fmt: skip
    assert (config.model.backbone, config.federation.exchange) == ("resnet18", "models")
    data = [ClientData(View(None, np.arange(198)), {}) for _ in config.scenario.parties()]
    monkeypatch.setattr(Client, "train", lambda *_: TrainReport({}, None, 0.0))
    with META:
        federation = Federation(ClientFactory(config, "meta", None, data))
    if method in LOOK_AT_VALUES:  # without values the server hands back what came, kind by kind
        monkeypatch.setattr(federation.algorithm, "aggregate", lambda rnd: echo(rnd, federation.algorithm.shared(0)))
    return federation.round(0), federation


def echo(rnd, kinds):
    return {kind: getattr(rnd, kind).after for kind in kinds}


@pytest.fixture(scope="module")
def ours() -> dict[tuple[str, str], float]:
    """In the paper's unit: 10^6 bytes / 1024."""
    found = {}
    for method, architecture in published():
        with pytest.MonkeyPatch.context() as patch:
            row, _ = exchanged(method, architecture, patch)
        found[method, architecture] = (row["bytes_up"] + row["bytes_down"]) / 1e6 / 1024
    return found


def test_every_row_as_printed(ours):
    assert len(ours) == 18
    assert {key: f"{value:.2f}" for key, value in ours.items()} == {k: f"{v:.2f}" for k, v in published().items()}


def test_the_order_of_methods(ours):
    printed = published()
    for one in ours:
        for two in ours:
            if printed[one] < printed[two]:
                assert ours[one] < ours[two], (one, two)
    assert (ours["Local", "MD"], ours["FedMTL", "MD"]) == (0, max(ours.values()))


def test_the_ledger_says_who_and_what(monkeypatch):
    row, federation = exchanged("FedAvg", "MD", monkeypatch)
    assert len(row["ledger"]) == 4
    for client, entry in row["ledger"].items():
        assert entry["up"] == entry["down"] and set(entry["up"]) == {"encoder", "decoder"}, client
        assert entry["up"]["encoder"] == 4 * 11_176_512  # float32
    counted = sum(p.numel() for p in federation.executor.clients[0].main.model.parameters())
    assert row["bytes_up"] == 4 * 4 * counted


def test_fedmtl_needs_a_quarter_of_what_the_table_counts(monkeypatch, ours):
    monkeypatch.setitem(OPTIONS, "FedMTL", {})
    row, _ = exchanged("FedMTL", "MD", monkeypatch)
    assert (row["bytes_up"] + row["bytes_down"]) / 1e6 / 1024 == pytest.approx(ours["FedMTL", "MD"] / 4)
