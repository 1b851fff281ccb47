"""Every regulariser: the gradient the optimiser sees is the analytic one, and coefficient 0 is no regulariser."""

from __future__ import annotations

import math

import pytest
import torch
from toys import FakeLocal, aggregate, make, make_parties, make_round, of

from fmtlbench.algorithms.fedmtl import default_rho

PARTIES = make_parties([("depth", "edge"), ("semseg",), ("edge",)])


def local(track="main", kinds=("encoder", "decoder"), seed=0):
    g = torch.Generator().manual_seed(seed)
    random = lambda n: torch.randn(n, generator=g, dtype=torch.float64)
    live = {"encoder": [random(7)], "decoder": [random(4), random(4)]}
    for values in live.values():
        for value in values:
            value.requires_grad_()
    return FakeLocal(live, {kind: [random(len(v)) for v in live[kind]] for kind in kinds}, track)


def check_pull(method, client, strength):
    """The objective is strength/2 · ‖θ − anchor‖², so its gradient is strength · (θ − anchor)."""
    value = method.local_objective(client)
    distance = sum(client.squared_distance(kind) for kind in client.anchored)
    assert value.item() == pytest.approx(strength / 2 * distance.item(), rel=1e-12)
    value.backward()
    for kind, live in client.live.items():
        for k, parameter in enumerate(live):
            if kind in client.anchor:
                expected = strength * (parameter.detach() - client.anchor[kind][k])
                torch.testing.assert_close(parameter.grad, expected)
            else:
                assert parameter.grad is None


@pytest.mark.parametrize("kinds", [("encoder",), ("encoder", "decoder")])
def test_fedprox_pulls_towards_the_received_model(kinds):
    check_pull(make("fedprox", PARTIES, mu=0.3), local(kinds=kinds), 0.3)
    check_pull(make("fedprox", PARTIES), local(kinds=kinds), 0.01)


@pytest.mark.parametrize("kinds", [("encoder",), ("encoder", "decoder")])
def test_ditto_pulls_the_personal_track_only(kinds):
    method = make("ditto", PARTIES, lam=0.7)
    check_pull(method, local("personal", kinds), 0.7)
    check_pull(make("ditto", PARTIES), local("personal", kinds), 0.1)
    assert method.local_objective(local("main", kinds)) is None


@pytest.mark.parametrize("lam, alpha", [(1.0, 1.0), (0.5, 4.0)])
def test_fedamp_pulls_towards_the_cloud_model(lam, alpha):
    check_pull(make("fedamp", PARTIES, lam=lam, alpha=alpha), local(), lam / alpha)


def test_fedmtl_before_the_first_reply_is_the_norm_alone():
    one = local("main", kinds=())
    got = make("fedmtl", PARTIES, rho=0.5).local_objective(one)
    assert got.item() == pytest.approx(0.5 * sum(one.squared_norm(k).item() for k in ("encoder", "decoder")))


@pytest.mark.parametrize("name", ["fedprox", "ditto", "fedamp"])
def test_without_an_anchor_there_is_no_term(name):
    assert make(name, PARTIES).local_objective(local("personal", kinds=())) is None


@pytest.mark.parametrize("name, option", [("fedprox", "mu"), ("ditto", "lam"), ("fedamp", "lam"), ("fedmtl", "rho")])
def test_coefficient_zero_is_the_unregularised_method(name, option):
    method = make(name, PARTIES, **{option: 0.0})
    for track in ("main", "personal"):
        assert method.local_objective(local(track)) is None
    plain = make("fedavg" if method.installs else "local", PARTIES)
    assert method.local_schedule(3) == plain.local_schedule(3)
    if method.installs:  # nothing else tells it from FedAvg on the track that travels
        rnd = make_round(PARTIES)
        assert method.shared(0) == plain.shared(0)
        new, expected = method.aggregate(of(rnd, method)), plain.aggregate(of(rnd, plain))
        assert all(torch.equal(new[kind], expected[kind]) for kind in expected)
    else:  # nothing is installed and nothing is added: local training
        assert type(method).tracks == type(plain).tracks


