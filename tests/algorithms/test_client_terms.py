"""SCAFFOLD, FedDyn, APFL and pFedMe against their formulas, written out for quadratic losses and plain SGD."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fake_clients import QuadraticClient, QuadraticFederation
from toys import aggregate, make, make_parties, make_round, of, through_disk

from fmtlbench.exchange import Owner, Party, Round, Rows, TensorSlice

PARTIES = make_parties([("depth", "edge"), ("semseg",), ("edge", "normals", "depth")])
ATTENDANCE = [(0, 1, 2), (1,), (0, 2), (2, 1), (0, 1, 2), (0,)]
RATE = 0.1


def numbers(rows):
    return [row.detach().numpy().copy() for row in rows]


class Reference:
    """What server and clients hold, as the papers write it: a vector per part, a dict per client, nothing shared."""

    def __init__(self, federation, decoders="all"):
        self.clients = federation.clients
        self.all_decoders = decoders == "all"
        self.model = {}  # (client, kind, number) → parameters of the part
        for i, client in enumerate(self.clients):
            for kind, places in client.places.items():
                for k, place in enumerate(places):
                    self.model[i, kind, k] = client.vector("main")[place].numpy().copy()

    def group(self, part):
        """Return the group of a part that travels."""
        i, kind, k = part
        return kind if kind == "encoder" or self.all_decoders else self.clients[i].party.tasks[k]

    def travelling(self, present=None):
        return [p for p in self.model if p[1] != "head" and (present is None or p[0] in present)]

    def members(self, name, present=None):
        return [p for p in self.travelling(present) if self.group(p) == name]

    def gradient(self, part, x, batch, task_step=0):
        client = self.clients[part[0]]
        place = client.places[part[1]][part[2]]
        return client.curvature[place].numpy() * (x - client.targets[batch, task_step, place].numpy())

    @property
    def steps(self):
        return len(self.clients[0].targets)

    def assert_same_models(self, federation):
        for (i, kind, k), expected in self.model.items():
            np.testing.assert_allclose(federation.rows(kind, i)[k].numpy(), expected, rtol=1e-10, atol=1e-12)


def catch_up(reference, common, present):
    """Who was away starts from the common row, where there is one for all rows of a kind."""
    for part in reference.travelling(present):
        if part[1] in common:
            reference.model[part] = common[part[1]].copy()


# -- SCAFFOLD ----------------------------------------------------------------------------------------------------------


def run_scaffold(federation, attendance, decoders="all", server_lr=1.0, shares=None):
    """Option II of the paper, c_i⁺ = c_i − c + (b − a)/(Kη), for every part that travels."""
    ref = Reference(federation, decoders)
    parts = ref.travelling()
    own, server, common = {p: 0.0 for p in parts}, {ref.group(p): 0.0 for p in parts}, {}
    for present in attendance:
        catch_up(ref, common, present)
        before = {p: x.copy() for p, x in ref.model.items()}
        for part in [p for p in ref.model if p[0] in present]:
            x = ref.model[part]
            for batch in range(ref.steps):
                correction = server[ref.group(part)] - own[part] if part in own else 0.0
                x = x - RATE * (ref.gradient(part, x, batch) + correction)
            ref.model[part] = x
        after, news = dict(ref.model), dict.fromkeys(server, 0.0)
        for part in ref.travelling(present):
            new = own[part] - server[ref.group(part)] + (before[part] - after[part]) / (ref.steps * RATE)
            count = len(ref.members(ref.group(part)))
            news[ref.group(part)] = news[ref.group(part)] + (new - own[part]) / count
            own[part] = new
        for name in server:
            here = ref.members(name, present)
            if not here:
                continue
            server[name] = server[name] + news[name]
            start = np.mean([before[p] for p in here], axis=0)
            row = start + server_lr * np.mean([after[p] - before[p] for p in here], axis=0)
            for part in here:
                ref.model[part] = row
            if name in federation.method.common:
                common[name] = row
    return ref, own, server


@pytest.mark.parametrize("decoders", ["all", "task"])
@pytest.mark.parametrize("server_lr", [1.0, 0.7])
def test_scaffold_is_option_two_under_sgd_at_a_constant_rate(decoders, server_lr):
    """The mean of uncorrected gradients is what the paper's formula gives, over rounds that clients miss."""
    method = make("scaffold", PARTIES, decoders=decoders, server_lr=server_lr)
    federation = QuadraticFederation(method, rate=RATE)
    ref, own, server = run_scaffold(federation, ATTENDANCE, decoders, server_lr)
    federation.rounds(ATTENDANCE)
    ref.assert_same_models(federation)
    for (i, kind, k), expected in own.items():
        got = federation.clients[i].memory["variates"][kind][k].numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    known = method.state_dict()["variates"]
    assert set(known) == ({"encoder", "decoder"} if decoders == "all" else {"encoder", *DECODERS_BY_TASK})
    for name, expected in server.items():
        key = name if name in known else f"decoder/{name}"
        np.testing.assert_allclose(known[key].numpy(), expected, rtol=1e-9, atol=1e-12)


