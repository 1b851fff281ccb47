"""Clients that come late or seldom: who is there is decided by the seed, and nothing else of a run changes."""

from __future__ import annotations

import pytest
import torch
from kit import TINY, make_federation, rows_of
from resuming import cut_and_whole, numbers_of

import fmtlbench

CLIENTS = """\
description: two steady clients, one that comes late, one that is seldom there
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth], id: steady, count: 2}
  - {dataset: nyud, tasks: [depth], id: late, joins: 0.5}
  - {dataset: nyud, tasks: [depth], id: seldom, presence: 0.3}
exchange: models
"""
QUICK = {**TINY, "train.local_epochs.nyud": 1, "data.size.nyud": [32, 32]}


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "absent.yml"
    file.write_text(CLIENTS)
    return str(file)


def attendance(scenario, rounds=40, **overrides):
    federation = make_federation("fedavg", scenario, **{**QUICK, "federation.rounds": rounds, **overrides})
    return [federation.present(index) for index in range(rounds)]


def test_the_late_one_comes_in_its_round_and_the_seldom_one_by_chance(scenario):
    rounds = attendance(scenario)
    assert all({0, 1} <= set(present) for present in rounds)
    assert [2 in present for present in rounds] == [False] * 20 + [True] * 20
    assert 4 <= sum(3 in present for present in rounds) <= 22
    assert rounds == attendance(scenario)
    assert 2 in attendance(scenario, rounds=1)[0]  # everybody comes once at least


def test_a_round_is_never_empty(scenario, tmp_path):
    text = CLIENTS.replace("id: steady, count: 2", "id: steady, presence: 0.05").replace(
        ", joins: 0.5", ", presence: 0.1"
    )
    (tmp_path / "absent.yml").write_text(text)
    rounds = attendance(scenario)
    assert all(rounds) and any(len(present) == 1 for present in rounds)


def test_a_share_of_those_who_are_there(scenario):
    rounds, again = (attendance(scenario, **{"federation.participation": 0.5}) for _ in range(2))
    assert rounds == again
    assert all(2 not in present for present in rounds[:20]) and all(1 <= len(present) <= 2 for present in rounds)


def test_who_comes_late_gets_the_common_model_first(scenario):
    federation = make_federation("fedavg", scenario, **{**QUICK, "federation.rounds": 2})
    federation.round(0)
    common = federation.common["encoder"]
    late = federation.executor.clients[2]
    assert not torch.equal(late.read(("encoder",))["encoder"][0], common)
    trained = federation.train(1)
    assert 2 in trained.present and torch.equal(trained.before["encoder"][trained.present.index(2)], common)


def test_absent_clients_of_local_do_not_train(scenario):
    federation = make_federation("local", scenario, **{**QUICK, "federation.rounds": 2})
    before = [client.main.flat.rows("encoder")[0].clone() for client in federation.executor.clients]
    federation.round(0)
    moved = [
        not torch.equal(c.main.flat.rows("encoder")[0], row) for c, row in zip(federation.executor.clients, before)
    ]
    assert moved[:3] == [True, True, False]


def test_a_stopped_run_goes_on_to_the_same_bytes(scenario, tmp_path):
    def run(**given):
        return fmtlbench.run("fedhca2", scenario, device="cpu", rounds=4, **QUICK, **given)

    resumed, whole = cut_and_whole(run, tmp_path)
    assert numbers_of(resumed) == numbers_of(whole)
    rows = rows_of(whole)
    assert "late" not in rows[0]["present"] and all(
        set(row["losses"]) == set(row.get("present", row["losses"])) for row in rows
    )
