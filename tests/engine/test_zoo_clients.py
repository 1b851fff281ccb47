"""SCAFFOLD, FedDyn, APFL and pFedMe end to end: what clients keep for themselves, what travels."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from kit import TRIO, TWINS, rows_of
from resuming import cut_and_whole
from zoo import SOMETIMES, STRONG, federation_of, noted_rounds, values

from fmtlbench.exchange import Owner

METHODS = ["apfl", "feddyn", "pfedme", "scaffold"]
# SGD at a constant rate; `make_plain` takes its momentum away.
RATE = 0.05
PLAIN = {
    "train.optimizer": "sgd",
    "train.lr": RATE,
    "train.schedule": "exponential",
    "train.decay": 1.0,
    "train.warmup_epochs": 0,
    "data.train_samples": {"pascal": 16, "nyud": 8},  # two batches each
}


def make_plain(federation):
    for client in federation.executor.clients:
        for group in client.main.optimizer.param_groups:
            group.update(momentum=0.0, weight_decay=0.0)


# -- what travels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", ["all", "encoder"])
@pytest.mark.parametrize("algo", METHODS)
def test_bytes_equal_the_definition(trio_run, algo, shared):
    """Models as FedAvg's; SCAFFOLD's variates as much again, but that the first download has none."""
    result = trio_run(algo, **{"algo.shared": shared})
    kinds = ("encoder", "decoder") if shared == "all" else ("encoder",)
    once = 4 * sum(client["parameters"][kind] for client in result.summary["clients"] for kind in kinds)
    twice = 2 * once if algo == "scaffold" else once
    rows = rows_of(result)
    assert [(row["bytes_up"], row["bytes_down"]) for row in rows] == [(twice, once), (twice, twice)]
    for entry in rows[1]["ledger"].values():
        for direction in ("up", "down"):
            extra = entry[direction].pop("extra", 0)
            assert extra == (sum(entry[direction].values()) if algo == "scaffold" else 0)
    assert all(value is not None for value in values(result))


@pytest.mark.slow
@pytest.mark.parametrize("algo", METHODS)
def test_whole_models_that_are_parked_on_disk(trio_run, tmp_path, scenario, algo):
    """Decoders in one row with their heads; a parked client's memory comes back, and nothing of the server's goes."""
    given = {"scenario": scenario(TWINS), "rounds": 3, "federation.exchange": "models", **STRONG[algo]}
    plain = trio_run(algo, **given)
    run = partial(trio_run, algo, **given, **{"federation.park": "disk"})
    for parked in cut_and_whole(run, tmp_path):
        assert rows_of(parked) == rows_of(plain)
    assert plain.summary["bytes_up"] > 0


# -- on the client -----------------------------------------------------------------------------------------------------


def test_scaffold_variates_are_option_two_where_clients_run_plain_sgd(trio):
    """c_i⁺ = c_i − c + (b − a)/(Kη) from what the engine's clients did, and c is the mean over all of them."""
    federation = federation_of("scaffold", trio, **PLAIN, **SOMETIMES)
    make_plain(federation)
    seen = noted_rounds(federation)
    clients = federation.executor.clients
    own = {}
    server = {kind: torch.zeros(()) for kind in ("encoder", "decoder")}
    for index in range(3):
        federation.round(index)
        rnd = seen[-1]
        for kind in ("encoder", "decoder"):
            rows, news = getattr(rnd, kind), 0
            for owner, before, after in zip(rows.owners, rows.before, rows.after, strict=True):
                old = own.get(owner, torch.zeros(()))
                own[owner] = old - server[kind] + (before - after) / (rnd.steps[owner.client] * RATE)
                news = news + own[owner] - old
                place = 0 if kind == "encoder" else clients[owner.client].party.tasks.index(owner.task)
                kept = clients[owner.client].memory["variates"][kind][place]
                torch.testing.assert_close(kept, own[owner], rtol=1e-3, atol=2e-4)
            server[kind] = server[kind] + news / (3 if kind == "encoder" else 7)
            torch.testing.assert_close(
                federation.algorithm.state_dict()["variates"][kind], server[kind], rtol=1e-3, atol=2e-4
            )
    assert len(own) == 10 and all(set(client.memory) == {"variates"} for client in clients)