DECODERS_BY_TASK = {f"decoder/{task}" for task in ("depth", "edge", "semseg", "normals")}


def test_scaffold_server_variate_is_the_mean_of_the_clients():
    """c = Σ p_i c_i at every time, whoever came: by count, or by images."""
    for weighting in ("equal", "samples"):
        method = make("scaffold", PARTIES, weighting=weighting)
        federation = QuadraticFederation(method)
        weights = {p.index: p.samples if weighting == "samples" else 1 for p in PARTIES}
        for index, present in enumerate(ATTENDANCE):
            federation.round(index, present)
            for kind in ("encoder", "decoder"):
                total, expected = 0, 0
                for i, client in enumerate(federation.clients):
                    total += weights[i] * len(client.places[kind])
                    if "variates" in client.memory:
                        expected = expected + weights[i] * client.memory["variates"][kind].sum(0)
                torch.testing.assert_close(method.state_dict()["variates"][kind], expected / total)


def test_scaffold_without_variates_is_fedavg():
    """In the first round c = c_i = 0: nothing is sent beside rows, nothing is added, and the mean is plain."""
    one, other = (QuadraticFederation(make(name, PARTIES)) for name in ("scaffold", "fedavg"))
    assert one.method.local_objective(one.clients[0]) is None
    got, expected = one.round(0, (0, 1, 2)), other.round(0, (0, 1, 2))
    assert all(torch.equal(got[kind], expected[kind]) for kind in expected)
    assert one.parcels == [{0: {}, 1: {}, 2: {}}]
    # In the second they are known, and the two part.
    got, expected = one.round(1, (0, 1, 2)), other.round(1, (0, 1, 2))
    assert not torch.allclose(got["encoder"], expected["encoder"])


def test_scaffold_sends_as_much_again_as_the_model():
    federation = QuadraticFederation(make("scaffold", PARTIES))
    federation.rounds([(0, 1), (1, 2)])
    for client, (first, told) in {1: (0, 0), 2: (None, 1)}.items():
        sizes = {kind: sum(len(row) for row in federation.rows(kind, client)) for kind in ("encoder", "decoder")}
        assert {kind: t.numel() for kind, t in federation.parcels[1][client].items()} == sizes
        assert {kind: t.numel() for kind, t in federation.told[told][client].items()} == sizes
        if first is not None:
            assert federation.parcels[first][client] == {}


def test_scaffold_fills_up_groups_of_which_nobody_has_told():
    """Decoders by task: a client with a task that nobody had so far gets zeros for it."""
    method = make("scaffold", PARTIES, decoders="task")
    federation = QuadraticFederation(method)
    federation.round(0, (0,))  # depth and edge
    sent = method.parcel(2)["decoder"]  # of edge, normals, depth
    known = method.state_dict()["variates"]
    torch.testing.assert_close(sent, torch.stack([known["decoder/edge"], 0 * sent[0], known["decoder/depth"]]))
    assert "decoder" not in method.parcel(1)  # semseg alone


