"""Methods with a server step of their own in the engine: what stays home, who comes back, what is not exchanged."""

from __future__ import annotations

import pytest
import torch
from kit import SMALLER, TINY, TRIO, make_federation, rows_of

RESNET = {"model.architecture": "matfl", "model.backbone": "resnet_nano"}  # batch norms in encoder and decoders
SWIN = {}  # layer norms in the encoder, batch norms in decoders


@pytest.fixture
def federation(tmp_path):
    (tmp_path / "trio.yml").write_text(TRIO)

    def make(algo, **given):
        return make_federation(algo, str(tmp_path / "trio.yml"), **{**TINY, **SMALLER, **given})

    return make


def home_of(fed, kind):
    return fed.algorithm.kept_home(kind, fed.facts[0].layouts[kind].tensors)


@pytest.mark.parametrize("statistics", ["home", "travel"])
def test_fedbn_leaves_norms_and_their_statistics_at_home(federation, statistics):
    fed = federation("fedbn", **RESNET, **{"federation.rounds": 1, "federation.statistics": statistics})
    sent = {}
    aggregate = fed.algorithm.aggregate
    fed.algorithm.aggregate = lambda rnd: (sent.update(encoder=rnd.encoder.after.clone()), aggregate(rnd))[1]
    row = fed.round(0)
    encoders = torch.stack([client.main.flat.read("encoder")[0] for client in fed.executor.clients])
    home = torch.zeros(encoders.shape[1], dtype=torch.bool)
    for t in home_of(fed, "encoder"):
        home[t.start : t.stop] = True
    assert 0 < home.sum() < len(home) / 2
    assert torch.equal(encoders[:, home], sent["encoder"][:, home])
    assert not torch.equal(encoders[0, home], encoders[1, home])
    assert (encoders[:, ~home] == encoders[0, ~home]).all()
    assert row["ledger"]["one"]["up"]["encoder"] == row["ledger"]["one"]["down"]["encoder"] == 4 * int((~home).sum())
    if statistics == "travel":  # they lie in the rows, but nobody is billed for them
        assert any(t.statistic for t in home_of(fed, "encoder"))


@pytest.mark.parametrize("network", [SWIN, RESNET], ids=["swin", "resnet"])
def test_who_comes_back_to_fedbn_gets_what_is_common_and_keeps_its_norms(federation, network):
    fed = federation("fedbn", **network, **{"federation.rounds": 6, "federation.participation": 0.67})
    starts, returned = [], 0
    aggregate = fed.algorithm.aggregate
    fed.algorithm.aggregate = lambda rnd: (starts.append(rnd.decoder.before.clone()), aggregate(rnd))[1]
    home = torch.zeros(fed.facts[0].layouts["decoder"].tensors[-1].stop, dtype=torch.bool)
    for t in home_of(fed, "decoder"):
        home[t.start : t.stop] = True
    assert 0 < home.sum() < len(home)
    for index in range(6):
        present, behind = fed.present(index), set(fed.behind)
        held = torch.cat([torch.stack(fed.executor.clients[i].main.flat.read("decoder")) for i in present])
        row = fed.round(index)
        assert torch.equal(starts[-1][:, home], held[:, home])
        assert (starts[-1][:, ~home] == starts[-1][0, ~home]).all()
        returning = behind.intersection(present)
        returned += len(returning)
        assert (row["bytes_down"] > row["bytes_up"]) is bool(returning)
    assert returned


def test_steps_of_unequal_clients_reach_fednova(federation):
    """Each has one batch; one dataset has more epochs, or as many as the other."""
    for epochs in (3, 1):
        fed = federation("fednova", **{"federation.rounds": 1, "train.local_epochs.nyud": epochs})
        row = fed.round(0)
        assert row["algorithm"]["local_steps"] == {"four": epochs, "one": 1, "two": 1}
        assert bool(fed.algorithm.notes()) is (epochs == 1)


def test_colnet_scores_its_clients_after_local_training(trio_run):
    result = trio_run("colnet", rounds=3)
    rows = rows_of(result)
    assert [row["bytes_up"] > 0 for row in rows] == [True, True, False]
    assert rows[0]["algorithm"]["groups"] == {"four": 0, "one": 1, "two": 2}


def test_lg_fedavg_warms_up_with_encoders(trio_run):
    result = trio_run("lg_fedavg", rounds=2, **{"algo.warmup_rounds": 1})
    encoders = 4 * sum(client["parameters"]["encoder"] for client in result.summary["clients"])
    first, second = rows_of(result)
    assert first["bytes_up"] - second["bytes_up"] == encoders


@pytest.mark.parametrize("algo", ["fedavgm", "fedadam", "fedyogi", "fednova", "emr", "fedbone"])
def test_running_statistics_may_travel(federation, algo):
    given = {"federation.rounds": 2, "federation.statistics": "travel"}
    fed = federation(algo, **RESNET, **given)
    for index in range(2):
        fed.round(index)
    buffers = [dict(client.main.model.encoder.named_buffers()) for client in fed.executor.clients]
    means = [name for name in buffers[0] if name.endswith("running_mean")]
    assert means
    for name in means:
        assert torch.allclose(buffers[0][name], buffers[1][name], atol=1e-6)