def test_scaffold_and_feddyn_terms_have_the_analytic_gradient(trio):
    """Through the engine's client: ⟨c − c_i, θ⟩ and α/2 ‖θ − w‖² − ⟨h_i, θ⟩ over what travels; heads have none."""
    for algo in ("scaffold", "feddyn"):
        federation = federation_of(algo, trio, **{"federation.rounds": 1, **STRONG[algo]})
        client = federation.executor.clients[0]
        flat, g = client.main.flat, torch.Generator().manual_seed(0)
        flat.watch_gradients(("encoder", "decoder", "head"))

        def noise(kind, flat=flat, g=g):
            return torch.stack([torch.randn(row.shape, generator=g) for row in flat.rows(kind)])

        kinds = ("encoder", "decoder")
        first, second = ({kind: noise(kind) for kind in kinds} for _ in range(2))
        if algo == "scaffold":
            client.received, client.memory = first, {"variates": second}
            expected = {kind: first[kind] - second[kind] for kind in kinds}
        else:
            client.anchor, client.memory = {kind: list(first[kind]) for kind in kinds}, {"duals": second}
            expected = {kind: 0.5 * (torch.stack(flat.rows(kind)) - first[kind]) - second[kind] for kind in kinds}
        client.algorithm.local_objective(client).backward()
        for kind in kinds:
            got = torch.stack([flat.gradient[place] for place in flat.places(kind)])
            torch.testing.assert_close(got, expected[kind], rtol=1e-4, atol=1e-5)
        assert all(not flat.gradient[place].any() for place in flat.places("head"))


def test_feddyn_duals_follow_the_drift(trio):
    federation = federation_of("feddyn", trio, **{**SOMETIMES, "algo.alpha": 0.5})
    seen = noted_rounds(federation)
    drift = {}
    for index in range(3):
        federation.round(index)
        for kind in ("encoder", "decoder"):
            rows = getattr(seen[-1], kind)
            for owner, delta in zip(rows.owners, rows.delta, strict=True):
                drift[owner] = drift.get(owner, 0) + delta
    for client in federation.executor.clients:
        for kind, kept in client.memory["duals"].items():
            tasks = (None,) if kind == "encoder" else client.party.tasks
            mine = [drift[Owner(client.party.index, task)] for task in tasks]
            torch.testing.assert_close(kept, -0.5 * torch.stack(mine), rtol=1e-4, atol=1e-6)
            assert kept.any()
        assert set(client.memory) == {"duals"}


TASK_BY_TASK = {
    "model.architecture": "tc",
    "model.options.task_steps": "sequential",
    "data.size": {"pascal": [32, 64], "nyud": [32, 64]},  # instance norm needs two positions
}


@pytest.mark.parametrize("network", [{}, TASK_BY_TASK], ids=["joint", "sequential"])
def test_pfedme_follows_once_a_batch(trio, network):
    """ηλ = 1 brings w_i to θ at the end of every batch, however many steps the network takes on it."""
    reach = {"algo.lam": 4.0, "algo.eta": 0.25, "algo.inner_steps": 2}
    federation = federation_of("pfedme", trio, **{**reach, **network})
    start = [client.main.flat.vector.clone() for client in federation.executor.clients]
    trained = federation.train(0)
    for client, first, report in zip(federation.executor.clients, start, trained.reports):
        assert torch.equal(client.main.flat.vector, client.tracks["personal"].flat.vector)
        assert not torch.equal(client.main.flat.vector, first) and client.memory == {}
        assert report.steps == client.steps_per_round  # one track of the two is trained
    moved = []
    half = federation_of("pfedme", trio, **{**reach, **network, "algo.eta": 0.125})
    client = half.executor.clients[0]
    first, hook = client.main.flat.vector.clone(), type(half.algorithm._method).before_step

    def note(method, local):
        hook(method, local)
        if local is client and (not moved or not torch.equal(moved[-1], local.vector("main"))):
            moved.append(local.vector("main").clone())

    client.algorithm._method.before_step = partial(note, client.algorithm._method)
    half.train(0)
    batches = client.steps_per_round // (2 * len(client.steps))
    assert len(moved) == batches > 1 and torch.equal(moved[0], first)