def test_scaffold_keeps_what_it_told_apart_from_its_memory():
    """A parked client's memory is emptied; what the server holds must not go with it."""
    federation = QuadraticFederation(make("scaffold", PARTIES))
    federation.rounds([(0, 1, 2), (0, 1, 2)])
    for told in federation.told:
        for i, by_kind in told.items():
            for kind, rows in by_kind.items():
                kept = federation.clients[i].memory["variates"][kind]
                assert rows.untyped_storage().data_ptr() != kept.untyped_storage().data_ptr()


def test_scaffold_diagnostics_and_encoders_alone():
    method = make("scaffold", PARTIES, shared="encoder")
    federation = QuadraticFederation(method)
    assert method.diagnostics() == {"variate_norm": {}}
    federation.rounds(ATTENDANCE[:2])
    norm = method.state_dict()["variates"]["encoder"].norm().item()
    assert method.diagnostics() == {"variate_norm": {"encoder": pytest.approx(norm)}}
    assert set(federation.clients[0].memory["variates"]) == {"encoder"}


# -- FedDyn ------------------------------------------------------------------------------------------------------------


def run_feddyn(federation, attendance, alpha, decoders="all"):
    """The paper's loop, with h and h_i as it has them."""
    ref = Reference(federation, decoders)
    parts = ref.travelling()
    own, server, common = {p: 0.0 for p in parts}, {ref.group(p): 0.0 for p in parts}, {}
    for present in attendance:
        catch_up(ref, common, present)
        before = {p: x.copy() for p, x in ref.model.items()}
        for part in [p for p in ref.model if p[0] in present]:
            x, w = ref.model[part], before[part]
            for batch in range(ref.steps):
                extra = alpha * (x - w) - own[part] if part in own else 0.0
                x = x - RATE * (ref.gradient(part, x, batch) + extra)
            ref.model[part] = x
            if part in own:
                own[part] = own[part] - alpha * (x - w)
        for name in server:
            here = ref.members(name, present)
            if not here:
                continue
            drift = sum(ref.model[p] - before[p] for p in here)
            server[name] = server[name] - alpha / len(ref.members(name)) * drift
            row = np.mean([ref.model[p] for p in here], axis=0) - server[name] / alpha
            for part in here:
                ref.model[part] = row
            if name in federation.method.common:
                common[name] = row
    return ref, own, server


@pytest.mark.parametrize("decoders", ["all", "task"])
@pytest.mark.parametrize("alpha", [0.01, 0.5])
def test_feddyn_is_the_papers_loop(decoders, alpha):
    method = make("feddyn", PARTIES, decoders=decoders, alpha=alpha)
    federation = QuadraticFederation(method, rate=RATE)
    ref, own, server = run_feddyn(federation, ATTENDANCE, alpha, decoders)
    federation.rounds(ATTENDANCE)
    ref.assert_same_models(federation)
    for (i, kind, k), expected in own.items():
        np.testing.assert_allclose(federation.clients[i].memory["duals"][kind][k].numpy(), expected, atol=1e-12)
    known = method.state_dict()["drifts"]  # −h/α
    for name, expected in server.items():
        key = name if name in known else f"decoder/{name}"
        np.testing.assert_allclose(-alpha * known[key][0].numpy(), expected, rtol=1e-9, atol=1e-12)
    assert all(sent == {} for by_client in (*federation.parcels, *federation.told) for sent in by_client.values())


