"""FedAtlas: the relation matrix against worked examples, the weights that follow from it, what clients measure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from judging_clients import JudgingClient
from toy_rounds import measured_for
from toys import make, make_parties, make_round, of

from fmtlbench.algorithms.fedatlas import Relations, affinities, decoder_weights, encoder_weights, relation_matrix
from fmtlbench.exchange import Owner, Party, Round, Rows

# Six rows of five clients, and what an implementation of its own, equal to the public classes, makes of them.
FEATURES = np.array([[1, 0, 0, 0], [0.9, 0.1, 0, 0], [0, 1, 0, 0], [0, 0.8, 0.6, 0], [0, 0, 1, 0.2], [-1, 0, 0, 0.3]])
SETS = [("semseg",), ("semseg",), ("depth",), ("depth", "normals"), ("edge",)]
OWNERS = [Owner(i, task) for i, tasks in enumerate(SETS) for task in tasks]
GOLDEN = {
    0.1: {
        (0, 1): 6.0454, (1, 0): 6.0454, (2, 3): 3.2498, (2, 5): 1.2913, (3, 2): 3.3348, (3, 4): 2.6198,
        (4, 3): 2.5260, (4, 5): 1.7623, (5, 2): 1.2084, (5, 4): 1.6889,
    },
    0.5: {(0, 1): 5.6668, (2, 3): 3.3548, (3, 2): 3.4386, (3, 4): 2.6800, (4, 3): 2.5841, (5, 4): 1.7547},
}  # fmt: skip
GOLDEN_WEIGHTS = [
    [0.5, 0.5, 0, 0, 0],
    [0.5, 0.5, 0, 0, 0],
    [0.0010, 0.0010, 0.6621, 0.3232, 0.0128],
    [0.0021, 0.0021, 0.2699, 0.6674, 0.0586],
    [0.0137, 0.0137, 0.1538, 0.2079, 0.6108],
]


def told(features, parties=None):
    """Features by row as the clients of SETS would tell them."""
    parties, rows = parties or make_parties(SETS), iter(features)
    return {p.index: {"features": torch.tensor(np.stack([next(rows) for _ in p.tasks])).float()} for p in parties}


def aggregate(method, rnd, measured):
    return method.aggregate(dataclasses.replace(of(rnd, method), measured=measured))


# -- worked examples ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GOLDEN)
def test_golden_relations_of_the_kernel_method(gamma):
    z = relation_matrix(FEATURES, "paper", k=2, alpha=2.0, beta=1.0, gamma=gamma)
    for place, value in GOLDEN[gamma].items():
        assert z[place] == pytest.approx(value, abs=1e-4)
    if gamma == 0.1:  # here all are given
        rest = np.ones((6, 6), dtype=bool)
        rest[tuple(zip(*GOLDEN[gamma]))] = False
        assert (z[rest] == 0).all()


def test_golden_relations_of_what_the_public_code_runs():
    z = relation_matrix(FEATURES, "public", k=2, alpha=2.0, beta=1.0, gamma=0.5)
    np.testing.assert_allclose(z, 0, atol=1e-9)
    rows = make_round(make_parties(SETS)).encoder
    weights = encoder_weights(rows, Relations(OWNERS, affinities(z)))
    np.testing.assert_allclose(weights, np.full((5, 5), 0.1) + 0.5 * np.eye(5), atol=1e-9)


def test_golden_encoder_weights_and_the_rows_they_make():
    parties = make_parties(SETS)
    rnd = make_round(parties)
    z = relation_matrix(FEATURES, "paper", k=2, alpha=2.0, beta=1.0, gamma=0.1)
    weights = encoder_weights(rnd.encoder, Relations(OWNERS, affinities(z)))
    np.testing.assert_allclose(weights, GOLDEN_WEIGHTS, atol=6e-5)
    method = make("fedatlas", parties, k=2, gamma=0.1)
    new = aggregate(method, rnd, told(FEATURES))
    torch.testing.assert_close(new["encoder"], torch.tensor(weights).float() @ rnd.encoder.after, atol=1e-4, rtol=1e-4)
    diagnostics = method.diagnostics()
    assert diagnostics["own_weight"]["c3"] == pytest.approx(0.6674, abs=1e-4)
    assert diagnostics["nearest"] == {"c0": "c1", "c1": "c0", "c2": "c3", "c3": "c2", "c4": "c3"}


@pytest.mark.parametrize("features", [np.ones((6, 8)), np.eye(6, 8)], ids=["alike", "orthogonal"])
def test_what_the_public_code_runs_makes_the_same_of_all_alike_and_all_orthogonal(features):
    z = relation_matrix(features, "public", k=8, gamma=0.5)
    np.testing.assert_allclose(z, 0.2222 * (1 - np.eye(6)), atol=1e-4)


def test_only_the_kernel_method_tells_clusters_apart():
    def share_of_problems(variant):
        better = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            labels = np.arange(10) % 3
            x = np.linalg.qr(rng.normal(size=(8, 3)))[0].T[labels] + 0.1 * rng.normal(size=(10, 8))
            z = relation_matrix(x, variant, k=3)
            same = labels[:, None] == labels
            better.append(z[same & ~np.eye(10, dtype=bool)].mean() > z[~same].mean())
        return np.mean(better)

    assert share_of_problems("paper") == 1
    assert share_of_problems("public") < 0.9


# -- weights -----------------------------------------------------------------------------------------------------------


def test_relations_by_a_plain_solution_of_the_first_iteration():
    """Z by inverting, C by loops: nothing of the vectorised form."""
    x = FEATURES / np.linalg.norm(FEATURES, axis=1, keepdims=True)
    alpha, beta, gamma = 1.5, 0.7, 0.3
    kernel = np.array([[sum(a * b for a, b in zip(p, q)) for q in x] for p in x])
    first = np.linalg.inv(kernel + (beta + 1e-6) * np.eye(6)) @ (alpha * kernel)
    first = np.array([[max(v, 0) if i != j else 0 for j, v in enumerate(row)] for i, row in enumerate(first)])
    np.testing.assert_allclose(
        relation_matrix(FEATURES, "paper", 6, alpha, beta, gamma, iterations=1), first, atol=1e-9
    )
    # With k = R, S = I: the penalty takes γ/β from every pair.
    half = (first + first.T) / 2
    c = np.maximum(half - gamma / beta, 0) * (1 - np.eye(6))
    degree = half.sum(1) + 1e-8
    g = half / np.sqrt(np.outer(degree, degree))
    kernel = np.exp(g - 2 * g.max())
    second = np.linalg.inv(kernel + (beta + 1e-6) * np.eye(6)) @ (alpha * kernel + beta * c)
    second = np.maximum(second, 0) * (1 - np.eye(6))
    np.testing.assert_allclose(
        relation_matrix(FEATURES, "paper", 6, alpha, beta, gamma, iterations=2), second, atol=1e-9
    )


def test_more_dimensions_than_rows_are_as_many_as_rows():
    for variant in ("paper", "public"):
        many, all_ = (relation_matrix(FEATURES, variant, k=k) for k in (50, 6))
        assert np.array_equal(many, all_) and np.isfinite(many).all()


def test_affinities_are_a_softmax_with_the_diagonal_at_zero():
    z = np.array([[0, 1.0, 2000.0], [0, 0, 0], [0.5, 0, 0]])
    p = affinities(z)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(p[1], 1 / 3)
    np.testing.assert_allclose(p[0], [0, 0, 1])
    np.testing.assert_allclose(p[2], np.exp([1, 0, 0]) / np.exp([1, 0, 0]).sum())
    z[0, 1] = np.nan
    assert np.array_equal(affinities(z), np.eye(3))


def test_decoders_mix_within_their_task_whatever_the_dataset():
    parties = make_parties(SETS)
    rnd = make_round(parties)
    p = np.random.default_rng(0).dirichlet(np.ones(6), size=6)
    weights = decoder_weights(rnd.decoder, parties, Relations(OWNERS, p))
    expected = np.eye(6)
    for i, j in ((0, 1), (1, 0), (2, 3), (3, 2)):  # semseg of clients 0 and 1, depth of clients 2 and 3
        expected[i, [i, j]] = np.array([1, p[i, j]]) / (1 + p[i, j])
    np.testing.assert_allclose(weights, expected)
    assert parties[0].dataset != parties[1].dataset
    z = relation_matrix(FEATURES, k=2)
    new = aggregate(make("fedatlas", parties, k=2), rnd, told(FEATURES))["decoder"]
    weights = decoder_weights(rnd.decoder, parties, Relations(OWNERS, affinities(z)))
    torch.testing.assert_close(new, torch.tensor(weights).float() @ rnd.decoder.after, atol=1e-4, rtol=1e-4)


def test_decoders_that_travel_as_one_row_mix_by_the_mean_over_their_tasks():
    sets = [("depth", "edge"), ("edge", "depth"), ("depth", "semseg")]
    parties = tuple(dataclasses.replace(party, merged=True) for party in make_parties(sets))
    owners = [Owner(i, task) for i, tasks in enumerate(sets) for task in sorted(tasks)]
    p = np.random.default_rng(0).dirichlet(np.ones(6), size=6)
    row = make_round(make_parties([("depth",)] * 3)).decoder
    rows = Rows(tuple(Owner(i) for i in range(3)), row.before, row.after, row.tensors)
    weights = decoder_weights(rows, parties, Relations(owners, p))
    shared = (p[0, 2] + p[1, 3]) / 2  # depth with depth, edge with edge
    np.testing.assert_allclose(weights[0], np.array([1, shared, 0]) / (1 + shared))
    np.testing.assert_allclose(weights[2], [0, 0, 1])
    method = make("fedatlas", parties)
    rnd = make_round(parties)
    new = method.aggregate(Round(0, parties, rnd.encoder, rows, measured=measured_for("fedatlas", parties, rnd)))
    assert new["decoder"].shape == rows.after.shape and torch.equal(new["decoder"][2], rows.after[2])


@pytest.mark.parametrize("variant", ["paper", "public"])
def test_a_lone_row_stays_as_fedavg_leaves_it(variant):
    parties = make_parties([("depth",)])
    rnd = make_round(parties)
    new = aggregate(make("fedatlas", parties, variant=variant), rnd, measured_for("fedatlas", parties, rnd))
    for kind, rows in new.items():
        torch.testing.assert_close(rows, getattr(rnd, kind).after)


@pytest.mark.parametrize("variant", ["paper", "public"])
def test_features_of_zeros_and_nearly_none_give_numbers(variant):
    parties = make_parties(SETS)
    rnd = make_round(parties)
    for scale in (0.0, 1e-25, 1e4):
        new = aggregate(make("fedatlas", parties, variant=variant), rnd, told(scale * FEATURES))
        assert all(torch.isfinite(rows).all() for rows in new.values())


def test_relations_that_are_no_numbers_leave_everybody_alone_and_say_so():
    parties = make_parties(SETS)
    rnd = make_round(parties)
    method = make("fedatlas", parties)
    aggregate(method, rnd, told(FEATURES))
    assert method.notes() == []
    new = aggregate(method, rnd, told(np.full((6, 4), np.nan)))
    assert "were no numbers" in method.notes()[0]
    torch.testing.assert_close(new["encoder"], rnd.encoder.after)
    torch.testing.assert_close(new["decoder"], rnd.decoder.after)


# -- who is there, in which order --------------------------------------------------------------------------------------


def test_only_who_is_there_counts():
    parties = make_parties(SETS)
    some = [parties[1], parties[3], parties[4]]
    rnd = make_round(some)
    partial = Round(0, parties, rnd.encoder, rnd.decoder)
    measured = measured_for("fedatlas", parties, partial)
    assert sorted(measured) == [1, 3, 4]
    new = aggregate(make("fedatlas", parties), partial, measured)
    alone = tuple(Party(k, p.id, p.dataset, p.tasks, p.samples) for k, p in enumerate(some))
    rows = [
        Rows(tuple(Owner([1, 3, 4].index(o.client), o.task) for o in r.owners), r.before, r.after, r.tensors)
        for r in (rnd.encoder, rnd.decoder)
    ]
    same = Round(0, alone, *rows)
    expected = aggregate(make("fedatlas", alone), same, measured_for("fedatlas", alone, same))
    for kind in new:
        torch.testing.assert_close(new[kind], expected[kind])


def test_encoders_may_travel_alone():
    parties = make_parties(SETS)
    rnd = make_round(parties)
    new = aggregate(make("fedatlas", parties, shared="encoder"), rnd, told(FEATURES))
    assert list(new) == ["encoder"]
    torch.testing.assert_close(new["encoder"], aggregate(make("fedatlas", parties), rnd, told(FEATURES))["encoder"])


def test_a_client_without_features_is_an_error():
    parties = make_parties(SETS)
    rnd, measured = make_round(parties), told(FEATURES)
    del measured[3]
    with pytest.raises(ValueError, match=r"of client c3 came none as features, .* for each of depth, normals"):
        aggregate(make("fedatlas", parties), rnd, measured)
    measured[3] = {"features": torch.ones(1, 4)}
    with pytest.raises(ValueError, match=r"of client c3 came a tensor of shape \(1, 4\)"):
        aggregate(make("fedatlas", parties), rnd, measured)


# -- on the client -----------------------------------------------------------------------------------------------------


def test_a_client_tells_the_mean_gradient_of_each_task_at_length_one():
    parties = make_parties([("depth", "edge")])
    client, method = JudgingClient(parties[0]), make("fedatlas", parties, batches=2)
    client.features[0, 1, :3] = np.nan  # counts as 0
    with torch.no_grad():
        told = method.measure(client)["features"]
    assert client.looks == [(2, 1.0, False)]
    mean = np.nan_to_num(client.features[:2]).mean(0)
    np.testing.assert_allclose(told, mean / np.linalg.norm(mean, axis=1, keepdims=True), rtol=1e-5)
    client.features[:, 0] = 0  # a task without any gradient
    with torch.no_grad():
        told = method.measure(client)["features"]
    assert not told[0].any() and torch.isfinite(told).all()
    assert make("fedatlas", parties).params.batches == 5
