"""Unseen clients: they never take part, get an encoder after the last round, and fit what is theirs to it."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from interrupt import always
from kit import DUO, TINY, rows_of
from resuming import numbers_of, whole_with_copies

from fmtlbench.algorithms.fedavg import FedAvg
from fmtlbench.config.resolve import resolve
from fmtlbench.engine.client_models import build_client_model
from fmtlbench.engine.executor import SerialExecutor
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.engine.messages import Evaluate
from fmtlbench.runs.store import RunStore

# A pool of its own leaves the shares of the others as they are.
LATE = DUO.replace("evaluation: [global, personal]", "evaluation: [global, personal, unseen]").replace(
    "clients:\n", "clients:\n  - {dataset: nyud, tasks: [semseg], id: late, pool: late, unseen: true}\n"
)
WIDE = {"pascal": [32, 64], "nyud": [32, 64]}  # instance norm needs two positions
BATCH_NORM = {"model.backbone": "resnet_nano", "model.architecture": "md", "data.size": WIDE}


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    path = tmp_path_factory.mktemp("unseen") / "duo.yml"
    path.write_text(LATE)
    return str(path)


def federation(algo, scenario, **overrides):
    config = resolve(algo, scenario, overrides={**TINY, "federation.rounds": 2, **overrides})
    return Federation(ClientFactory(config, "cpu"))


def ended(algo, scenario, **overrides):
    """A federation after its two rounds, and the rows of these."""
    fed = federation(algo, scenario, **overrides)
    return fed, [fed.exchange(fed.train(index), last=index == 1) for index in range(2)]


def encoder(client):
    return client.main.flat.read("encoder")[0]


def test_those_that_take_part_never_notice(shared_run, late):
    without, beside = shared_run("fedavg"), shared_run("fedavg", scenario=late)
    others, mine = rows_of(without), rows_of(beside)
    size = beside.summary["clients"][0]["parameters"]["encoder"] * 4
    last = mine[-1]
    assert last["ledger"].pop("late") == {"up": {}, "down": {"encoder": size}}
    last["bytes_down"] -= size
    last["scores"], scored = ([r for r in last["scores"] if (r["client"] == "late") == its] for its in (False, True))
    assert mine == others
    assert {(r["split"], r["task"]) for r in scored} == {("unseen", "semseg")}
    assert beside.summary["bytes_down"] == without.summary["bytes_down"] + size
    assert beside.summary["clients"] == without.summary["clients"]
    (about,) = beside.summary["unseen"]
    assert (about["id"], about["samples"], about["tasks"]) == ("late", 12, ["semseg"])
    assert beside.value("late", "semseg", "unseen") is not None
    assert next(r for r in beside.scores if r["client"] == "late")["trivial"] is not None
    timing = [json.loads(line) for line in (beside.folder / "timing.jsonl").read_text().splitlines()]
    assert ["late" in row["clients"] for row in timing] == [False, False, True]
    assert set(timing[-1]["clients"]["late"]) == {"evaluate"}
    cost = json.loads((beside.folder / "cost.json").read_text())
    assert "late" not in cost["flops"]  # which are of training


@pytest.mark.parametrize(
    ("algo", "overrides"),
    [
        ("fedavg", {}),
        ("fedavg", {"federation.participation": 0.5}),
        ("ditto", {}),  # the model that travels, not the personal one
        ("fedhca2", {}),
        ("fedamp", {}),
        ("fedavg", {**BATCH_NORM, "federation.statistics": "travel"}),
    ],
)
def test_the_servers_encoder(late, algo, overrides):
    fed, rows = ended(algo, late, **overrides)
    (newcomer,) = fed.executor.clients[len(fed.parties) :]
    known = torch.stack([encoder(client) for client in fed.executor.clients[: len(fed.parties)]])
    if algo in ("fedavg", "ditto"):  # one for all, whoever was absent
        present = next(i for i in range(len(fed.parties)) if i not in fed.behind)
        assert torch.equal(encoder(newcomer), known[present])
    else:
        assert torch.equal(encoder(newcomer), known.mean(0)) and not torch.equal(known[0], known[1])
    assert bool(fed.behind) == ("federation.participation" in overrides)
    statistics = [t for t in newcomer.main.flat.layout("encoder") if t.statistic]
    assert bool(statistics) == ("federation.statistics" in overrides)
    assert rows[-1]["ledger"]["late"]["down"] == {"encoder": encoder(newcomer).numel() * 4}
    assert "late" not in rows[0]["ledger"] and "late" not in rows[-1]["losses"]


def test_without_any_encoder_on_the_way_it_is_the_one_all_start_from(late):
    fed, rows = ended("local", late)
    (newcomer,) = fed.executor.clients[len(fed.parties) :]
    fresh = federation("local", late)
    assert torch.equal(encoder(newcomer), encoder(fresh.executor.clients[0]))
    assert torch.equal(encoder(fresh.executor.clients[0]), encoder(fresh.executor.clients[1]))
    assert not torch.equal(encoder(newcomer), encoder(fed.executor.clients[0]))
    assert rows[-1]["bytes_down"] == 0 and rows[-1]["ledger"] == {}


def test_it_pays_for_one_encoder_whatever_the_protocol(late):
    fed, rows = ended("fedmtl", late, **{"algo.protocol": "whole"})
    assert rows[-1]["ledger"]["late"]["down"]["encoder"] == encoder(fed.executor.clients[-1]).numel() * 4
    assert rows[-1]["ledger"]["nyud-multi"]["down"]["encoder"] == 2 * encoder(fed.executor.clients[-1]).numel() * 4


def test_only_decoders_and_heads_are_fitted_and_no_objective_pulls(late):
    """FedProx and FedMTL pull at whatever travels; a newcomer belongs to no method."""
    fed, _ = ended("fedmtl", late, **{"algo.rho": 1e9, "train.weight_decay": 0})
    (newcomer,) = fed.executor.clients[len(fed.parties) :]
    given, flat = encoder(newcomer), newcomer.main.flat
    before = [row.clone() for kind in ("decoder", "head") for row in flat.rows(kind)]
    with newcomer.scored_model(1):
        assert torch.equal(encoder(newcomer), given)
        moved = [row.clone() for kind in ("decoder", "head") for row in flat.rows(kind)]
    assert not any(torch.equal(a, b) for a, b in zip(before, moved))
    assert max(float((a - b).abs().max()) for a, b in zip(before, moved)) < 1
    assert all(torch.equal(a, b) for a, b in zip(before, (row for k in ("decoder", "head") for row in flat.rows(k))))
    again = build_client_model(fed.config, newcomer.party)  # its decoders were as fresh as anybody's
    assert torch.equal(torch.cat([p.flatten() for p in again.decoders.parameters()]), flat.rows("decoder")[0])


def test_epochs_are_a_setting(late):
    fed, _ = ended("fedavg", late)
    more, _ = ended("fedavg", late, **{"evaluation.unseen_epochs": 2})
    scores = [[r["value"] for r in f.evaluate_unseen(1) if r["primary"]] for f in (fed, fed, more)]
    assert scores[0] == scores[1] != scores[2]
    assert fed.config.evaluation.unseen_epochs == 5


def test_scored_once_whenever_the_others_are(tiny_run, late):
    row = rows_of(tiny_run("fedavg", scenario=late, rounds=1, **{"evaluation.when": "both"}))[-1]
    assert sum(r["split"] == "unseen" and r["primary"] for r in row["scores"]) == 1
    assert not any(r["split"] == "unseen" for r in row["scores_before"])
    before = rows_of(tiny_run("fedavg", scenario=late, rounds=1, **{"evaluation.when": "before_aggregation"}))[-1]
    assert [r for r in before["scores"] if r["split"] == "unseen"] == [
        r for r in row["scores"] if r["split"] == "unseen"
    ]
    assert [r for r in before["scores"] if r["split"] != "unseen"] == row["scores_before"]


def test_whole_models_of_alike_clients_beside_an_unlike_newcomer(tmp_path):
    file = tmp_path / "alike.yml"
    file.write_text(
        "description: x\npaper: none\nversion: 1\nexchange: models\nevaluation: [global, unseen]\nclients:\n"
        "  - {dataset: nyud, tasks: [depth, edge], count: 2}\n"
        "  - {dataset: pascal, tasks: [sal], id: late, unseen: true}\n"
    )
    fed, rows = ended("fedavg", str(file))
    assert fed.config.heads_travel
    assert torch.equal(encoder(fed.executor.clients[-1]), encoder(fed.executor.clients[0]))
    assert set(rows[-1]["ledger"]["late"]["down"]) == {"encoder"}
    assert {r["client"] for r in fed.evaluate_unseen(1)} == {"late"}


def test_tasks_of_a_newcomer_make_no_participants_network_larger(late, scenario_file):
    tc = {**BATCH_NORM, "model.architecture": "tc"}
    beside, without = federation("fedavg", late, **tc), federation("fedavg", scenario_file, **tc)
    assert [facts.parameters for facts in beside.facts[:-1]] == [facts.parameters for facts in without.facts]
    assert beside.facts[-1].parameters != beside.facts[0].parameters
    assert {r["task"] for r in beside.evaluate_unseen(0)} == {"semseg"}


class Mine(FedAvg):
    """Chooses by itself."""

    def newcomer_encoder(self, encoders):
        return -encoders[-1]


def test_a_method_may_choose(late, monkeypatch):
    monkeypatch.setattr(FedAvg, "newcomer_encoder", Mine.newcomer_encoder)
    fed, _ = ended("fedavg", late)
    assert torch.equal(encoder(fed.executor.clients[-1]), -encoder(fed.executor.clients[1]))


NEWCOMER = 2  # its number: those that take part come first


def is_told(where, executor, messages, *_):
    return NEWCOMER in messages


CUTS = {
    "welcoming": (SerialExecutor, "map", is_told),
    "evaluating": (SerialExecutor, "map", lambda *given: is_told(*given) and Evaluate in map(type, given[2].values())),
    "writing the summary": (RunStore, "write_summary", always),
}


def test_cut_and_resumed_equals_uninterrupted(tiny_run, tmp_path, late):
    run = partial(tiny_run, "fedavg", scenario=late, rounds=2, **{"evaluation.unseen_epochs": 1})
    whole = whole_with_copies(run, tmp_path, CUTS)
    for phase in CUTS:
        assert numbers_of(run(out=tmp_path / phase)) == numbers_of(whole)