def test_apfl_alpha_is_each_clients_own_and_scoring_leaves_no_trace(trio):
    federation = federation_of("apfl", trio, **STRONG["apfl"])
    for index in range(2):
        federation.round(index)
    clients = federation.executor.clients
    alphas = [client.memory["alpha"] for client in clients]
    assert len(set(alphas)) == 3 and 0.5 not in alphas and all(0 <= alpha <= 1 for alpha in alphas)
    for client, alpha in zip(clients, alphas):
        v, w = client.tracks["personal"].flat.vector.clone(), client.main.flat.vector.clone()
        with client.scored_model(1):
            scored = client.tracks["personal"].flat.vector.clone()
        torch.testing.assert_close(scored, alpha * v + (1 - alpha) * w)
        assert torch.equal(client.tracks["personal"].flat.vector, v) and torch.equal(client.main.flat.vector, w)
        assert not torch.equal(scored, v) and not torch.equal(scored, w)


# -- reductions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algo, given, like",
    [
        ("feddyn", {"algo.alpha": 0.0}, "fedavg"),
        ("apfl", {"algo.alpha": 0.0, "algo.adaptive": False}, "fedavg"),
        ("apfl", {"algo.alpha": 1.0, "algo.adaptive": False}, "local"),
    ],
)
def test_neutral_options_give_the_simpler_method(trio_run, algo, given, like):
    mine, plain = trio_run(algo, **given), trio_run(like)
    assert values(mine) == values(plain)
    assert [row["losses"] for row in rows_of(mine)] == [row["losses"] for row in rows_of(plain)]


@pytest.mark.parametrize("algo", METHODS)
def test_a_methods_own_part_changes_training(trio_run, algo):
    """From the second round on at the latest; SCAFFOLD's first is FedAvg's, since nothing is known yet."""
    mine, plain = rows_of(trio_run(algo)), rows_of(trio_run("fedavg"))
    assert mine[1]["losses"] != plain[1]["losses"]
    if algo == "scaffold":
        assert mine[0]["losses"] == plain[0]["losses"]


def test_running_statistics_that_travel_are_averaged_plainly(scenario):
    """Variates and corrections are of parameters; a row's statistics behind them are everybody's mean."""
    given = {
        "model.architecture": "matfl",
        "model.backbone": "resnet_nano",
        "federation.statistics": "travel",
        "train.local_epochs.nyud": 1,
    }
    for algo in METHODS:
        federation = federation_of(algo, scenario(TRIO), **given, **STRONG[algo])
        seen, aggregate = [], federation.algorithm.aggregate

        def note(rnd, seen=seen, aggregate=aggregate):
            seen.append((rnd, aggregate(rnd)))
            return seen[-1][1]

        federation.algorithm.aggregate = note
        for index in range(2):
            federation.round(index)
            rnd, new = seen[-1]
            for kind in ("encoder", "decoder"):
                rows = getattr(rnd, kind)
                start = next(t.start for t in rows.tensors if t.statistic)
                torch.testing.assert_close(
                    new[kind][:, start:], rows.after[:, start:].mean(0).expand_as(new[kind][:, start:])
                )
                for vectors in federation.algorithm.state_dict().values():
                    assert vectors[kind].shape[-1] == start