@pytest.mark.parametrize("rho", [0.25, None])
def test_fedmtl_is_the_gradient_of_the_whole_matrix(rho):
    """ρ(‖W‖² + tr(W Ω Wᵀ)) with Ω = (I − 11ᵀ/R)², differentiated with all of W at hand, in the client's columns."""
    rnd = make_round(PARTIES)
    method = make("fedmtl", PARTIES, rho=rho)
    sent = method.aggregate(of(rnd, method))
    used = default_rho(rnd.encoder.after.shape[1] + 2 * rnd.decoder.after.shape[1]) if rho is None else rho
    expected = {}
    for kind in ("encoder", "decoder"):
        w = getattr(rnd, kind).after.double().T.clone().requires_grad_()  # [d, R]
        count = w.shape[1]
        centring = torch.eye(count, dtype=w.dtype) - 1 / count
        (used * (w.square().sum() + torch.trace(w @ (centring @ centring) @ w.T))).backward()
        expected[kind] = w.grad.T
    own = {"encoder": [0], "decoder": [0, 1]}  # the first client's rows: one encoder, two decoders
    live = {k: [getattr(rnd, k).after[r].double().requires_grad_() for r in rows] for k, rows in own.items()}
    client = FakeLocal(live, {k: [sent[k][r].double() for r in rows] for k, rows in own.items()})
    method.local_objective(client).backward()
    for kind, rows in own.items():
        for parameter, r in zip(live[kind], rows):
            torch.testing.assert_close(parameter.grad, expected[kind][r], rtol=1e-4, atol=1e-6 * used)