def test_feddyn_gradient_of_its_term():
    """α(θ − w) − h_i over what travels; heads have none."""
    method = make("feddyn", PARTIES, alpha=0.3)
    federation = QuadraticFederation(method)
    federation.rounds(ATTENDANCE[:3])
    client = federation.clients[0]
    client.track = "main"
    for kind in ("encoder", "decoder"):
        found = client.row_gradients(method.local_objective(client), kind)
        for k, (got, theta, anchor) in enumerate(zip(found, client.rows(kind), client.anchor[kind], strict=True)):
            torch.testing.assert_close(got, 0.3 * (theta - anchor) - client.memory["duals"][kind][k])
            assert got.abs().max() > 0
    assert all(not got.any() for got in client.row_gradients(method.local_objective(client), "head"))


def test_feddyn_with_alpha_zero_is_fedavg():
    one = QuadraticFederation(make("feddyn", PARTIES, alpha=0.0))
    other = QuadraticFederation(make("fedavg", PARTIES))
    got, expected = one.rounds(ATTENDANCE), other.rounds(ATTENDANCE)
    assert all(torch.equal(got[kind], expected[kind]) for kind in expected)
    assert all(client.memory == {} for client in one.clients)
    assert one.method.state_dict() == {"drifts": {}}


def test_feddyn_with_a_small_alpha_trains_as_fedavg_but_its_server_does_not():
    """α cancels in h/α: the first step of a full round is twice the mean update, whatever α is."""
    for alpha in (1e-3, 1e-9):
        rnd = make_round(PARTIES, alike=True)
        new = aggregate("feddyn", rnd, alpha=alpha)
        for kind in ("encoder", "decoder"):
            rows = getattr(rnd, kind)
            torch.testing.assert_close(new[kind][0], rows.before[0] + 2 * rows.delta.mean(0))
    one = QuadraticFederation(make("feddyn", PARTIES, alpha=1e-9))
    other = QuadraticFederation(make("fedavg", PARTIES))
    for federation in (one, other):
        federation.clients[0].take_part(0)
    torch.testing.assert_close(one.clients[0].vector("main"), other.clients[0].vector("main"), atol=1e-8, rtol=0)


def test_feddyn_leaves_running_statistics_at_their_mean():
    """Extrapolated variances would be none: what lies behind the parameters is averaged plainly."""
    tensors = (TensorSlice("a.weight", "a", 0, 4), TensorSlice("a.running_var", "a", 4, 6, statistic=True))
    g = torch.Generator().manual_seed(0)
    before = torch.ones(3, 6)
    after = before + torch.rand(3, 6, generator=g)
    rnd = Round(0, PARTIES, encoder=Rows(tuple(map(Owner, range(3))), before, after, tensors))
    for name, options, factor in (
        ("feddyn", {}, 2.0),
        ("scaffold", {"server_lr": 1.7}, 1.7),
        ("pfedme", {"beta": 1.7}, 1.7),
    ):
        method = make(name, PARTIES, shared="encoder", **options)
        (row, *_) = method.aggregate(rnd)["encoder"]
        mean = after.mean(0)
        torch.testing.assert_close(row[4:], mean[4:])
        torch.testing.assert_close(row[:4], 1 + factor * (mean[:4] - 1))
    assert method.aggregate(rnd)["encoder"].shape == after.shape


def test_feddyn_by_images_is_the_same_loop_with_their_shares():
    """Two clients with 10 and 20 images: h − αΣp(a − w) and Σpa, and with one absent its share is not in h."""
    parties = make_parties([("depth",), ("depth",)])
    method = make("feddyn", parties, weighting="samples", alpha=0.2, shared="encoder")
    rnd = make_round(parties, alike=True)
    rows = rnd.encoder
    new = method.aggregate(of(rnd, method))["encoder"][0]
    mean = (rows.after[0] + 2 * rows.after[1]) / 3
    torch.testing.assert_close(new, mean + (mean - rows.before[0]))
    h = -method.state_dict()["drifts"]["encoder"][0]
    only = Rows(rows.owners[1:], rows.before[1:], rows.after[1:], rows.tensors)
    new = method.aggregate(Round(1, parties, encoder=only))["encoder"][0]
    h -= 2 / 3 * rows.delta[1]
    torch.testing.assert_close(-method.state_dict()["drifts"]["encoder"][0], h)
    torch.testing.assert_close(new, rows.after[1] - h)


