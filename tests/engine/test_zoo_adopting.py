"""FedALA, FedFomo, IFCA and FedAtlas end to end: what clients look at, what travels."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from kit import TWINS, rows_of
from resuming import cut_and_whole
from zoo import SOMETIMES, STRONG, federation_of, noted_rounds, values

from fmtlbench.algorithms.ifca import add_noise
from fmtlbench.engine.losses import task_loss

METHODS = ["fedala", "fedatlas", "fedfomo", "ifca"]
CHANNELS = 192  # of the deepest map of the encoder that TINY names


@pytest.fixture
def trio_run(trio_run):
    """Three rounds: in the first there is nothing to adopt."""
    return partial(trio_run, rounds=3)


def strong_federation(algo, scenario, **overrides):
    return federation_of(algo, scenario, **{**STRONG[algo], **overrides})


def sizes_of(result):
    """Bytes of everybody's encoders and decoders."""
    clients = result.summary["clients"]
    return {kind: 4 * sum(client["parameters"][kind] for client in clients) for kind in ("encoder", "decoder")}


# -- what travels ------------------------------------------------------------------------------------------------------


def test_fedalas_bytes_are_fedavgs(trio_run):
    for shared, kinds in (("encoder", ("encoder",)), ("all", ("encoder", "decoder"))):
        result = trio_run("fedala", **{"algo.shared": shared})
        once = sum(sizes_of(result)[kind] for kind in kinds)
        assert [(row["bytes_up"], row["bytes_down"]) for row in rows_of(result)] == [(once, once)] * 3
        assert all(value is not None for value in values(result))


@pytest.mark.parametrize("models, others", [(1, 0), (2, 1), (5, 2)])
def test_fedfomo_gets_the_models_of_others_from_the_second_round_on(trio_run, models, others):
    result = trio_run("fedfomo", **{"algo.models": models})
    once, (first, *later) = sizes_of(result)["encoder"], rows_of(result)
    assert (first["bytes_up"], first["bytes_down"]) == (once, 0)
    weights = 4 * 3 * (others + 1) if others else 0  # a number per model, the client's own included
    assert [(row["bytes_up"], row["bytes_down"]) for row in later] == [(once + weights, others * once)] * 2
    assert all(value is not None for value in values(result))


def test_ifca_gets_the_mean_of_its_cluster_and_then_the_other_encoders(trio_run):
    result = trio_run("ifca", **{"algo.k": 3})
    once, rows = sizes_of(result)["encoder"], rows_of(result)
    # Noise is drawn, not sent; choices are a number each.
    expected = [(once, once), (once + 12, once), (once + 12, 3 * once)]
    assert [(row["bytes_up"], row["bytes_down"]) for row in rows] == expected
    assert [set(row["algorithm"]["groups"]) for row in rows] == [set(), *[{"four", "one", "two"}] * 2]
    assert all(value is not None for value in values(result))


def test_fedatlas_tells_a_feature_vector_per_task(trio_run):
    for shared, kinds in (("all", ("encoder", "decoder")), ("encoder", ("encoder",))):
        result = trio_run("fedatlas", **{"algo.shared": shared})
        once = sum(sizes_of(result)[kind] for kind in kinds)
        rows = rows_of(result)
        assert [(row["bytes_up"], row["bytes_down"]) for row in rows] == [(once + 4 * 7 * CHANNELS, once)] * 3
        extra = {name: entry["up"]["extra"] for name, entry in rows[0]["ledger"].items()}
        assert extra == {"four": 16 * CHANNELS, "one": 4 * CHANNELS, "two": 8 * CHANNELS}
        assert all(value is not None for value in values(result))


@pytest.mark.slow
@pytest.mark.parametrize("algo", METHODS)
def test_clients_that_are_parked_on_disk_forget_nothing(trio_run, tmp_path, scenario, algo):
    """Whole models, too: FedAtlas' and, if asked, FedALA's decoders are one row with their heads."""
    given = {"scenario": scenario(TWINS), "federation.exchange": "models"}
    if algo == "fedala":
        given["algo.shared"] = "all"
    plain = trio_run(algo, **given)
    run = partial(trio_run, algo, **given, **{"federation.park": "disk"})
    for parked in cut_and_whole(run, tmp_path):
        assert rows_of(parked) == rows_of(plain)
    assert plain.summary["bytes_up"] > 0


# -- on the client -----------------------------------------------------------------------------------------------------


