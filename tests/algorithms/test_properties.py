"""What holds for every registered method, whatever the federation."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import TASKS, aggregate, make, make_parties, make_round, of, renumber, reorder, without

from fmtlbench.algorithms import ALGORITHMS

VARIANTS = [
    *((name, {}) for name in sorted(set(ALGORITHMS) - {"local"})),
    ("fedavg", {"weighting": "samples"}),
    ("single_task_fl", {"weighting": "samples"}),
    ("fedsta", {"unify_every": 1}),
    ("fedamp", {"sigma": 100.0}),
    ("pcgrad", {"normalize": True}),
    ("matfl", {"variant": "soft"}),
    ("matfl", {"variant": "soft", "threshold": 0.5}),
    ("matfl", {"variant": "voting"}),
    ("matfl", {"variant": "voting", "friends": 2, "vote_layers": 1}),
    ("fedhca2", {"decoder": "none"}),
    ("fedhca2", {"rescale": False, "average_alike": False}),
    ("fedavgm", {"decoders": "task", "weighting": "samples"}),
    ("fedadam", {"decoders": "task", "lr": 0.1, "tau": 1e-9}),
    ("fedyogi", {"shared": "encoder", "beta1": 0.0}),
    ("fednova", {"steps": "sgd_momentum", "decoders": "task"}),
    ("fednova", {"steps": "proximal", "pull": 0.1, "weighting": "equal"}),
    ("lg_fedavg", {"warmup_rounds": 1, "weighting": "equal"}),
    ("fedbn", {"norms": "all", "decoders": "task", "weighting": "samples"}),
    ("task_means", {"weighting": "samples"}),
    ("emr", {"shared": "all"}),
    ("fedbone", {"shared": "all", "weighting": "equal"}),
    ("colnet", {"groups": "task"}),
    ("colnet", {"groups": "kmeans", "k": 3}),
    ("colnet", {"groups": "kmeans", "weight": 0.0}),
]
each_variant = pytest.mark.parametrize(
    "name, options", VARIANTS, ids=["-".join([n, *(f"{k}={v}" for k, v in o.items())]) for n, o in VARIANTS]
)
task_sets = st.lists(st.sets(st.sampled_from(TASKS), min_size=1).map(sorted), min_size=1, max_size=7)
some = settings(max_examples=12, deadline=None, derandomize=True)


def assert_rows_close(got, expected):
    assert set(got) == set(expected)
    for kind in got:
        np.testing.assert_allclose(got[kind].numpy(), expected[kind].numpy(), atol=2e-4, rtol=1e-4)


@each_variant
@some
@given(sets=task_sets, seed=st.integers(0, 99), data=st.data())
def test_the_order_of_the_rows_makes_no_difference(name, options, sets, seed, data):
    rnd = make_round(make_parties(sets), seed)
    order = data.draw(st.permutations(range(len(sets))))
    other, index = reorder(rnd, order)
    new = aggregate(name, rnd, **options)
    assert_rows_close(aggregate(name, other, **options), {kind: rows[index[kind]] for kind, rows in new.items()})


@each_variant
@some
@given(sets=task_sets, seed=st.integers(0, 99), data=st.data())
def test_renaming_clients_permutes_the_result(name, options, sets, seed, data):
    if name == "pcgrad" and len(sets) > 2:
        sets = sets[:2]  # with two rows there is one order; more would need their orders renamed too
        sets = [tasks[:1] for tasks in sets]
    rnd = make_round(make_parties(sets), seed)
    order = data.draw(st.permutations(range(len(sets))))  # new client k is old client order[k]
    other, index = renumber(rnd, order)
    if name == "pcgrad" and max(len(getattr(other, kind).owners) for kind in ("encoder", "decoder")) > 2:
        return
    new = aggregate(name, rnd, **options)
    got = aggregate(name, other, **options)
    assert_rows_close(got, {kind: rows[index[kind]] for kind, rows in new.items()})


@each_variant
@some
@given(sets=task_sets, seed=st.integers(0, 99))
def test_inputs_are_left_alone(name, options, sets, seed):
    rnd = make_round(make_parties(sets), seed)
    copies = {(k, w): getattr(getattr(rnd, k), w).clone() for k in ("encoder", "decoder") for w in ("before", "after")}
    new = aggregate(name, rnd, **options)
    for (kind, which), copy in copies.items():
        assert torch.equal(getattr(getattr(rnd, kind), which), copy)
    for kind, rows in new.items():
        assert rows.dtype == torch.float32 and rows.shape == getattr(rnd, kind).after.shape


@each_variant
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64])
def test_results_are_finite(name, options, n):
    parties = make_parties([TASKS[: 1 + i % 3] for i in range(n)])
    plain = make_round(parties, seed=n)
    count, width = len(plain.decoder.owners), plain.decoder.after.shape[1]
    rng = np.random.default_rng(n)

    def both(make):
        return make(n, plain.encoder.after.shape[1]), make(count, width)

    def one_still(rows, d):
        delta = rng.normal(size=(rows, d))
        delta[0] = 0
        return delta

    def opposite(rows, d):
        return np.where(np.arange(rows)[:, None] % 2, -1.0, 1.0) * rng.normal(size=d)

    def one_tiny(rows, d):
        return rng.normal(size=(rows, d)) * np.where(np.arange(rows)[:, None] == 0, 1e-30, 1)

    for alike in (False, True):
        for updates in (
            both(lambda r, d: np.zeros((r, d))), both(one_still), both(opposite), both(one_tiny),
            both(lambda r, d: rng.normal(size=d)), both(lambda r, d: 1e4 * rng.normal(size=(r, d))),
            both(lambda r, d: 1e-25 * rng.normal(size=(r, d))),
        ):  # fmt: skip
            new = aggregate(name, make_round(parties, updates=updates, alike=alike), **options)
            assert all(torch.isfinite(rows).all() for rows in new.values())


@each_variant
def test_whole_models_may_come_as_one_row_each(name, options):
    parties = make_parties([("depth", "edge"), ("edge", "depth"), ("normals", "edge"), TASKS[:2]], merged=True)
    rnd = make_round(parties)
    assert [owner.task for owner in rnd.decoder.owners] == [None] * 4
    new = aggregate(name, rnd, **options)
    assert all(rows.shape[0] == 4 and torch.isfinite(rows).all() for rows in new.values())
    other, index = reorder(rnd, [2, 0, 3, 1])
    assert_rows_close(aggregate(name, other, **options), {kind: rows[index[kind]] for kind, rows in new.items()})


@each_variant
def test_nobody_moves_if_nobody_trained_and_all_are_alike(name, options):
    parties = make_parties([("depth",), ("edge", "depth"), ("depth",)])
    rnd = make_round(parties, updates=(0.0, 0.0), alike=True)
    new = aggregate(name, rnd, **options)
    for kind, rows in new.items():
        torch.testing.assert_close(rows, getattr(rnd, kind).before, atol=1e-6, rtol=1e-6)


# Methods that do not follow when all clients start alike and make the same update, and how far they go instead.
OTHER_WAYS = {
    "cagrad": "(1 + c)/(1 + c²) times as far",
    "fedhca2": "its own update and a share of the common one",
    "colnet": "its own update and the common one",
    "fedadam": "about lr in every column",
    "fedyogi": "about lr in every column",
    "fednova": "as far as the mean step, times the mean number of steps",
    "feddyn": "twice as far: the server's correction has forgotten nothing",
}
# Of these, the variants that do follow; and variants of other methods that do not.
FOLLOW = [("colnet", {"weight": 0.0}), ("cagrad", {"c": 0.0}), ("matfl", {"variant": "voting"})]
STRAY = [("pcgrad", {"normalize": True}), ("fedavgm", {"lr": 0.5})]


def identical_updates(n, seed):
    parties = make_parties([TASKS[: 1 + i % 4] for i in range(n)])
    base = make_round(parties, seed)
    updates = base.encoder.delta[0].numpy(), base.decoder.delta[0].numpy()
    return make_round(parties, seed, alike=True, updates=updates)


def is_everybodys_direction(rnd, name, options):
    new = aggregate(name, rnd, **options)
    return all(torch.allclose(rows, getattr(rnd, kind).after, atol=1e-5, rtol=1e-5) for kind, rows in new.items())


@some
@given(n=st.integers(1, 12), seed=st.integers(0, 99))
def test_identical_updates_are_everybodys_direction(n, seed):
    rnd = identical_updates(n, seed)
    cases = [(name, {}) for name in sorted(set(ALGORITHMS) - {"local", *OTHER_WAYS})] + FOLLOW
    assert [case for case in cases if not is_everybodys_direction(rnd, *case)] == []
    # CAGrad goes the same way, (1 + c)/(1 + c²) times as far; ColNet as far as that and once more.
    for name, factor in (("cagrad", 1.4 / 1.16), ("colnet", 1 + 1.4 / 1.16)):
        for kind, rows in aggregate(name, rnd).items():
            sent = getattr(rnd, kind)
            torch.testing.assert_close(rows - sent.before, factor * sent.delta, atol=1e-4, rtol=1e-4)


def test_who_does_not_follow_identical_updates_is_named_rightly():
    rnd = identical_updates(5, 0)
    cases = [(name, {}) for name in sorted(OTHER_WAYS)] + STRAY
    assert [case for case in cases if is_everybodys_direction(rnd, *case)] == []


# Methods that move a client who is alone otherwise than its own training did.
NOT_ALONE = {
    "cagrad": "stretches a lone update",
    "fedhca2": "stretches a lone update",
    "colnet": "stretches a lone update",
    "fedadam": "moves every parameter by about lr",
    "fedyogi": "moves every parameter by about lr",
    "feddyn": "adds the server's correction",
}


def stays_its_own(rnd, name, options):
    new = aggregate(name, rnd, **options)
    return all(torch.allclose(rows, getattr(rnd, kind).after, atol=1e-6, rtol=1e-6) for kind, rows in new.items())


@some
@given(seed=st.integers(0, 99))
def test_one_client_alone_trains_locally(seed):
    rnd = make_round(make_parties([("depth",)]), seed)
    cases = [(name, {}) for name in sorted(set(ALGORITHMS) - {"local", *NOT_ALONE})]
    cases += [("fedsta", {"unify_every": 1}), ("fedavg", {"weighting": "samples"}), ("emr", {"shared": "all"})]
    cases += [("matfl", {"variant": variant}) for variant in ("soft", "voting")] + [("cagrad", {"c": 0.0})]
    cases += [("colnet", {"weight": 0.0}), ("fednova", {"steps": "sgd_momentum"})]
    assert [case for case in cases if not stays_its_own(rnd, *case)] == []


def test_who_does_not_train_locally_alone_is_named_rightly():
    rnd = make_round(make_parties([("depth",)]))
    cases = [(name, {}) for name in sorted(NOT_ALONE)] + STRAY
    assert [case for case in cases if stays_its_own(rnd, *case)] == []


def is_same_tree(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same_tree(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_same_tree, one, other))
    return one == other


@each_variant
def test_a_saved_and_loaded_server_goes_on_as_an_uninterrupted_one(name, options):
    """With clients that are absent now and then; what was saved does not change while the server goes on."""
    parties = make_parties([("depth",), ("edge", "depth"), ("depth",), TASKS])
    rounds = [without(make_round(parties, seed=k, index=k), absent) for k, absent in enumerate(({3}, {0}, {1}, set()))]
    server, later = make(name, parties, **options), make(name, parties, **options)
    with torch.no_grad():
        for rnd in rounds[:2]:
            server.aggregate(of(rnd, server))
        state = server.state_dict()
        kept = deepcopy(state)
        expected = [server.aggregate(of(rnd, server)) for rnd in rounds[2:]]
        assert is_same_tree(state, kept)
        later.load_state_dict(kept)
        got = [later.aggregate(of(rnd, later)) for rnd in rounds[2:]]
    for new, same in zip(got, expected, strict=True):
        assert set(new) == set(same) and all(torch.equal(new[kind], same[kind]) for kind in new)
    assert later.diagnostics() == server.diagnostics()


@given(sets=task_sets, seed=st.integers(0, 99))
@some
def test_neutral_coefficients_give_fedavg(sets, seed):
    """Clients that start alike and do not conflict: PCGrad is FedAvg; CAGrad with c = 0 always is."""
    parties = make_parties(sets)
    rnd = make_round(parties, seed, alike=True)
    positive = make_round(
        parties, seed, alike=True, updates=(rnd.encoder.delta.abs().numpy(), rnd.decoder.delta.abs().numpy())
    )
    assert_rows_close(aggregate("cagrad", rnd, c=0.0), aggregate("fedavg", rnd))
    assert_rows_close(aggregate("pcgrad", positive), aggregate("fedavg", positive))
