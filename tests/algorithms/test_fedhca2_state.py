"""FedHCA² over rounds: what it remembers, who is there, and in which order."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from toys import ENCODER, make, make_parties, make_round, renumber, renumbered, reorder, through_disk

from fmtlbench.algorithms.fedhca2 import inner_products
from fmtlbench.engine.state_trees import split_tree
from fmtlbench.exchange import Owner, Round, Rows
from fmtlbench.exchange import algebra as row_algebra

# Two multi-task clients with four and two tasks; clients 0 and 4 are alike, and not adjacent.
TASKS = [("edge",), ("depth", "edge", "normals", "semseg"), ("depth",), ("edge", "semseg"), ("edge",)]
PARTIES = make_parties(TASKS)
KINDS = ("encoder", "decoder")


def play(method, *rounds):
    """What the last of the rounds gives."""
    new = {}
    with torch.no_grad():
        for rnd in rounds:
            new = method.aggregate(rnd)
    return new


def rounds(count, **options):
    return [make_round(PARTIES, seed=index, index=index, **options) for index in range(count)]


def only(rnd, *clients):
    """The round with these clients present, in this order."""
    return reorder(rnd, clients)[0]


def weights(method):
    return method.diagnostics()


def assert_same(got, want):
    assert set(got) == set(want)
    for kind in want:
        assert torch.equal(got[kind], want[kind]), kind


def assert_close(got, want, **tolerance):
    assert set(got) == set(want)
    for kind in want:
        torch.testing.assert_close(got[kind], want[kind], **tolerance)


def by_definition(
    parties, history, c=0.4, start=0.1, lr=0.01, momentum=0.9, decay=1e-4, rescale=True, average_alike=True
):
    """FedHCA² as the specification words it, client by client, in double precision. The last round's encoders and α."""
    from fmtlbench.exchange.conflicts import simplex_weights

    alpha, speed, common, received = {}, {}, None, ()
    for rnd in history:
        rows = rnd.encoder
        delta = {o.client: d for o, d in zip(rows.owners, (rows.after.double() - rows.before.double()).numpy())}
        stack = np.stack(list(delta.values()))
        for i, d in delta.items():
            if i in received:
                slope = (-(common @ d) if 0 <= alpha[i] <= 1 else 0.0) + decay * alpha[i]
                speed[i] = momentum * speed[i] + slope if i in speed else slope
                alpha[i] -= lr * speed[i]
            alpha.setdefault(i, start)
        mean = stack.mean(0)
        u_w = simplex_weights(stack @ stack.T, c) @ stack
        common = mean + c * np.linalg.norm(mean) * u_w / np.linalg.norm(u_w)  # Eq. 9
        common = common / (1 + c * c) if rescale else common
        received = tuple(delta)
        new = []
        for owner, before in zip(rows.owners, rows.before.double().numpy()):
            me = parties[owner.client]
            mates = [
                delta[j] for j in delta if (parties[j].dataset, set(parties[j].tasks)) == (me.dataset, set(me.tasks))
            ]
            mates = mates if average_alike else [delta[owner.client]]  # Eq. 14
            new.append(before + np.mean(mates, 0) + np.clip(alpha[owner.client], 0, 1) * common)
    return np.stack(new), alpha


@pytest.mark.parametrize("options", [{}, {"rescale": False}, {"average_alike": False}])
@pytest.mark.parametrize("present", [[range(5)] * 4, [(0, 1, 2), (3, 1), (2, 0, 4), (4, 3, 1, 0)]])
def test_encoders_follow_the_definition(present, options):
    history = [only(rnd, *clients) for rnd, clients in zip(rounds(4, step=1.0), present)]
    method = make("fedhca2", PARTIES, **options)
    got = play(method, *history)["encoder"].numpy()
    want, alpha = by_definition(PARTIES, history, **options)
    np.testing.assert_allclose(got, want, atol=2e-5)
    for i, value in alpha.items():
        assert method.alpha.weights[i][0] == pytest.approx(value, abs=1e-5)
    assert len({round(a, 6) for a in alpha.values()}) > 2  # they did learn, each its own way


def test_the_papers_equations_are_two_options_away():
    """Eq. 9 has no division by 1 + c², Eq. 14 each client's own update: θ + Δ_i + α Ũ, alike clients or not."""
    rnd = make_round(PARTIES, step=1.0)
    rows, c = rnd.encoder, 0.4
    paper = play(make("fedhca2", PARTIES, rescale=False, average_alike=False), rnd)["encoder"] - rows.after
    code = play(make("fedhca2", PARTIES), rnd)["encoder"] - rows.after
    assert torch.allclose(paper, paper[:1].expand_as(paper), atol=1e-5)  # everybody adds the same α Ũ to its own model
    torch.testing.assert_close(paper[1], (1 + c * c) * code[1], rtol=1e-4, atol=1e-5)  # client 1 is like nobody
    assert not torch.allclose(code[0], code[1], atol=1e-2)  # 0 and 4 are alike
    together = play(make("fedhca2", PARTIES, rescale=False), rnd)["encoder"]
    own = rows.before + (rows.delta[0] + rows.delta[4]) / 2
    torch.testing.assert_close(together[[0, 4]], own[[0, 4]] + paper[0], rtol=1e-4, atol=1e-5)


