"""Whole models as one row: resuming, absent clients and anchors, in each network that exchanges them."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from kit import TINY, make_federation
from resuming import cut_and_whole

from fmtlbench.algorithms.fedmtl import default_rho

WHOLE = {
    **TINY,
    "federation.exchange": "models",
    "data.size": {"pascal": [32, 64], "nyud": [32, 64]},  # instance norm needs two positions
    "data.train_samples": {"pascal": 12, "nyud": 12},
    "train.local_epochs.nyud": 1,
    "model.backbone": "resnet_nano",
}
EXCHANGES = ("models", "decoders")
NETWORKS = {
    "md": {"model.architecture": "md"},
    "tc": {"model.architecture": "tc", "model.options.task_steps": "sequential"},
    "matfl": {"model.architecture": "matfl", "train.optimizer_state": "fresh"},
}
ALIKE = """\
description: three alike clients, whose heads travel
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, normals], count: 3}
"""
# As many tasks each, as whole models need; other ones, so that heads stay home.
UNLIKE = ALIKE.replace("count: 3", "count: 2") + "  - {dataset: pascal, tasks: [normals, sal]}\n"
SHUFFLED = ALIKE.replace("count: 3", "count: 2") + "  - {dataset: nyud, tasks: [normals, depth], id: last}\n"


def federation(algo, scenario, **overrides):
    return make_federation(algo, scenario, **{**WHOLE, "federation.rounds": 4, **overrides})


@pytest.mark.slow
@pytest.mark.parametrize(("network", "algo"), [("md", "ditto"), ("tc", "fedhca2"), ("matfl", "fedamp")])
def test_stopped_and_resumed_equals_uninterrupted(tiny_run, scenario, tmp_path, network, algo):
    """Anchors, tracks, hyper weights and who is behind survive; a third of the clients is absent in each round."""
    given = {**WHOLE, **NETWORKS[network], "rounds": 3, "scenario": scenario(ALIKE), "federation.participation": 0.67}
    resumed, whole = cut_and_whole(partial(tiny_run, algo, **given), tmp_path)
    files = [result.folder / "metrics.jsonl" for result in (resumed, whole)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert [json.loads(line)["round"] for line in files[0].read_text().splitlines()] == [1, 2, 3]


@pytest.mark.parametrize(("network", "text"), [("md", ALIKE), ("md", UNLIKE), ("tc", UNLIKE), ("matfl", ALIKE)])
def test_a_returning_client_gets_the_whole_common_model(scenario, network, text):
    """Heads included where they travel; where they do not, its own are left alone."""
    fed = federation("fedavg", scenario(text), **NETWORKS[network], **{"federation.participation": 0.67})
    starts, returned = {}, set()
    for client in fed.executor.clients:
        client.train = recording(client, starts)
    for index in range(4):
        present, behind = fed.present(index), set(fed.behind)
        common = {kind: row.clone() for kind, row in fed.common.items()}
        heads = {i: [row.clone() for row in fed.executor.clients[i].main.flat.rows("head")] for i in behind}
        row = fed.round(index)
        for i in behind.intersection(present):
            returned.add(i)
            assert set(common) == {"encoder", "decoder"}
            for kind, expected in common.items():
                assert torch.equal(starts[i][kind][0], expected) and len(starts[i][kind]) == 1
            assert all(torch.equal(a, b) for a, b in zip(starts[i]["head"], heads[i], strict=True))
            sizes = fed.executor.clients[i].main.flat.counts()
            sent = row["ledger"][fed.parties[i].id]["down"]  # the common model, and the round's reply
            assert sent == {kind: 2 * 4 * sizes[kind] for kind in common}
    assert returned


def recording(client, starts):
    train = client.train

    def wrapped(*args):
        flat = client.main.flat
        starts[client.party.index] = {k: [r.clone() for r in flat.rows(k)] for k in ("encoder", "decoder", "head")}
        return train(*args)

    return wrapped


@pytest.mark.parametrize(("text", "travels"), [(ALIKE, True), (UNLIKE, False)])
@pytest.mark.parametrize("algo", ["fedprox", "ditto", "fedamp", "fedmtl"])
def test_anchors_cover_what_travels(scenario, algo, text, travels):
    """Every parameter that travels feels the pull with its analytic gradient; heads that stay home feel none."""
    fed = federation(algo, scenario(text), **NETWORKS["md"])
    fed.round(0)
    client = fed.executor.clients[0]
    if algo in ("fedprox", "ditto"):  # what it starts the next round from
        client.anchor = client.read(("encoder", "decoder"))
    if algo == "ditto":
        client.track = "personal"
    flat = client.tracks[client.track].flat
    heads = sum(p.numel() for p in client.main.model.heads.parameters())
    with torch.no_grad():
        flat.vector += 0.01 * torch.randn(len(flat.vector), generator=torch.Generator().manual_seed(0))
    flat.watch_gradients(("encoder", "decoder", "head"))
    fed.algorithm.local_objective(client).backward()
    shared = flat.vector[: None if travels else -heads]
    anchor = torch.cat([*client.anchor["encoder"], *client.anchor["decoder"]])
    assert len(anchor) == len(shared) == (len(flat.vector) if travels else len(flat.vector) - heads)
    pull = {"fedprox": 0.01, "ditto": 0.1, "fedamp": 1.0}.get(algo)
    expected = (shared - anchor) * (pull or 1)
    if algo == "fedmtl":  # ρ(‖θ‖² + (1 − 1/R)‖θ − m‖²)
        expected = 2 * default_rho(len(shared)) * (shared + (1 - 1 / 3) * (shared - anchor))
    torch.testing.assert_close(flat.gradient[: len(shared)], expected, rtol=1e-4, atol=1e-9)
    assert flat.gradient[len(shared) :].count_nonzero() == 0


def test_alike_clients_may_list_their_tasks_in_any_order(scenario):
    """Position by position means task by task: depth meets depth, and the heads travel."""
    fed = federation("fedavg", scenario(SHUFFLED), **NETWORKS["md"])
    assert fed.config.heads_travel
    assert [party.tasks for party in fed.parties] == [("normals", "depth")] * 3
    assert len({facts.layouts["decoder"].tensors for facts in fed.facts}) == 1
    fed.round(0)
    models = [client.main.model for client in fed.executor.clients]
    for name, parameter in models[0].named_parameters():
        assert torch.equal(parameter, models[2].get_parameter(name)), name


def test_decoders_one_by_one_keep_the_files_order(scenario):
    fed = federation("fedavg", scenario(SHUFFLED), **NETWORKS["md"], **{"federation.exchange": "decoders"})
    assert [party.tasks for party in fed.parties] == [("depth", "normals")] * 2 + [("normals", "depth")]
    assert not fed.config.heads_travel


def test_fedsta_unifies_task_conditioned_decoders_of_the_same_tasks(scenario):
    overrides = {**NETWORKS["tc"], "federation.exchange": "decoders", "algo.unify_every": 1}
    fed = federation("fedsta", scenario(SHUFFLED), **overrides)
    fed.round(0)
    assert len({row.sum().item() for client in fed.executor.clients for row in client.main.flat.rows("decoder")}) == 1


def test_a_task_conditioned_model_is_the_same_row_in_either_exchange(scenario):
    path = scenario(UNLIKE)
    whole, apart = (federation("fedavg", path, **{**NETWORKS["tc"], "federation.exchange": how}) for how in EXCHANGES)
    layout = whole.facts[0].layouts["decoder"]
    assert layout == apart.facts[0].layouts["decoder"] and len(layout.owners) == 1
    assert "None" not in " ".join(t.name + t.layer for t in layout.tensors)