@pytest.mark.parametrize("name, options", [("scaffold", {"server_lr": 0.7}), ("pfedme", {"beta": 0.3})])
def test_a_resumed_server_steps_as_if_never_stopped(name, options):
    """Before a restart everybody's start is one row in memory, after it as many as there are clients."""
    parties = make_parties([("depth",), ("edge",), ("semseg",), ("edge",), ("depth",)])
    rnd = make_round(parties, alike=True)
    seen = []
    for start in (lambda rows: rows.before, lambda rows: rows.before[:1].expand_as(rows.before)):
        rows = {
            k: Rows(r.owners, start(r), r.after, r.tensors) for k in ("encoder", "decoder") if (r := getattr(rnd, k))
        }
        method = make(name, parties, **options)
        seen.append(method.aggregate(of(Round(0, parties, **rows, steps=rnd.steps), method)))
    assert all(torch.equal(seen[0][kind], seen[1][kind]) for kind in seen[0])


# -- where the corrected methods come to rest --------------------------------------------------------------------------


def rest(name, weighting, **options):
    """The common encoder after so many rounds that nothing moves any more, and where its mean loss is least."""
    parties = make_parties([("depth",), ("edge",), ("semseg",)])
    federation = QuadraticFederation(make(name, parties, weighting=weighting, **options), batches=4)
    for client in federation.clients:
        client.targets[:] = client.targets[:1].clone()  # every batch alike, so that gradients can vanish
    last = federation.rounds([(0, 1, 2)] * 800)["encoder"][0]
    moved = last - federation.round(800, (0, 1, 2))["encoder"][0]
    assert moved.abs().max() < 1e-10
    weights = [party.samples if weighting == "samples" else 1 for party in parties]
    place = federation.clients[0].places["encoder"][0]
    pull = sum(w * c.curvature[place] * c.targets[0, 0, place] for w, c in zip(weights, federation.clients))
    return last, pull / sum(w * c.curvature[place] for w, c in zip(weights, federation.clients))


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["equal", "samples"])
@pytest.mark.parametrize("name, options", [("scaffold", {}), ("feddyn", {"alpha": 0.5})])
def test_corrected_clients_come_to_rest_where_the_mean_loss_is_least(name, options, weighting):
    """What both are for: with several local steps FedAvg rests elsewhere, since clients drift."""
    last, best = rest(name, weighting, **options)
    torch.testing.assert_close(last, best, atol=1e-8, rtol=0)
    plain, best = rest("fedavg", weighting)
    assert (plain - best).abs().max() > 1e-3


# -- APFL --------------------------------------------------------------------------------------------------------------


def run_apfl(client, alpha, rounds, adaptive, alpha_lr=None):
    """One client alone, whole vectors: w and v step from where both stood before the batch."""
    w = client.vector("main").numpy().copy()
    v = w.copy()
    curvature, targets = client.curvature.numpy(), client.targets.numpy()
    for _ in range(rounds):
        for batch, (target,) in enumerate(targets):
            mixed = alpha * v + (1 - alpha) * w
            gradient = curvature * (mixed - target)
            new_v = v - RATE * alpha * gradient
            new_w = w - RATE * curvature * (w - target)
            if adaptive and batch == 0:
                alpha = np.clip(alpha - (alpha_lr or RATE) * gradient @ (v - w), 0, 1)
            v, w = new_v, new_w
    return w, v, alpha