def test_columns_in_blocks_give_what_one_block_gives(monkeypatch):
    history = rounds(3, step=1.0)
    whole, cut = make("fedhca2", PARTIES), make("fedhca2", PARTIES)
    want = play(whole, *history)
    monkeypatch.setattr(row_algebra, "BLOCK", 7 * len(PARTIES))  # seven columns at once; the last block is narrower
    assert sum(size for _, size in ENCODER) % 7
    assert_close(play(cut, *history), want, rtol=1e-5, atol=1e-5)
    assert weights(cut)["alpha"] == pytest.approx(weights(whole)["alpha"], abs=1e-5)


def test_inner_products_with_and_without_a_probe():
    rows = make_round(PARTIES).encoder
    delta = (rows.after.double() - rows.before.double()).numpy()
    probe = torch.randn(delta.shape[1])
    gram, along = inner_products(rows, probe)
    np.testing.assert_allclose(gram, delta @ delta.T, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(along, delta @ probe.double().numpy(), rtol=1e-4, atol=1e-6)
    alone, nothing = inner_products(rows, None)
    np.testing.assert_allclose(alone, gram, rtol=1e-6)
    assert not nothing.any()


def test_no_copy_of_the_encoder_updates_is_kept():
    rnd = make_round(PARTIES)
    play(make("fedhca2", PARTIES), rnd)
    assert "delta" not in vars(rnd.encoder)


@pytest.mark.parametrize("options", [{}, {"encoder": "none"}, {"decoder": "none"}])
@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_state_through_a_checkpoint_continues_bit_for_bit(stop, options):
    present = [(0, 1, 3), (4, 1, 0, 2), (2, 3), (0, 1, 2, 3, 4)]
    history = [only(rnd, *clients) for rnd, clients in zip(rounds(4, step=1.0), present)]
    one = make("fedhca2", PARTIES, **options)
    history = [Round(r.index, r.parties, **{kind: getattr(r, kind) for kind in one.shared(0)}) for r in history]
    play(one, *history[:stop])
    other = make("fedhca2", PARTIES, **options)
    state = one.state_dict()
    other.load_state_dict(through_disk(state))
    for rnd in history[stop:]:
        assert_same(play(other, rnd), play(one, rnd))
        assert weights(other) == weights(one)
    assert json.dumps(split_tree(one.state_dict())[1]) == json.dumps(split_tree(other.state_dict())[1])


def test_absent_clients_keep_their_hyper_weights_and_momentum():
    method = make("fedhca2", PARTIES)
    history = rounds(3, step=1.0)
    play(method, *history[:2])
    before, state = weights(method), method.state_dict()
    play(method, only(history[2], 0, 3))
    after = weights(method)
    for i, party in enumerate(PARTIES):
        present = i in (0, 3)
        assert (after["alpha"][party.id] == before["alpha"][party.id]) is not present
        for task in party.tasks:
            name = f"{party.id}/{task}"
            assert (after["beta"][name] == before["beta"][name]) is not present
    kept = dict(state["beta"]["momenta"])
    assert method.beta.momenta[Owner(1, "depth")] == kept[Owner(1, "depth")]


def test_a_client_that_missed_a_round_does_not_learn_from_an_update_it_never_got():
    method = make("fedhca2", PARTIES)
    history = rounds(3, step=1.0)
    play(method, history[0], only(history[1], 0, 1))
    before = weights(method)
    play(method, history[2])
    after = weights(method)
    for i, party in enumerate(PARTIES):
        learnt = i in (0, 1)
        assert (after["alpha"][party.id] != before["alpha"][party.id]) is learnt
        assert all(
            (after["beta"][f"{party.id}/{t}"] != before["beta"][f"{party.id}/{t}"]) is learnt for t in party.tasks
        )


def test_a_client_seen_first_in_the_third_round_starts_from_the_initial_weights():
    method = make("fedhca2", PARTIES, alpha=0.3, beta=0.2)
    history = rounds(4, step=1.0)
    new = play(method, only(history[0], 1, 2), only(history[1], 2, 1), only(history[2], 2, 3, 1))
    assert weights(method)["alpha"]["c3"] == 0.3
    assert weights(method)["beta"]["c3/edge"] == [0.2, 0.2]
    assert len(new["encoder"]) == 3 and len(new["decoder"]) == 1 + 2 + 4
    play(method, history[3])
    assert weights(method)["alpha"]["c3"] != 0.3
    assert weights(method)["alpha"]["c0"] == 0.3
    assert all(torch.isfinite(rows).all() for rows in new.values())


@pytest.mark.parametrize("order", [(4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_permuting_clients_permutes_the_result(order):
    history = rounds(3, step=1.0)
    straight, turned = make("fedhca2", PARTIES), make("fedhca2", PARTIES)
    want = play(straight, *history)
    # Every round in another order: rows are told by their owners, never by where they stand.
    moved = [reorder(rnd, order if rnd.index != 1 else order[::-1]) for rnd in history]
    got = play(turned, *(rnd for rnd, _ in moved))
    index = moved[-1][1]
    assert_close(got, {kind: want[kind][index[kind]] for kind in KINDS}, rtol=1e-4, atol=1e-5)
    assert weights(turned)["alpha"] == pytest.approx(weights(straight)["alpha"], abs=1e-5)
    for name, value in weights(straight)["beta"].items():
        assert weights(turned)["beta"][name] == pytest.approx(value, abs=1e-5)


def test_renumbering_clients_renumbers_everything():
    """The same federation listed in another order: clients get other indices, results the same values."""
    order = (3, 0, 4, 2, 1)  # old index of each new client
    a, b = make("fedhca2", PARTIES), make("fedhca2", renumbered(PARTIES, order))
    for rnd in rounds(3, step=1.0):
        turned, index = renumber(rnd, order)
        want, got = play(a, rnd), play(b, turned)
        assert_close(got, {kind: want[kind][index[kind]] for kind in KINDS}, rtol=1e-4, atol=1e-5)
    for new, old in enumerate(order):
        assert b.alpha.weights[new] == pytest.approx(a.alpha.weights[old], abs=1e-5)


def test_two_multi_task_clients_of_four_and_two_tasks():
    method = make("fedhca2", PARTIES)
    new = play(method, *rounds(2))
    assert len(new["decoder"]) == 1 + 4 + 1 + 2 + 1
    assert set(method.beta.weights) == {Owner(i, task) for i, tasks in enumerate(TASKS) for task in tasks}


def test_one_client_alone_moves_by_its_own_update_and_its_share_of_it():
    parties = make_parties([("depth",)])
    method = make("fedhca2", parties)
    rnd = make_round(parties)
    new = play(method, rnd)
    rows, c = rnd.encoder, 0.4
    delta = rows.after - rows.before
    want = rows.after + 0.1 * (1 + c) / (1 + c * c) * delta  # mean and direction are both Δ itself
    torch.testing.assert_close(new["encoder"], want)
    torch.testing.assert_close(new["decoder"], rnd.decoder.after + 0.1 * rnd.decoder.delta)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_without_updates_nothing_moves(count):
    parties = make_parties(TASKS[:count])
    method = make("fedhca2", parties)
    zero = [make_round(parties, seed=r, index=r, step=0.0) for r in range(3)]
    for rnd in zero:
        new = play(method, rnd)
        assert_same(new, {kind: getattr(rnd, kind).before for kind in KINDS})
    # Only weight decay moves the hyper weights.
    first = 0.1 - 0.01 * 1e-4 * 0.1
    second = first - 0.01 * (0.9 * 1e-4 * 0.1 + 1e-4 * first)
    assert weights(method)["alpha"] == pytest.approx({p.id: second for p in parties}, abs=1e-12)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e6])
def test_opposite_updates_stay_finite(size):
    parties = make_parties([("depth",), ("edge",)])
    method = make("fedhca2", parties)
    rng = np.random.default_rng(0)
    for r in range(3):
        encoder, decoder = rng.normal(size=sum(s for _, s in ENCODER)), rng.normal(size=18)
        updates = tuple(size * np.stack([x, -x]) for x in (encoder, decoder))
        new = play(method, make_round(parties, seed=r, index=r, updates=updates))
        assert all(torch.isfinite(rows).all() for rows in new.values())
        assert all(math.isfinite(w) for w in weights(method)["alpha"].values())


def test_other_devices_and_types_are_the_inputs():
    rnd = make_round(PARTIES)
    double = {
        kind: Rows(rows.owners, rows.before.double(), rows.after.double(), rows.tensors)
        for kind, rows in ((kind, getattr(rnd, kind)) for kind in KINDS)
    }
    got = play(make("fedhca2", PARTIES), Round(0, PARTIES, **double))
    assert all(rows.dtype == torch.float64 for rows in got.values())
    assert_close({k: v.float() for k, v in got.items()}, play(make("fedhca2", PARTIES), rnd), rtol=1e-4, atol=1e-5)
