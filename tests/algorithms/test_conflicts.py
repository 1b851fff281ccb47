"""Methods that work on coefficients, against the vectors they stand for; and what their papers promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toys import ENCODER, aggregate, layout, make, make_parties, make_round

from fmtlbench.algorithms.matfl import MaTFL, clusters, friend_weights, voting_tensors
from fmtlbench.algorithms.pcgrad import PCGrad
from fmtlbench.exchange import Owner, Round, Rows
from fmtlbench.exchange import algebra as row_algebra


def federation(n):
    return make_parties([("depth",)] * n)


def moved(new, rnd, kind="encoder"):
    return (new[kind] - getattr(rnd, kind).before).double().numpy()


# -- the linear algebra they share -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n, d, block", [(1, 5, 1 << 20), (3, 50, 16), (6, 10_000, 30_000), (64, 300, 640)])
def test_blocks_make_no_difference(monkeypatch, n, d, block):
    monkeypatch.setattr(row_algebra, "BLOCK", block)
    g = torch.Generator().manual_seed(0)
    before, after = torch.randn(n, d, generator=g), torch.randn(n, d, generator=g)
    delta = (after - before).double()
    np.testing.assert_allclose(
        row_algebra.gram(after, before), (delta @ delta.T).numpy(), rtol=1e-4, atol=1e-4 * d**0.5
    )
    np.testing.assert_allclose(row_algebra.gram(after), (after.double() @ after.double().T).numpy(), atol=1e-4 * d**0.5)
    centred = after.double() - after.double().mean(0)
    np.testing.assert_allclose(row_algebra.centred_gram(after), (centred @ centred.T).numpy(), atol=1e-9 * d)
    distances = row_algebra.squared_distances(row_algebra.centred_gram(after))
    np.testing.assert_allclose(distances, torch.cdist(after.double(), after.double()).square().numpy(), atol=1e-9 * d)
    m, base = (np.random.default_rng(k).normal(size=(n, n)) for k in (0, 1))
    rows = Rows(tuple(Owner(i) for i in range(n)), before, after, ())
    close = lambda got, want: np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-4)
    close(row_algebra.mix(m, after), torch.from_numpy(m) @ after.double())
    close(row_algebra.move(rows, m), before.double() + torch.from_numpy(m) @ delta)
    close(row_algebra.move(rows, m[0]), before.double() + torch.from_numpy(m[0]) @ delta)
    close(row_algebra.move(rows, m, base), torch.from_numpy(base) @ before.double() + torch.from_numpy(m) @ delta)


def test_distances_of_near_rows_survive_a_far_one():
    rows = torch.zeros(3, 1000)
    rows[2] = 100.0
    rows[1, 0] = 1e-3
    distance = row_algebra.squared_distances(row_algebra.centred_gram(rows))
    assert distance[0, 1] == pytest.approx(1e-6, rel=1e-3)


# -- PCGrad ----------------------------------------------------------------------------------------------------------


def pcgrad_on_vectors(deltas, orders):
    projected = []
    for i, order in enumerate(orders):
        p = deltas[i].copy()
        for j in order:
            inner = p @ deltas[j]
            if inner < 0:
                p -= inner / (deltas[j] @ deltas[j]) * deltas[j]
        projected.append(p)
    return np.mean(projected, 0), projected


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("n", [2, 5, 12])
def test_pcgrad_on_coefficients_is_pcgrad_on_vectors(n, normalize):
    rnd = make_round(federation(n), seed=n)
    method = make("pcgrad", rnd.parties, normalize=normalize)
    orders = [method._order(0, "encoder", i, n) for i in range(n)]
    assert all(sorted([*order, i]) == list(range(n)) for i, order in enumerate(orders))
    deltas = rnd.encoder.delta.double().numpy()
    if normalize:
        deltas = deltas / np.linalg.norm(deltas, axis=1, keepdims=True)
    expected, _ = pcgrad_on_vectors(deltas, orders)
    got = moved(method.aggregate(Round(0, rnd.parties, encoder=rnd.encoder)), rnd)
    np.testing.assert_allclose(got, np.tile(expected, (n, 1)), atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_two_clients_conflict_no_more(seed):
    rnd = make_round(federation(2), seed=seed)
    deltas = rnd.encoder.delta.double().numpy()
    got = moved(aggregate("pcgrad", rnd), rnd)[0]
    assert (deltas @ got).min() >= -1e-6
    if deltas[0] @ deltas[1] >= 0:  # without a conflict PCGrad is the mean
        np.testing.assert_allclose(got, deltas.mean(0), atol=1e-6)


def test_pcgrad_orders_come_from_a_named_stream():
    parties = federation(9)
    orders = lambda m, r: [m._order(r, "encoder", i, 9).tolist() for i in range(9)]
    a, b = make("pcgrad", parties), make("pcgrad", parties)
    assert orders(a, 0) == orders(b, 0) != orders(a, 1)
    assert orders(a, 0) != orders(make("pcgrad", parties, order_seed=1), 0)


def test_unit_length_updates_make_the_step_independent_of_training():
    rnd = make_round(federation(4), seed=1)
    small = Rows(rnd.encoder.owners, rnd.encoder.before, rnd.encoder.before + 0.01 * rnd.encoder.delta, ())
    steps = []
    for rows in (rnd.encoder, small):
        method = PCGrad(PCGrad.Params(normalize=True, shared="encoder"), rnd.parties)
        steps.append(method.aggregate(Round(0, rnd.parties, encoder=rows))["encoder"] - rows.before)
    torch.testing.assert_close(steps[0], steps[1], rtol=1e-2, atol=1e-3)


# -- CAGrad ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_cagrad_stays_near_the_mean_and_serves_the_worst_off(seed):
    rnd = make_round(federation(5), seed=seed)
    deltas = rnd.encoder.delta.double().numpy()
    mean = deltas.mean(0)
    got = moved(aggregate("cagrad", rnd, rescale=False), rnd)[0]
    assert np.linalg.norm(got - mean) <= 0.4 * np.linalg.norm(mean) * (1 + 1e-4)
    assert (deltas @ got).min() >= (deltas @ mean).min() - 1e-6
    rng = np.random.default_rng(seed)  # no other step within the radius does better for the worst-off
    for _ in range(200):
        other = rng.normal(size=len(mean)) @ np.eye(len(mean))
        other = mean + 0.4 * np.linalg.norm(mean) * other / np.linalg.norm(other)
        assert (deltas @ other).min() <= (deltas @ got).min() + 1e-5
    rescaled = moved(aggregate("cagrad", rnd), rnd)[0]
    np.testing.assert_allclose(rescaled, got / 1.16, atol=1e-6)


def test_cagrad_without_a_radius_moves_by_the_mean():
    rnd = make_round(federation(5))
    for kind in ("encoder", "decoder"):
        got = moved(aggregate("cagrad", rnd, c=0.0), rnd, kind)
        np.testing.assert_allclose(got[0], getattr(rnd, kind).delta.mean(0).numpy(), atol=1e-6)


# -- MaT-FL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_clusters_are_scipys(seed, k):
    from scipy.cluster.hierarchy import fcluster, linkage

    features = np.random.default_rng(seed).normal(size=(9, 6))
    features -= features.mean(0)
    theirs = fcluster(linkage(features, method="average", metric="cosine"), k, criterion="maxclust")
    ours = clusters(row_algebra.cosines(features @ features.T), k)
    assert len(set(zip(ours, theirs))) == len(set(ours)) == len(set(theirs)) == k


def test_a_client_that_is_the_mean_can_be_clustered():
    features = np.array([[1.0, 0], [-1, 0], [0, 0], [0.9, 0.1], [-0.9, -0.1]])
    labels = clusters(row_algebra.cosines(features @ features.T), 2)
    assert labels[0] == labels[3] != labels[1] == labels[4]
    assert clusters(row_algebra.cosines(np.zeros((4, 4))), 2).count(0) >= 1
    assert clusters(np.ones((1, 1)), 2) == [0]


def voting_plainly(deltas_by_layer, k):
    """The MaT-FL paper's Section 3.4, step by step on vectors with positive cosines only."""
    n = len(deltas_by_layer[0])
    votes, scores = np.zeros((n, n)), np.zeros((n, n))
    for deltas in deltas_by_layer:
        unit = deltas / np.linalg.norm(deltas, axis=1, keepdims=True)
        s = unit @ unit.T
        for i in range(n):
            for rank, j in enumerate(np.argsort(-s[i])[:k]):
                votes[i, j] += k - rank
        scores += s / s.sum(1, keepdims=True) / len(deltas_by_layer)
    out = np.zeros((n, n))
    for i in range(n):
        friends = np.argsort(-votes[i] - 1e-6 * scores[i])[:k]
        out[i, friends] = scores[i, friends] / scores[i, friends].sum()
    return out