@pytest.mark.parametrize("alpha, adaptive, alpha_lr", [(0.5, True, None), (0.25, True, 0.02), (0.75, False, None)])
def test_apfl_is_the_papers_loop(alpha, adaptive, alpha_lr):
    """With one client, and decoders by task, every mean is of one row, so that rounds follow each other."""
    parties = make_parties([("depth", "edge")])
    method = make("apfl", parties, decoders="task", alpha=alpha, adaptive=adaptive, alpha_lr=alpha_lr)
    federation = QuadraticFederation(method, rate=RATE)
    (client,) = federation.clients
    w, v, learned = run_apfl(client, alpha, 4, adaptive, alpha_lr)
    federation.rounds([(0,)] * 4)
    np.testing.assert_allclose(client.vector("main").numpy(), w, rtol=1e-10)
    np.testing.assert_allclose(client.vector("personal").numpy(), v, rtol=1e-10)
    assert client.memory.get("alpha", alpha) == pytest.approx(learned, rel=1e-10)
    assert bool(learned != alpha) is adaptive
    np.testing.assert_allclose(client.scored().numpy(), learned * v + (1 - learned) * w, rtol=1e-10)
    assert set(client.memory) <= {"alpha"} and method._aside == {}


def test_apfl_gradient_of_the_personal_model():
    """α∇F at the mixture, and nothing of it at w: what is left after the step is v − ηα∇F(v̄)."""
    method = make("apfl", PARTIES, alpha=0.25, adaptive=False)
    client = QuadraticClient(method, PARTIES[0], rate=RATE)
    g = torch.Generator().manual_seed(1)
    for name in ("main", "personal"):
        client.vector(name).copy_(torch.randn(client.vector(name).shape, generator=g, dtype=torch.float64))
    w, v = client.vector("main").clone(), client.vector("personal").clone()
    client.track = "personal"
    client.step(client.targets[0, 0])
    expected = 0.25 * client.curvature * (0.25 * v + 0.75 * w - client.targets[0, 0])
    torch.testing.assert_close(client.gradient(), expected)
    torch.testing.assert_close(client.vector("personal"), v - RATE * expected)
    assert torch.equal(client.vector("main"), w)


@pytest.mark.parametrize("alpha, like", [(0.0, "fedavg"), (1.0, "local")])
def test_apfl_with_a_fixed_end_of_alpha(alpha, like):
    """α = 0 is scored as FedAvg is, α = 1 as local training; on the way w is FedAvg's in both."""
    method = make("apfl", PARTIES, alpha=alpha, adaptive=False)
    mine = QuadraticFederation(method)
    others = {name: QuadraticFederation(make(name, PARTIES)) for name in ("fedavg", "local")}
    for index, present in enumerate(ATTENDANCE):
        for federation in (mine, *others.values()):
            federation.round(index, present)
        for i, client in enumerate(mine.clients):
            assert torch.equal(client.scored(), others[like].clients[i].vector("main"))
            assert torch.equal(client.vector("main"), others["fedavg"].clients[i].vector("main"))
    assert len(method.notes()) == 1
    assert make("apfl", PARTIES).notes() == make("apfl", PARTIES, alpha=alpha).notes() == []


def test_apfl_keeps_alpha_between_its_ends_and_out_of_a_skipped_step():
    for sign, end in ((1, 0.0), (-1, 1.0)):
        method = make("apfl", PARTIES, alpha=0.5, alpha_lr=1e6)
        client = QuadraticClient(method, PARTIES[0])
        client.vector("personal").add_(1.0)
        # ⟨∇F(v̄), v − w⟩ is positive where the target lies below the mixture.
        client.track = "personal"
        client.step(client.vector("main") - 5.0 * sign)
        assert client.memory["alpha"] == end
    overflown = QuadraticClient(method, PARTIES[0])
    overflown.track = "personal"
    overflown.step(torch.full_like(overflown.vector(), float("inf")))
    assert overflown.memory == {}


def test_apfl_adapts_once_a_round():
    method = make("apfl", PARTIES)
    federation = QuadraticFederation(method)
    federation.round(0, (0, 1, 2))
    assert all(client.memory.get("alpha") == 0.5 for client in federation.clients)  # v = w on the first batch
    federation.round(1, (0, 1))
    learned = [client.memory["alpha"] for client in federation.clients]
    assert learned[0] != learned[1] and 0.5 not in learned[:2] and learned[2] == 0.5
    client = federation.clients[0]
    client.track, client.batch = "personal", 1
    client.step(client.targets[1, 0])
    assert client.memory["alpha"] == learned[0]


