"""What holds for every registered method, whatever the federation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import TASKS, aggregate, make_parties, make_round, reorder

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.exchange import Owner, Party, Round, Rows

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
    parties = tuple(Party(k, p.id, p.dataset, p.tasks, p.samples) for k, p in enumerate(rnd.parties[i] for i in order))
    other, index = reorder(rnd, order)
    renamed = {}
    for kind in ("encoder", "decoder"):
        rows = getattr(other, kind)
        owners = tuple(Owner(order.index(o.client), o.task) for o in rows.owners)
        renamed[kind] = Rows(owners, rows.before, rows.after, rows.tensors)
    if name == "pcgrad" and max(len(rows.owners) for rows in renamed.values()) > 2:
        return
    new = aggregate(name, rnd, **options)
    got = aggregate(name, Round(0, parties, **renamed), **options)
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
def test_nobody_moves_if_nobody_trained_and_all_are_alike(name, options):
    parties = make_parties([("depth",), ("edge", "depth"), ("depth",)])
    rnd = make_round(parties, updates=(0.0, 0.0), alike=True)
    new = aggregate(name, rnd, **options)
    for kind, rows in new.items():
        torch.testing.assert_close(rows, getattr(rnd, kind).before, atol=1e-6, rtol=1e-6)


@some
@given(n=st.integers(1, 12), seed=st.integers(0, 99))
def test_identical_updates_are_everybodys_direction(n, seed):
    parties = make_parties([TASKS[: 1 + i % 4] for i in range(n)])
    base = make_round(parties, seed)
    updates = base.encoder.delta[0].numpy(), base.decoder.delta[0].numpy()
    rnd = make_round(parties, seed, alike=True, updates=updates)
    after = rnd.encoder.after
    for name in (
        "fedavg",
        "fedper",
        "fedprox",
        "fedrep",
        "fedbabu",
        "fedsta",
        "ditto",
        "single_task_fl",
        "matfl",
        "pcgrad",
    ):
        torch.testing.assert_close(aggregate(name, rnd)["encoder"], after, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(aggregate("matfl", rnd, variant="voting")["encoder"], after, atol=1e-5, rtol=1e-5)
    # CAGrad goes the same way, (1 + c)/(1 + c²) times as far.
    for kind in ("encoder", "decoder"):
        rows = getattr(rnd, kind)
        step = aggregate("cagrad", rnd)[kind] - rows.before
        torch.testing.assert_close(step, 1.4 / 1.16 * rows.delta, atol=1e-4, rtol=1e-4)


ALONE = ["fedavg", "fedprox", "fedper", "fedrep", "fedbabu", "fedsta", "ditto", "single_task_fl", "fedamp", "pcgrad"]


@some
@given(seed=st.integers(0, 99))
def test_one_client_alone_trains_locally(seed):
    """Where the definition says so: CAGrad and FedHCA² stretch a lone update, unit-length PCGrad forgets its length."""
    rnd = make_round(make_parties([("depth",)]), seed)
    cases = [(name, {}) for name in ALONE]
    cases += [("fedsta", {"unify_every": 1}), ("fedavg", {"weighting": "samples"}), ("fedmtl", {})]
    cases += [("matfl", {"variant": variant}) for variant in ("cluster", "soft", "voting")] + [("cagrad", {"c": 0.0})]
    for name, options in cases:
        for kind, rows in aggregate(name, rnd, **options).items():
            torch.testing.assert_close(rows, getattr(rnd, kind).after, atol=1e-6, rtol=1e-6)


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