def test_fedala_that_takes_over_all_of_the_mean_trains_as_fedavg(trio_run):
    """Its clients are scored after local training, so the losses are what can be compared."""
    plain = rows_of(trio_run("fedavg", **{"algo.shared": "encoder", **SOMETIMES}))
    taken = rows_of(trio_run("fedala", **{"algo.eta": 0.0, **SOMETIMES}))
    assert [row["losses"] for row in taken] == [row["losses"] for row in plain]
    learned = rows_of(trio_run("fedala", **SOMETIMES))
    assert learned[0]["losses"] == plain[0]["losses"] and learned[-1]["losses"] != plain[-1]["losses"]


def test_fedala_mixes_the_last_stage_and_remembers_how(trio):
    federation = strong_federation("fedala", trio)
    federation.round(0)
    client = federation.executor.clients[1]
    assert client.memory == {} and client.anchored == ("encoder",)
    own, common = client.main.flat.rows("encoder")[0].clone(), client.anchor["encoder"][0].clone()
    client.round = 1
    client._look("adopt")
    (weights,) = client.memory["weights"]["encoder"]
    mixed = client.main.flat.rows("encoder")[0]
    chosen = torch.zeros(len(own), dtype=torch.bool)
    for t in client.layout("encoder"):
        chosen[t.start : t.stop] = t.name.startswith(("body.layers_3.", "norms.3."))
    assert len(weights) == chosen.sum() and (weights < 1).any() and weights.min() >= 0
    assert torch.equal(mixed[~chosen], common[~chosen])
    own, common = own[chosen], common[chosen]
    torch.testing.assert_close(mixed[chosen], own + (common - own) * weights)


def test_fedfomo_keeps_images_out_of_training_and_scores_after_it(trio):
    federation = strong_federation("fedfomo", trio, **{"algo.validation": 0.5})
    sizes = [(len(client.trained_on), len(client.set_aside)) for client in federation.executor.clients]
    assert sizes == [(2, 2)] * 3
    for index in range(2):
        federation.round(index)
    method = federation.algorithm
    for client in federation.executor.clients:
        assert torch.equal(method.models[client.party.index], client.main.flat.rows("encoder")[0])
        assert set(client.memory) == {"weights", "start"} and len(client.memory["weights"]) == 2


def test_ifca_with_one_encoder_is_fedper(trio_run):
    for given in ({}, SOMETIMES):
        mine, plain = (trio_run(algo, **given, **more) for algo, more in (("ifca", {"algo.k": 1}), ("fedper", {})))
        assert [row["losses"] for row in rows_of(mine)] == [row["losses"] for row in rows_of(plain)]
        assert values(mine) == values(plain)


def test_ifca_clients_start_from_what_the_server_has(trio):
    federation = strong_federation("ifca", trio, **SOMETIMES)
    seen = noted_rounds(federation)
    method, layout = federation.algorithm, federation.executor.clients[0].layout("encoder")
    for index in range(4):
        encoders = [encoder.clone() for encoder in method.encoders]
        if method.start is not None:
            encoders = [add_noise(method.start, layout, 0.3, 0, number) for number in range(2)]
        federation.round(index)
        rows = seen[-1].encoder
        for owner, before in zip(rows.owners, rows.before) if index else ():
            assert torch.equal(before, encoders[int(seen[-1].measured[owner.client]["choice"])])


def test_fedatlas_features_are_gradients_at_the_deepest_map(trio):
    federation = strong_federation("fedatlas", trio, **{"algo.batches": 1})
    client = federation.executor.clients[2]
    told = client._look("measure")["features"]
    assert told.shape == (2, CHANNELS)
    torch.testing.assert_close(told.norm(dim=1), torch.ones(2))
    with client.looking("measure"):
        (batch,) = client.batches(count=1)
        maps = [m.detach() for m in client.main.model.encoder(batch["image"])]
        for row, task in zip(told, client.party.tasks):
            deepest = maps[-1].requires_grad_()
            raw = client.main.model.decode([*maps[:-1], deepest], task, tuple(batch["image"].shape[-2:]))
            (gradient,) = torch.autograd.grad(task_loss(client.specs[task], raw, batch[task]), deepest)
            mean = gradient.mean((0, 2, 3))
            torch.testing.assert_close(row, mean / mean.norm(), atol=1e-5, rtol=1e-3)


def test_fedatlas_with_compressed_uploads(trio_run):
    """What the public code calls SemCom."""
    semcom = {"federation.compression": "topk", "federation.compression_share": 0.1, "federation.compression_bits": 8}
    plain, compressed = trio_run("fedatlas"), trio_run("fedatlas", **semcom)
    assert compressed.summary["bytes_up"] < 0.2 * plain.summary["bytes_up"]
    assert compressed.summary["bytes_down"] == plain.summary["bytes_down"]
    assert all(value is not None for value in values(compressed))