# -- pFedMe ------------------------------------------------------------------------------------------------------------


def run_pfedme(client, rounds, lam, eta, inner, warm):
    """One client alone: K steps from w_i on every batch, each over all its task steps, then w_i follows."""
    w = client.vector("main").numpy().copy()
    theta = w.copy()
    curvature, batches = client.curvature.numpy(), client.targets.numpy()
    for _ in range(rounds):
        for targets in batches:
            theta = theta if warm else w.copy()
            for _ in range(inner):
                for target in targets:
                    theta = theta - RATE * (curvature * (theta - target) + lam * (theta - w))
            w = w - eta * lam * (w - theta)
    return w, theta


@pytest.mark.parametrize("task_steps", [1, 2])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("lam, eta, inner", [(2.0, 0.05, 5), (1.0, 0.3, 1)])
def test_pfedme_is_the_papers_loop(lam, eta, inner, warm, task_steps):
    """Also for a network that learns its tasks one after the other: a batch begins and ends once."""
    parties = make_parties([("depth", "edge")])
    options = {"lam": lam, "eta": eta, "inner_steps": inner, "warm_start": warm}
    method = make("pfedme", parties, decoders="task", **options)
    federation = QuadraticFederation(method, rate=RATE, task_steps=task_steps)
    (client,) = federation.clients
    w, theta = run_pfedme(client, 3, lam, eta, inner, warm)
    federation.rounds([(0,)] * 3)
    np.testing.assert_allclose(client.vector("main").numpy(), w, rtol=1e-10)
    np.testing.assert_allclose(client.scored().numpy(), theta, rtol=1e-10)
    assert client.memory == {}


def test_pfedme_gradient_of_its_term():
    """∇F(θ) + λ(θ − w_i) over all of the network, heads included."""
    method = make("pfedme", PARTIES, lam=3.0, warm_start=True)
    client = QuadraticClient(method, PARTIES[0])
    client.track = "personal"
    client.vector().add_(torch.linspace(-1, 1, len(client.vector()), dtype=torch.float64))
    theta, w, target = client.vector().clone(), client.vector("main").clone(), client.targets[0, 0]
    client.step(target)
    torch.testing.assert_close(client.gradient(), client.curvature * (theta - target) + 3.0 * (theta - w))
    assert torch.equal(client.vector("main"), w)


def test_pfedme_with_lambda_zero_moves_nothing_that_travels():
    method = make("pfedme", PARTIES, lam=0.0)
    federation = QuadraticFederation(method)
    start = [client.vector("main").clone() for client in federation.clients]
    federation.rounds(ATTENDANCE)
    for client, first in zip(federation.clients, start):
        torch.testing.assert_close(client.vector("main"), first, rtol=1e-12, atol=0)
        assert not torch.allclose(client.vector("personal"), first)
    (note,) = method.notes()
    assert "never moves" in note
    assert make("pfedme", PARTIES).notes() == []
    assert "= 1.5:" in make("pfedme", PARTIES, lam=15.0, eta=0.1).notes()[0]


