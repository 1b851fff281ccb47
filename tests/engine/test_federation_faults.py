"""Clients that drop out of a round or have time for a part of it: the same ones for every method, by seed."""

from __future__ import annotations

import pytest
import torch
from kit import TINY, make_federation, rows_of
from resuming import cut_and_whole, numbers_of

import fmtlbench
from fmtlbench.config.run_config import FederationConfig
from fmtlbench.engine.faults import attend
from fmtlbench.exchange import Party

PARTIES = [Party(i, f"c{i}", "nyud", ("depth",), 10) for i in range(5)]
FOUR = """\
description: four alike clients
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth], count: 4}
"""
QUICK = {**TINY, "data.size.nyud": [32, 32], "data.train_samples.nyud": 48, "federation.rounds": 3}


def trace(seed=0, rounds=200, chosen=range(5), **given):
    config = FederationConfig(rounds=rounds, **given)
    return [attend(config, seed, index, list(chosen), PARTIES) for index in range(rounds)]


def test_without_faults_everybody_delivers():
    assert all(a.present == list(range(5)) and not a.dropped and not a.work for a in trace())


def test_drop_outs_come_as_often_as_asked_and_somebody_always_delivers():
    found = trace(dropout=0.3)
    assert 200 < sum(len(a.dropped) for a in found) < 400
    assert all(sorted(a.present + a.dropped) == list(range(5)) for a in found)
    assert all(a.present for a in trace(dropout=0.99))


def test_stragglers_do_a_part_or_are_left_out():
    found = trace(stragglers=0.5)
    shares = [share for a in found for share in a.work.values()]
    assert 400 < len(shares) < 600 and 0 <= min(shares) < 0.1 and 0.9 < max(shares) < 1
    assert not any(a.dropped for a in found)
    left_out = trace(stragglers=0.5, straggler_work="dropped")
    assert not any(a.work for a in left_out)
    assert [a.dropped for a in left_out if len(a.dropped) < 4] == [
        sorted(a.work) for a, b in zip(found, left_out) if len(b.dropped) < 4
    ]


def test_a_clients_faults_do_not_depend_on_who_else_was_chosen():
    everybody, some = trace(dropout=0.4), trace(dropout=0.4, chosen=(1, 3))
    both_fail = [{1, 3} <= set(a.dropped) or len(a.dropped) == 4 for a in everybody]  # one of them delivers after all
    assert all((1 in a.dropped) == (1 in b.dropped) for a, b, odd in zip(everybody, some, both_fail) if not odd)
    assert [a.dropped for a in everybody] != [a.dropped for a in trace(seed=1, dropout=0.4)]


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "four.yml"
    file.write_text(FOUR)
    return str(file)


def test_a_straggler_trains_on_its_first_batches_and_says_so(scenario):
    federation = make_federation("fedavg", scenario, **{**QUICK, "federation.stragglers": 0.99})
    steps = {}
    trained = federation.train(0, lambda party, _: steps.update({party.index: steps.get(party.index, 0) + 1}))
    full = federation.facts[0].steps_per_round
    for i, report in zip(trained.present, trained.reports):
        share = trained.attendance.work.get(i, 1.0)
        assert report.steps == steps[i] == max(1, round(share * full))
    assert min(steps.values()) < full
    row = federation.exchange(trained)
    assert row["work"] == {federation.parties[i].id: share for i, share in trained.attendance.work.items()}


def test_who_dropped_out_sends_nothing_and_is_brought_up_to_date_later(scenario):
    federation = make_federation("fedavg", scenario, **{**QUICK, "federation.dropout": 0.5, "federation.rounds": 8})
    gone: set[str] = set()
    returned = False
    for index in range(8):
        row = federation.round(index)
        dropped = set(row.get("dropped", ()))
        assert dropped.isdisjoint(row["losses"]) and dropped.isdisjoint(row.get("present", row["losses"]))
        for name, traffic in row["ledger"].items():
            assert name not in dropped
            twice = 2 if name in gone else 1  # the model it missed, and the new one
            assert traffic["down"]["encoder"] == twice * traffic["up"]["encoder"]
            returned |= name in gone
        gone = (gone - set(row["losses"])) | dropped
    assert returned
    clients = federation.executor.clients
    here = [c.main.flat.vector for c in clients if c.party.id not in gone]
    for other in here[1:]:
        encoder = clients[0].main.flat.places("encoder")[0]
        assert torch.equal(here[0][encoder], other[encoder])


@pytest.mark.parametrize("algo", ["fednova", "scaffold"])
def test_interrupted_is_uninterrupted(scenario, tmp_path, algo):
    def run(**given):
        given = {"rounds": 3, "out": tmp_path / "runs", "device": "cpu", **QUICK, **given}
        del given["federation.rounds"]
        return fmtlbench.run(algo, scenario=scenario, **given)

    faults = {"federation.dropout": 0.3, "federation.stragglers": 0.5}
    resumed, whole = cut_and_whole(lambda **given: run(**{**faults, **given}), tmp_path)
    assert numbers_of(resumed) == numbers_of(whole)


def test_the_rows_of_a_run_tell_whom_faults_met(scenario, tmp_path):
    given = {**QUICK, "federation.dropout": 0.4, "federation.stragglers": 0.6}
    del given["federation.rounds"]
    result = fmtlbench.run("fedper", scenario=scenario, rounds=3, out=tmp_path, device="cpu", **given)
    rows = rows_of(result)
    assert any(row.get("dropped") for row in rows) and any(row.get("work") for row in rows)
