"""BatchNorm's running statistics: at home with each client, or travelling with the parts they belong to."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch
from kit import TINY, TWINS, make_federation
from resuming import cut_and_whole, numbers_of

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.matfl import voting_tensors
from fmtlbench.engine.checkpoint import Checkpoint
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.inference.stored_run import StoredRun
from fmtlbench.listeners import Listener

DEEPLAB = {"model.architecture": "matfl", "model.backbone": "resnet_nano"}  # BatchNorm in encoder and decoders
SMALL = {
    **TINY,
    **DEEPLAB,
    "data.size": {"pascal": [32, 32], "nyud": [32, 32]},
    "data.train_samples": {"pascal": 8, "nyud": 8},
    "train.local_epochs.nyud": 1,
}
TRAVEL = {"federation.statistics": "travel"}
THREE = """\
description: three clients, two of them alike
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth], count: 2}
  - {dataset: pascal, tasks: [sal]}
"""


def federation(algo, scenario, **overrides):
    return make_federation(algo, scenario, **{**SMALL, "federation.rounds": 4, **overrides})


def statistics(client, kind) -> list[torch.Tensor]:
    """One vector per part of `kind`: its running means and variances."""
    parts = [module for k, _, module in client.main.model.parts() if k == kind]
    named = [[b for n, b in module.named_buffers() if n.endswith(("running_mean", "running_var"))] for module in parts]
    return [torch.cat(buffers) for buffers in named]


def noting(what, seen, aggregate):
    """`aggregate` that first notes something of its round."""

    def wrapped(rnd):
        seen.append(what(rnd))
        return aggregate(rnd)

    return wrapped


def equal(vectors) -> bool:
    return all(torch.equal(a, b) for a, b in pairwise(vectors))


def test_fedavg_gives_everybody_the_same_statistics_if_they_travel(scenario_file):
    """Two decoders on one client, one on the other: three of them, all alike afterwards; counters are their own."""
    for where in ("home", "travel"):
        fed = federation("fedavg", scenario_file, **{"federation.statistics": where})
        seen = []
        aggregate = fed.algorithm.aggregate
        fed.algorithm.aggregate = noting(
            lambda rnd, fed=fed: [statistics(c, "decoder") for c in fed.executor.clients], seen, aggregate
        )
        row = fed.round(0)
        encoders = [statistics(client, "encoder")[0] for client in fed.executor.clients]
        decoders = [vector for client in fed.executor.clients for vector in statistics(client, "decoder")]
        assert len(decoders) == 3 and encoders[0].numel() and decoders[0].numel()
        assert equal(encoders) is equal(decoders) is (where == "travel")
        if where == "travel":
            mean = torch.stack([vector for vectors in seen[0] for vector in vectors]).mean(0)
            torch.testing.assert_close(decoders[0], mean)
        sizes = [client.main.flat.counts() for client in fed.executor.clients]
        sent = sum(size["encoder"] + size["decoder"] for size in sizes)
        sent += sum(v.numel() for v in (*encoders, *decoders)) if where == "travel" else 0
        assert row["bytes_up"] == row["bytes_down"] == 4 * sent
        one = row["ledger"]["pascal-human_parts"]["up"]
        assert one["encoder"] == 4 * (sizes[0]["encoder"] + (encoders[0].numel() if where == "travel" else 0))
        counters = [
            b for n, b in fed.executor.clients[1].main.model.named_buffers() if n.endswith("num_batches_tracked")
        ]
        assert {int(counter) for counter in counters} == {fed.executor.clients[1].steps_per_round}


def test_whole_models_take_their_statistics_along(scenario):
    fed = federation("fedavg", scenario(TWINS), **{**TRAVEL, "federation.exchange": "models"})
    assert fed.config.heads_travel
    row = fed.round(0)
    first, second = (client.main.model.state_dict() for client in fed.executor.clients)
    assert all(torch.equal(first[name], second[name]) for name in first)
    counted = sum(value.numel() for name, value in first.items() if not name.endswith("num_batches_tracked"))
    assert row["bytes_up"] == 2 * 4 * counted
    layout = fed.facts[0].layouts["decoder"]
    owners, tensors = layout.owners, layout.tensors
    assert len(owners) == 1 and len({t.name for t in tensors}) == len(tensors)
    assert all(a.stop == b.start for a, b in pairwise(tensors)) and tensors[0].start == 0
    layers = {t.layer for t in tensors if t.statistic}
    assert {"decoder.depth.aspp", "decoder.edge.conv"} <= layers <= {t.layer for t in tensors if not t.statistic}


def test_a_row_says_which_of_its_tensors_are_statistics(scenario_file):
    home, travel = (federation("matfl", scenario_file, **options).executor.clients[0] for options in ({}, TRAVEL))
    parameters = home.facts().layouts["encoder"].tensors
    tensors = travel.facts().layouts["encoder"].tensors
    assert tensors[: len(parameters)] == parameters and not any(t.statistic for t in parameters)
    added = tensors[len(parameters) :]
    assert added and all(t.statistic and t.name.endswith(("running_mean", "running_var")) for t in added)
    (row,) = travel.read(("encoder",))["encoder"]
    buffers = dict(travel.main.model.encoder.named_buffers())
    for t in added:
        assert torch.equal(row[t.start : t.stop], buffers[t.name])
    assert voting_tensors(tensors) == voting_tensors(parameters)
    assert voting_tensors(added) == []


@pytest.mark.parametrize("algo", ["fedprox", "ditto", "fedamp", "fedmtl"])
def test_local_objectives_see_parameters_only(scenario_file, algo):
    """Anchors, sizes and gradients are those of the parameters, however far the statistics are from what was sent."""
    fed = federation(algo, scenario_file, **TRAVEL)
    fed.round(0)
    client = fed.executor.clients[1]
    client.track = "personal" if algo == "ditto" else "main"
    track = client.tracks[client.track]
    with torch.no_grad():
        for name, buffer in track.model.named_buffers():
            if name.endswith("running_mean"):
                buffer += 100
    assert set(client.anchored) == {"encoder", "decoder"}
    for kind in client.anchored:
        mine, anchor = torch.cat(track.flat.rows(kind)), torch.cat(client.anchor[kind])
        assert client.size(kind) == len(mine) == len(anchor)
        torch.testing.assert_close(client.squared_distance(kind).detach(), (mine - anchor).square().sum())
        torch.testing.assert_close(client.squared_norm(kind).detach(), mine.square().sum())


# The encoders of these stay home, or they part tasks that no client has together here.
WITHOUT = {"local", "lg_fedavg", "mas"}


@pytest.mark.parametrize("algo", sorted(set(ALGORITHMS) - WITHOUT))
def test_every_method_takes_them_along(scenario_file, algo):
    fed = federation(algo, scenario_file, **TRAVEL)
    before = [[v.clone() for v in statistics(client, "encoder")] for client in fed.executor.clients]
    seen = []
    aggregate = fed.algorithm.aggregate
    fed.algorithm.aggregate = noting(lambda rnd: rnd.encoder, seen, aggregate)
    row = fed.round(0)
    assert any(t.statistic for t in seen[0].tensors)
    for start, trained, (old,), client in zip(seen[0].before, seen[0].after, before, fed.executor.clients):
        size = client.main.flat.counts()["encoder"]
        assert torch.equal(start[size:].sort().values, old.sort().values)
        now = statistics(client, "encoder")[0]
        assert torch.isfinite(now).all()
        if not fed.algorithm.installs:  # an anchor has no statistics: they are sent and stay as they are
            assert torch.equal(now.sort().values, trained[size:].sort().values)
    assert all(entry["up"]["encoder"] > 0 for entry in row["ledger"].values())


def test_no_variance_becomes_negative(scenario_file):
    fed = federation("pcgrad", scenario_file, **TRAVEL)
    fed.algorithm.aggregate = lambda rnd: {"encoder": torch.full_like(rnd.encoder.after, -2.0)}
    fed.round(0)
    for client in fed.executor.clients:
        for name, buffer in client.main.model.encoder.named_buffers():
            if name.endswith("running_var"):
                assert (buffer == 0).all()
            elif name.endswith("running_mean"):
                assert (buffer == -2).all()
        assert all((row == -2).all() for row in client.main.flat.rows("encoder"))


def test_a_returning_client_gets_the_common_statistics(scenario):
    fed = federation("fedavg", scenario(THREE), **TRAVEL, **{"federation.participation": 0.67})
    starts, returned = [], set()
    aggregate = fed.algorithm.aggregate
    fed.algorithm.aggregate = noting(lambda rnd: rnd.encoder, starts, aggregate)
    for index in range(4):
        present, behind = fed.present(index), set(fed.behind)
        common = {kind: row.clone() for kind, row in fed.common.items()}
        row = fed.round(index)
        for i in behind.intersection(present):
            returned.add(i)
            assert torch.equal(starts[-1].before[present.index(i)], common["encoder"])
            sent = row["ledger"][fed.parties[i].id]["down"]
            assert sent == {kind: 2 * 4 * len(values) for kind, values in common.items()}
    assert returned


@pytest.mark.parametrize("algo", ["fedavg", "fedhca2", "fedmtl"])
def test_stopped_and_resumed_equals_uninterrupted(tiny_run, scenario, tmp_path, algo):
    given = {**SMALL, **TRAVEL, "rounds": 3, "scenario": scenario(THREE), "federation.participation": 0.67}
    resumed, whole = cut_and_whole(partial(tiny_run, algo, **given), tmp_path)
    assert numbers_of(resumed) == numbers_of(whole)
    assert whole.summary["setting_text"]["statistics"] == "travel"


@pytest.mark.usefixtures("checkpoints_stay")
def test_a_stored_run_answers_with_the_statistics_it_was_scored_with(tiny_run):
    """The running statistics that came from the server are in the checkpoint."""
    result = tiny_run("fedavg", rounds=1, **{**SMALL, **TRAVEL})
    run = StoredRun(result.folder)
    run.open(None, torch.device("cpu"), Listener())
    said = {}
    for party in run.parties:
        task = party.tasks[0]
        said[party.id] = [p.values[task] for p in run.predictions(party, "global", [task], [0, 1])]
    assert all(len(values) == 2 for values in said.values())
    federation_again = Federation(ClientFactory(run.config, "cpu", None, run.data))
    federation_again.round(0)
    for party, client in zip(run.parties, federation_again.executor.clients):
        stored = Checkpoint(result.folder / "checkpoint", 1).read(f"client-{party.index:03d}")["main"]["buffers"]
        mine = client.main.buffers()
        assert all(torch.equal(stored[name], mine[name]) for name in mine)