@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_voting_follows_the_paper(k):
    rng = np.random.default_rng(k)
    layers = [np.abs(rng.normal(size=(7, 12))) for _ in range(9)]
    cosine = np.stack([row_algebra.cosines(x @ x.T) for x in layers])
    got = friend_weights(cosine, k)
    np.testing.assert_allclose(got, voting_plainly(layers, k), atol=1e-9)
    assert (got > 0).sum(1).max() <= k and (np.diag(got) > 0).all()


def test_voting_moves_by_friends_and_alike_clients_share_the_mean():
    parties = make_parties([("depth",), ("edge",), ("depth",), ("edge", "depth")], datasets=("nyud",))
    rnd = make_round(parties, seed=3)
    method = MaTFL(MaTFL.Params(variant="voting", friends=2, vote_layers=2), parties)
    new = method.aggregate(Round(0, parties, encoder=rnd.encoder))["encoder"]
    rows = rnd.encoder
    cosine = [
        row_algebra.cosines(row_algebra.gram(rows.after[:, t.start : t.stop], rows.before[:, t.start : t.stop]))
        for t in voting_tensors(rows.tensors)
    ]
    weights = torch.from_numpy(friend_weights(np.stack(cosine), 2)).float()
    expected = rows.before + weights @ rows.delta
    shared = (expected[0] + expected[2]) / 2
    torch.testing.assert_close(new, torch.stack([shared, expected[1], shared, expected[3]]))
    assert set(method.diagnostics()["groups"]) == {"c0", "c1", "c2", "c3"}


def test_a_client_that_follows_nobody_else_trains_locally():
    rnd = make_round(make_parties([("depth",), ("edge",), ("semseg",)]))
    new = aggregate("matfl", rnd, variant="voting", friends=1)["encoder"]
    torch.testing.assert_close(new, rnd.encoder.after)


def test_layers_that_vote_are_convolutions_and_linear_maps():
    assert [t.name for t in voting_tensors(layout(ENCODER))] == ["a.weight", "b.weight"]
    odd = layout([("table", 5), ("norm.weight", 4), ("norm.bias", 4)])
    assert len(voting_tensors(odd)) == 3  # nothing to choose from: everything votes