def test_pfedme_reaching_the_personal_model_on_every_batch_is_fedavg_of_a_stretched_loss():
    """ηλ = 1, K = 1: w_i becomes θ, one plain step from it (the pull is 0 there). So the rows are FedAvg's."""
    one = QuadraticFederation(make("pfedme", PARTIES, lam=4.0, eta=0.25, inner_steps=1))
    other = QuadraticFederation(make("fedavg", PARTIES))
    got, expected = one.rounds(ATTENDANCE), other.rounds(ATTENDANCE)
    for kind in expected:
        torch.testing.assert_close(got[kind], expected[kind], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("beta", [0.4, 1.0, 1.5])
def test_pfedme_server_goes_beta_of_the_way(beta):
    rnd = make_round(PARTIES, alike=True)
    for kind, rows in aggregate("pfedme", rnd, beta=beta).items():
        came = getattr(rnd, kind)
        expected = (1 - beta) * came.before[0] + beta * came.after.mean(0)
        torch.testing.assert_close(rows, expected.expand_as(rows), atol=1e-6, rtol=1e-5)


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"decoders": "task"}], ids=["all", "task"])
@pytest.mark.parametrize("name", ["scaffold", "feddyn", "apfl", "pfedme"])
def test_going_on_from_a_saved_state_is_the_same_as_going_on(name, options):
    whole = QuadraticFederation(make(name, PARTIES, **options))
    first = QuadraticFederation(make(name, PARTIES, **options))
    expected = whole.rounds(ATTENDANCE)
    first.rounds(ATTENDANCE[:3])
    method = make(name, PARTIES, **options)
    method.load_state_dict(through_disk(first.method.state_dict()))
    second = QuadraticFederation(method)
    second.common = first.common
    for old, new in zip(first.clients, second.clients):
        new.memory = through_disk(old.memory)
        for track in method.tracks:
            new.vector(track).copy_(old.vector(track))
    got = [second.round(index, present) for index, present in enumerate(ATTENDANCE) if index >= 3][-1]
    for kind in expected:
        assert torch.equal(got[kind], expected[kind])
    for one, other in zip(whole.clients, second.clients):
        assert torch.equal(one.scored(), other.scored())


@pytest.mark.parametrize("name", ["scaffold", "feddyn", "pfedme", "apfl"])
def test_a_row_of_all_decoders_is_one_row(name):
    """Whole models: a client's decoders travel as one row, of a group by its set of tasks."""
    parties = [Party(i, f"c{i}", "nyud", tasks, 10, True) for i, tasks in enumerate([("edge", "depth")] * 2)]
    rows = make_round(make_parties([("depth",)] * 2)).decoder
    rows = Rows(tuple(Owner(i) for i in range(2)), rows.before, rows.after, rows.tensors)
    for decoders in ("all", "task"):
        method = make(name, parties, decoders=decoders)
        told = {i: {"decoder": rows.delta[i : i + 1]} for i in range(2)} if name == "scaffold" else {}
        new = method.aggregate(Round(0, tuple(parties), decoder=rows, measured=told))["decoder"]
        assert torch.equal(new[0], new[1]) and new.isfinite().all()
        if name == "scaffold":
            (sent,) = method.parcel(0)["decoder"]
            torch.testing.assert_close(sent, rows.delta.mean(0))
            assert set(method.state_dict()["variates"]) == {"decoder" if decoders == "all" else "decoder/depth+edge"}


def test_long_rows_are_visited_block_by_block():
    """The server's sums are taken in blocks of columns: none is missed, none is taken twice."""
    from fmtlbench.algorithms._server_step import BLOCK, add_weighted

    g = torch.Generator().manual_seed(0)
    start, *rows = torch.randn(4, 2 * BLOCK + 3, generator=g)
    got = add_weighted(start, rows, [0.5, -1.0, 2.0])
    torch.testing.assert_close(got, start + 0.5 * rows[0] - rows[1] + 2 * rows[2])
    torch.testing.assert_close(add_weighted(None, rows[:1], [0.5]), 0.5 * rows[0])
    parties = make_parties([("depth",)] * 3)
    method = make("feddyn", parties, shared="encoder", alpha=0.3)
    before, after = rows[0].expand(3, -1), torch.stack(rows)
    tensors = (TensorSlice("a.weight", "a", 0, len(start)),)
    for old in (torch.zeros(()), rows[0] - after.mean(0)):
        rnd = Round(0, parties, encoder=Rows(tuple(map(Owner, range(3))), before, after, tensors))
        new = method.aggregate(rnd)["encoder"][0]
        torch.testing.assert_close(new, after.mean(0) - (old + rows[0] - after.mean(0)))