def test_fedmtl_away_from_the_synchronised_point():
    """Moving its own encoder, with the others' fixed: the value changes as the full regulariser's does."""
    rnd = make_round(PARTIES)
    method = make("fedmtl", PARTIES, rho=1.0, shared="encoder")
    anchor = method.aggregate(of(rnd, method))["encoder"][1].double()
    others = rnd.encoder.after.double()

    def full(theta):
        w = others.clone()
        w[1] = theta
        return w.square().sum() + (w - w.mean(0)).square().sum()

    def ours(theta):
        return method.local_objective(FakeLocal({"encoder": [theta]}, {"encoder": [anchor]}))

    a, b = torch.randn(2, others.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert (ours(a) - ours(b)).item() == pytest.approx((full(a) - full(b)).item(), rel=1e-5)


def test_default_rho_follows_the_number_of_shared_parameters():
    for size in (1, 9, 10, 999, 1000, 27_519_354):
        assert default_rho(size) == pytest.approx(10 ** -(math.floor(math.log10(size)) + 2))
    assert default_rho(37_390_000) == pytest.approx(1e-9)


def test_fedamp_says_when_attention_has_vanished():
    near, far = (make_round(PARTIES, step=0.01, alike=True), make_round(PARTIES, step=50.0))
    method = make("fedamp", PARTIES)
    assert method.notes() == []
    method.aggregate(of(near, method))
    assert method.notes() == [] and method.diagnostics()["strongest_attention"]["encoder"] > 0.5
    new = method.aggregate(of(far, method))
    assert len(method.notes()) == 2
    torch.testing.assert_close(new["encoder"], far.encoder.after)
    alone = make_parties([("depth",)])
    method = make("fedamp", alone)
    method.aggregate(of(make_round(alone), method))
    assert method.notes() == []


def test_fedamp_attention_is_stable_for_near_models_far_from_zero():
    rnd = make_round(PARTIES, alike=True, step=0.0)
    rnd.encoder.before.add_(1000)
    rnd.encoder.after.copy_(rnd.encoder.before)
    rnd.encoder.after[0, 0] += 0.5
    method = make("fedamp", PARTIES, shared="encoder")
    method.aggregate(of(rnd, method))
    shift = (rnd.encoder.after[0, 0] - rnd.encoder.after[1, 0]).item()
    xi = method.attention["encoder"]
    assert xi[0, 1] == pytest.approx(math.exp(-(shift**2)), rel=1e-9)
    assert xi[1, 2] == pytest.approx(1.0, rel=1e-9)
    assert xi[1, 1] == pytest.approx(1 - xi[1, 0] - xi[1, 2])


def test_fedmtl_keeps_absent_clients_in_the_mean():
    """Partial participation: m is over everybody's last parameters, before and after a restart."""
    parties = make_parties([("depth",), ("edge", "semseg"), ("depth",), ("edge",)])
    method = make("fedmtl", parties)
    last = {"encoder": {}, "decoder": {}}
    now = make_round(parties, seed=1)
    for index, present in enumerate([(0, 1, 2), (1, 3), (0,), (0, 1, 2, 3), (2, 1)]):
        started = make_round(parties, seed=10 + index)
        kept = {}
        for kind in ("encoder", "decoder"):
            rows, fresh = getattr(now, kind), getattr(started, kind)
            keep = [k for k, owner in enumerate(rows.owners) if owner.client in present]
            # A client starts from what it had at the end of its last round.
            before = torch.stack([last[kind].get(rows.owners[k], rows.before[k]) for k in keep])
            after = before + 0.1 * fresh.after[keep]
            kept[kind] = type(rows)(tuple(rows.owners[k] for k in keep), before, after, rows.tensors)
            last[kind].update(zip(kept[kind].owners, after))
        new = method.aggregate(type(now)(index, parties, **kept))
        for kind, rows in kept.items():
            for owner, got in zip(rows.owners, new[kind]):
                others = [row for other, row in last[kind].items() if other != owner]
                torch.testing.assert_close(got, torch.stack(others).mean(0), rtol=1e-4, atol=1e-5)
        state = method.state_dict()
        method = make("fedmtl", parties)
        method.load_state_dict(state)
    assert aggregate("fedmtl", make_round(parties[:1], seed=3))["encoder"].shape[0] == 1


STRENGTH = {"fedprox": ("mu", 0.5), "ditto": ("lam", 0.5), "fedamp": ("lam", 0.5), "fedmtl": ("rho", 0.25)}


@pytest.mark.parametrize("name", sorted(STRENGTH))
def test_the_engines_client_gives_the_analytic_gradient(name, scenario_file):
    """The same on a real model, through what the engine's client offers: nothing is computed on detached copies."""
    from fmtlbench.config.method import Hooks
    from fmtlbench.config.resolve import resolve
    from fmtlbench.engine.client import Client
    from fmtlbench.exchange import Party

    option, strength = STRENGTH[name]
    config = resolve(name, scenario_file, overrides={"federation.rounds": 1})
    parties = [Party(0, "a", "pascal", ("human_parts",), 16), Party(1, "b", "nyud", ("depth", "edge"), 12)]
    kind = type(make(name, parties))
    method = Hooks(kind, kind.Params(**{option: strength}), parties)
    client = Client(config, parties[1], None, method, torch.device("cpu"))
    client.track = "personal" if name == "ditto" else "main"
    flat = client.tracks[client.track].flat
    g = torch.Generator().manual_seed(0)
    client.anchor = {
        kind: [row + 0.1 * torch.randn(row.shape, generator=g) for row in flat.rows(kind)]
        for kind in ("encoder", "decoder")
    }
    method.local_objective(client).backward()
    for kind, rows in (("encoder", 2), ("decoder", 3)):
        theta, anchor = (torch.cat(values) for values in (flat.rows(kind), client.anchor[kind]))
        if name == "fedmtl":
            expected = 2 * strength * (theta + (1 - 1 / rows) * (theta - anchor))
        else:
            expected = strength * (theta - anchor)
        got = torch.cat([parameter.grad.flatten() for parameter in flat.parameters_of((kind,))])
        torch.testing.assert_close(got, expected)
    assert all(parameter.grad is None for parameter in flat.parameters_of(("head",)))
