"""Methods whose novelty is the server's step alone: worked examples, references by formula, and what they reduce to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from toys import ENCODER, TASKS, aggregate, layout, make, make_parties, make_round, of, without

from fmtlbench.algorithms.colnet import cluster
from fmtlbench.algorithms.fedbone import attend, common_coefficients
from fmtlbench.algorithms.fednova import pulled, with_momentum
from fmtlbench.exchange import Owner, Round, Rows, TensorSlice
from fmtlbench.exchange.algebra import squared_distances

SETS = [("depth",), ("edge", "depth"), ("depth",), TASKS]
# Who is absent in each of four rounds.
ABSENCES = [set(), {0}, {1, 3}, {2}]


def rounds_of(parties, alike=False):
    return [
        without(make_round(parties, seed=k, index=k, alike=alike), absent) for k, absent in enumerate(ABSENCES)
    ]  # fmt: skip


def run(method, rounds):
    with torch.no_grad():
        return [method.aggregate(of(rnd, method)) for rnd in rounds]


def assert_close(got, expected, atol=2e-6):
    assert set(got) == set(expected)
    for kind in got:
        np.testing.assert_allclose(got[kind].numpy(), np.asarray(expected[kind]), atol=atol, rtol=1e-5)


def with_layouts(rnd, **layouts):
    """The round with other tensors in its rows."""
    changed = {kind: dataclasses.replace(getattr(rnd, kind), tensors=tensors) for kind, tensors in layouts.items()}
    return dataclasses.replace(rnd, **changed)


def groups_by_hand(kind, rows, parties, decoders, weighting):
    """Yield (name, places, shares) of the groups of a kind."""
    names = [kind if kind == "encoder" or decoders == "all" else owner.task for owner in rows.owners]
    for name in sorted(set(names)):
        places = [k for k, other in enumerate(names) if other == name]
        weights = [1.0 if weighting == "equal" else parties[rows.owners[k].client].samples for k in places]
        yield name, places, np.array(weights) / sum(weights)


# -- optimisers on the server ------------------------------------------------------------------------------------------


def optimise_by_hand(name, rounds, lr, beta1, beta2=0.0, tau=0.0, decoders="all", weighting="equal"):
    """New rows of every round in double precision, from the papers' formulas."""
    kept, results = {}, []
    for rnd in rounds:
        new = {}
        for kind in ("encoder", "decoder"):
            rows = getattr(rnd, kind)
            before, delta = rows.before.double().numpy(), (rows.after.double() - rows.before.double()).numpy()
            new[kind] = np.empty_like(before)
            for group, places, shares in groups_by_hand(kind, rows, rnd.parties, decoders, weighting):
                mean, start = shares @ delta[places], shares @ before[places]
                m, v = kept.get((kind, group), (np.zeros_like(mean), np.full_like(mean, tau**2)))
                if name == "fedavgm":
                    m = beta1 * m + mean
                    step = lr * m
                else:
                    m = beta1 * m + (1 - beta1) * mean
                    sign = {"fedadam": None, "fedyogi": np.sign(v - mean**2)}[name]
                    v = beta2 * v + (1 - beta2) * mean**2 if sign is None else v - (1 - beta2) * mean**2 * sign
                    step = lr * m / (np.sqrt(v) + tau)
                kept[kind, group] = m, v
                new[kind][places] = start + step
        results.append(new)
    return results


@pytest.mark.parametrize("how", [{}, {"decoders": "task"}, {"decoders": "task", "weighting": "samples"}], ids=str)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("fedavgm", {"lr": 1.0, "momentum": 0.9}),
        ("fedavgm", {"lr": 0.3, "momentum": 0.5}),
        ("fedadam", {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3}),
        ("fedyogi", {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3}),
        ("fedyogi", {"lr": 0.05, "beta1": 0.3, "beta2": 0.6, "tau": 0.05}),
    ],
    ids=str,
)
def test_server_optimisers_follow_their_formulas_with_absent_clients(name, given, how):
    parties = make_parties(SETS)
    rounds = rounds_of(parties)
    numbers = {"beta1" if key == "momentum" else key: value for key, value in given.items()}
    expected = optimise_by_hand(name, rounds, **numbers, **how)
    for got, wanted in zip(run(make(name, parties, **given, **how), rounds), expected, strict=True):
        assert_close(got, wanted)


def test_the_papers_numbers_are_the_defaults():
    parties = make_parties(SETS)
    rounds = rounds_of(parties)
    defaults = {
        "fedavgm": {"lr": 1.0, "beta1": 0.9},
        "fedadam": {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3},
        "fedyogi": {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3},
    }
    for name, numbers in defaults.items():
        expected = optimise_by_hand(name, rounds, **numbers)
        for got, wanted in zip(run(make(name, parties), rounds), expected, strict=True):
            assert_close(got, wanted)


@pytest.mark.parametrize("how", [{}, {"weighting": "samples"}, {"shared": "encoder"}], ids=str)
def test_fedavgm_without_momentum_is_fedavg(how):
    """To rounding: the mean of starts and the mean of updates are added."""
    parties = make_parties(SETS)
    rounds = rounds_of(parties)
    plain = run(make("fedavg", parties, **how), rounds)
    for got, wanted in zip(run(make("fedavgm", parties, momentum=0.0, **how), rounds), plain, strict=True):
        assert_close(got, wanted)


@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_adaptive_steps_are_about_the_learning_rate_whatever_the_updates(name):
    """From the second moment's start τ² on; here after many equal rounds, where both moments have settled."""
    parties = make_parties(SETS)
    for scale in (0.1, 100.0):
        rnd = make_round(parties, alike=True, updates=(scale, -scale))
        method = make(name, parties, lr=1e-3)
        for _ in range(1500):
            new = method.aggregate(of(rnd, method))
        step = new["encoder"] - rnd.encoder.before
        torch.testing.assert_close(step, torch.full_like(step, 1e-3), rtol=0.05, atol=2e-7)


def test_running_statistics_are_averaged_and_not_optimised():
    parties = make_parties(SETS)
    (*parameters, last) = layout(ENCODER)
    tensors = (*parameters, last._replace(statistic=True))
    rnd = with_layouts(make_round(parties), encoder=tensors)
    mean, split = rnd.encoder.after.mean(0), last.start
    shares = np.array([party.samples for party in parties]) / sum(party.samples for party in parties)
    for name, options in (("fedavgm", {"lr": 0.5}), ("fedadam", {}), ("fedyogi", {}), ("emr", {})):
        whole, got = (aggregate(name, each, **options)["encoder"] for each in (make_round(parties), rnd))
        torch.testing.assert_close(got[:, split:], mean[split:].expand(4, -1), atol=1e-6, rtol=1e-6)
        if name != "emr":  # whose factors are means over the columns
            assert torch.equal(got[:, :split], whole[:, :split]) and not torch.allclose(got, whole)
    got = aggregate("fednova", rnd)["encoder"]
    np.testing.assert_allclose(got[0, split:], shares @ rnd.encoder.after[:, split:].double().numpy(), atol=2e-6)
    # What is kept has no statistics in it.
    method = make("fedadam", parties)
    run(method, [rnd, rnd])
    assert method.state_dict()["moments"]["encoder"].shape == (2, split)


# -- FedNova -----------------------------------------------------------------------------------------------------------


def normalise_by_hand(rnd, tau, decoders, weighting):
    new = {}
    for kind in ("encoder", "decoder"):
        rows = getattr(rnd, kind)
        before, delta = rows.before.double().numpy(), (rows.after.double() - rows.before.double()).numpy()
        new[kind] = np.empty_like(before)
        for _, places, shares in groups_by_hand(kind, rows, rnd.parties, decoders, weighting):
            steps = np.array([tau[rows.owners[k].client] for k in places])
            update = sum(p * delta[k] / t for p, k, t in zip(shares, places, steps))
            new[kind][places] = shares @ before[places] + (shares @ steps) * update
    return new


@pytest.mark.parametrize("decoders", ["all", "task"])
@pytest.mark.parametrize("weighting", ["samples", "equal"])
@pytest.mark.parametrize("form", ["count", "sgd_momentum", "proximal"])
def test_fednova_follows_its_formula(form, weighting, decoders):
    parties = make_parties(SETS)
    weigh = {
        "count": lambda k: k,
        # A gradient of step j is in all later steps, too: 1 + ρ + ρ² + … times.
        "sgd_momentum": lambda k: sum(sum(0.8**i for i in range(k - j)) for j in range(k)),
        # Of each step, the share that all later ones leave.
        "proximal": lambda k: sum((1 - 0.05) ** (k - 1 - j) for j in range(k)),
    }[form]
    method = make("fednova", parties, steps=form, rho=0.8, pull=0.05, weighting=weighting, decoders=decoders)
    for rnd in rounds_of(parties):
        assert len(set(rnd.steps.values())) == len(rnd.steps) > 1
        tau = {i: weigh(count) for i, count in rnd.steps.items()}
        assert_close(method.aggregate(of(rnd, method)), normalise_by_hand(rnd, tau, decoders, weighting), atol=5e-6)
        told = method.diagnostics()["local_steps"]
        assert told == pytest.approx({parties[i].id: value for i, value in tau.items()})
        assert method.notes() == []


def test_weights_of_steps_at_their_limits():
    for count in (1, 7, 400):
        assert with_momentum(count, 0.0) == count
        assert pulled(count, 1e-12) == pytest.approx(count, rel=1e-9)
    assert with_momentum(1, 0.9) == pytest.approx(1) and pulled(1, 0.5) == pytest.approx(1)
    assert with_momentum(0, 0.9) == pulled(0, 0.5) == 0


@pytest.mark.parametrize("form", ["count", "sgd_momentum", "proximal"])
def test_fednova_with_equal_steps_is_fedavg_and_says_so(form):
    parties = make_parties(SETS)
    rnd = dataclasses.replace(make_round(parties), steps=dict.fromkeys(range(4), 6))
    method = make("fednova", parties, steps=form)
    assert_close(method.aggregate(of(rnd, method)), aggregate("fedavg", rnd, weighting="samples"))
    assert method.notes() and "FedAvg" in method.notes()[0]


def test_fednova_follows_a_client_without_steps_nowhere():
    parties = make_parties([("depth",), ("depth",)])
    rnd = make_round(parties, alike=True, updates=(np.array([[0.0], [1.0]]), 0.0))
    method = make("fednova", parties, weighting="equal", shared="encoder")
    rnd = dataclasses.replace(rnd, steps={0: 0, 1: 4})
    # Half of the clients took 4 steps: 2 on average, of a quarter each, half of the weight.
    step = method.aggregate(of(rnd, method))["encoder"] - rnd.encoder.before
    torch.testing.assert_close(step, torch.full_like(step, 0.25), atol=1e-6, rtol=0)


def test_fednova_names_the_client_whose_steps_are_missing():
    parties = make_parties(SETS)
    rnd = dataclasses.replace(make_round(parties, index=4), steps={0: 3, 2: 5, 3: 1})
    with pytest.raises(ValueError, match=r"client c1 did not tell .* in round 5.*got one from c0, c2, c3"):
        aggregate("fednova", rnd)
    with pytest.raises(ValueError, match="got one from nobody"):
        aggregate("fednova", dataclasses.replace(rnd, steps={}))


# -- LG-FedAvg ---------------------------------------------------------------------------------------------------------


def test_lg_fedavg_averages_decoders_by_task_and_images():
    parties = make_parties(SETS)
    rnd = make_round(parties)
    new = aggregate("lg_fedavg", rnd)
    assert set(new) == {"decoder"}
    rows, expected = rnd.decoder, np.empty(rnd.decoder.after.shape)
    for _, places, shares in groups_by_hand("decoder", rows, parties, "task", "samples"):
        expected[places] = shares @ rows.after.double().numpy()[places]
    assert_close(new, {"decoder": expected})


def test_lg_fedavg_clients_without_a_common_task_exchange_nothing():
    rnd = make_round(make_parties([("depth", "edge"), ("normals",), ("semseg",)]))
    method = make("lg_fedavg", rnd.parties)
    torch.testing.assert_close(method.aggregate(of(rnd, method))["decoder"], rnd.decoder.after, rtol=0, atol=0)
    assert "local training" in method.notes()[0]
    assert make("lg_fedavg", make_parties(SETS)).notes() == []


def test_lg_fedavg_averages_encoders_while_it_warms_up():
    parties = make_parties(SETS)
    method = make("lg_fedavg", parties, warmup_rounds=2)
    assert [method.shared(index) for index in range(3)] == [("encoder", "decoder")] * 2 + [("decoder",)]
    rnd = make_round(parties, index=1)
    new = method.aggregate(of(rnd, method))
    assert torch.equal(new["encoder"], aggregate("fedper", rnd, weighting="samples")["encoder"])
    assert torch.equal(new["decoder"], aggregate("lg_fedavg", rnd)["decoder"])
    assert method.common == ()  # an encoder of the warm-up must not come back to a client that missed a round


def test_lg_fedavg_of_whole_models_averages_those_with_the_same_tasks():
    parties = make_parties([("depth", "edge"), ("edge", "depth"), ("normals", "edge")], merged=True)
    rnd = make_round(parties)
    new = aggregate("lg_fedavg", rnd, weighting="equal")["decoder"]
    torch.testing.assert_close(new[:2], rnd.decoder.after[:2].mean(0).expand(2, -1))
    torch.testing.assert_close(new[2], rnd.decoder.after[2])


# -- FedBN -------------------------------------------------------------------------------------------------------------

HOME = [t for t in layout(ENCODER) if t.layer == "n"]


@pytest.mark.parametrize(
    ("kind_of_norm", "norms", "stays"),
    [("batch", "batch", True), ("batch", "all", True), ("other", "batch", False), ("other", "all", True)],
)
@pytest.mark.parametrize("how", [{}, {"decoders": "task"}, {"weighting": "samples"}], ids=str)
def test_fedbn_is_fedavg_but_for_norms(kind_of_norm, norms, stays, how):
    parties = make_parties(SETS)
    rnd = with_layouts(make_round(parties), encoder=layout(ENCODER, norm=kind_of_norm))
    method = make("fedbn", parties, norms=norms, **how)
    new = method.aggregate(of(rnd, method))
    plain = aggregate("fedavgm", rnd, momentum=0.0, **how)
    after = rnd.encoder.after
    for t in rnd.encoder.tensors:
        own = stays and t.layer == "n"
        expected = after if own else plain["encoder"]
        here = slice(t.start, t.stop)
        torch.testing.assert_close(new["encoder"][:, here], expected[:, here], atol=0 if own else 2e-6, rtol=0)
    torch.testing.assert_close(new["decoder"], plain["decoder"], atol=2e-6, rtol=0)
    assert [t.name for t in method.kept_home("encoder", rnd.encoder.tensors)] == (
        [t.name for t in HOME] if stays else []
    )
    assert method.diagnostics() == {"kept_home": {"encoder": 6 if stays else 0, "decoder": 0}}


def test_fedbn_without_norms_is_fedavg_and_says_so():
    parties = make_parties(SETS)
    rnd = with_layouts(make_round(parties), encoder=layout(ENCODER, norm=""))
    for how in ({}, {"weighting": "samples"}, {"shared": "encoder"}):
        method = make("fedbn", parties, **how)
        got, plain = method.aggregate(of(rnd, method)), aggregate("fedavg", rnd, **how)
        assert set(got) == set(plain) and all(torch.equal(got[kind], plain[kind]) for kind in got)
        assert "no batch norm" in method.notes()[0] and "algo.norms=all" in method.notes()[0]
    method = make("fedbn", parties, norms="all")
    method.aggregate(of(rnd, method))
    assert "no normalisation layer" in method.notes()[0] and "algo." not in method.notes()[0]
    method.aggregate(of(make_round(parties), method))
    assert method.notes() == []


def test_fedbn_keeps_running_statistics_home():
    parties = make_parties([("depth",), ("edge",)])
    statistic = TensorSlice("n.running_mean", "n", 36, 39, statistic=True)
    rnd = with_layouts(make_round(parties), encoder=(*layout(ENCODER)[:-1], statistic))
    for norms in ("batch", "all"):
        new = aggregate("fedbn", rnd, norms=norms)["encoder"]
        assert torch.equal(new[:, 36:], rnd.encoder.after[:, 36:])
        assert statistic in make("fedbn", parties, norms=norms).kept_home("encoder", rnd.encoder.tensors)


# -- task means --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["equal", "samples"])
def test_task_means_by_hand(weighting):
    parties = make_parties(SETS)
    for rnd in rounds_of(parties):
        after, members = rnd.encoder.after.double().numpy(), [parties[o.client] for o in rnd.encoder.owners]
        counts = np.array([1.0 if weighting == "equal" else party.samples for party in members])
        by_task = {}
        for task in TASKS:
            holders = [k for k, party in enumerate(members) if task in party.tasks]
            if holders:
                by_task[task] = counts[holders] @ after[holders] / counts[holders].sum()
        encoders = [np.mean([by_task[task] for task in party.tasks], axis=0) for party in members]
        decoders = np.empty(rnd.decoder.after.shape)
        for _, places, shares in groups_by_hand("decoder", rnd.decoder, parties, "task", weighting):
            decoders[places] = shares @ rnd.decoder.after.double().numpy()[places]
        assert_close(aggregate("task_means", rnd, weighting=weighting), {"encoder": encoders, "decoder": decoders})


@pytest.mark.parametrize("weighting", ["equal", "samples"])
def test_task_means_of_one_task_for_all_is_fedavg(weighting):
    rnd = make_round(make_parties([("depth",)] * 5))
    got, plain = (aggregate(name, rnd, weighting=weighting) for name in ("task_means", "fedavg"))
    assert_close(got, {kind: rows.numpy() for kind, rows in plain.items()})
    alone = aggregate("task_means", rnd, weighting=weighting, shared="encoder")
    assert_close(alone, {"encoder": aggregate("fedper", rnd, weighting=weighting)["encoder"].numpy()})


def test_task_means_leave_strangers_alone():
    rnd = make_round(make_parties([("depth",), ("edge", "normals"), ("semseg",)]))
    for kind, rows in aggregate("task_means", rnd).items():
        torch.testing.assert_close(rows, getattr(rnd, kind).after, atol=1e-6, rtol=1e-6)


# -- EMR ---------------------------------------------------------------------------------------------------------------


def encoder_round(before, after, index=0, present=None, parties=None):
    """A round of encoders alone, of these values."""
    after = torch.tensor(after, dtype=torch.float32)
    before = torch.tensor(before, dtype=torch.float32).expand_as(after).clone()
    parties = parties or make_parties([("depth",)] * len(after))
    present = range(len(after)) if present is None else present
    tensors = (TensorSlice("a.weight", "a", 0, after.shape[1]),)
    return Round(index, parties, Rows(tuple(map(Owner, present)), before, after, tensors))


VECTORS = np.array([(1, -2, 0.5, 0), (3, 1, -0.5, -1), (-1, -4, 0.2, 2)])


def test_emr_golden_example():
    start = np.array([0.5, -1.0, 2.0, 0.25])
    rnd = encoder_round(start, start + VECTORS)
    method = make("emr", rnd.parties)
    new = method.aggregate(rnd)["encoder"].numpy()
    factors = np.array([0.466667, 1.833333, 1.107692])
    masks = np.array([(1, 1, 1, 0), (1, 0, 0, 0), (0, 1, 1, 1)])
    np.testing.assert_allclose(new - start, factors[:, None] * masks * (3, -4, 0.5, 2), atol=2e-6)
    assert list(method.diagnostics()["factors"]["encoder"].values()) == pytest.approx(factors, abs=1e-6)


def test_emr_measures_from_the_first_start_for_ever():
    """Also a client that joins later: θ_0 is what the others had before their first round, as it has."""
    start, parties = np.zeros(4), make_parties([("depth",)] * 3)
    method = make("emr", parties)
    first = method.aggregate(encoder_round(start, VECTORS[:2], present=(0, 1), parties=parties))["encoder"]
    after = np.array([[0.1, 0.2, 0.3, 0.4], [-0.1, 0.1, 0.1, -0.1], [0.5, 0.5, -0.5, 0.1]])
    after[:2] += first.numpy()
    rnd = encoder_round(np.vstack([first, start]), after, index=1, parties=parties)
    new = method.aggregate(rnd)["encoder"]
    other = make("emr", parties)
    assert_close(
        {"encoder": new}, {"encoder": other.aggregate(encoder_round(start, after, parties=parties))["encoder"]}
    )
    np.testing.assert_array_equal(method.state_dict()["starts"]["encoder"], start)


def test_emr_sends_the_start_to_a_client_that_agrees_nowhere():
    start, vectors = np.array([1.0, 2.0, 3.0]), np.array([[1, 1, 1], [-3, -2, -4], [0, 0, 0]])
    method = make("emr", make_parties([("depth",)] * 3))
    new = method.aggregate(encoder_round(start, start + vectors))["encoder"]
    np.testing.assert_allclose(new, [start, start + vectors[1], start], atol=1e-6)
    assert list(method.diagnostics()["factors"]["encoder"].values()) == [0.0, 1.0, 0.0]


def test_emr_keeps_everybodys_mean_size():
    """That is what the factors are for."""
    rnd = make_round(make_parties([("depth",)] * 5), alike=True)
    for kind, new in aggregate("emr", rnd, shared="all").items():
        rows = getattr(rnd, kind)
        sizes = [(values - rows.before).abs().mean(1) for values in (rows.after, new)]
        torch.testing.assert_close(*sizes, rtol=1e-4, atol=1e-7)


# -- FedBone -----------------------------------------------------------------------------------------------------------

GRADIENTS = np.array([(1.0, 0, 1), (-1, 1, 0), (0, -1, 1)])


@pytest.mark.parametrize("sign", [1, -1])
def test_fedbone_golden_example(sign):
    """In both readings of what a gradient is: an update, or what it goes against."""
    start = np.array([0.3, -0.2, 0.1])
    parties = make_parties([("depth",)] * 3)
    method = make("fedbone", parties, weighting="equal")
    method.load_state_dict({"history": {"encoder": torch.tensor([1.0, 1.0, 1.0]) * sign}})
    new = method.aggregate(encoder_round(start, start + sign * GRADIENTS, index=1, parties=parties))["encoder"].numpy()
    common = sign * np.array([0.030798, 0.324049, 0.941350])
    np.testing.assert_allclose(new - start, [common] * 3, atol=2e-6)
    assert list(method.diagnostics()["attention"]["encoder"].values()) == pytest.approx(
        [1.592395, 0.703803, 0.703803], abs=1e-6
    )
    np.testing.assert_allclose(method.state_dict()["history"]["encoder"], common, atol=2e-6)


def project_by_hand(gradients, history, shares):
    """FedBone's step on vectors, one after the other."""
    scale = np.ones(len(gradients))
    if history is not None:
        cosine = gradients @ history / np.linalg.norm(gradients, axis=1) / np.linalg.norm(history)
        scale = len(gradients) * np.exp(cosine) / np.exp(cosine).sum()
    scaled, total = scale[:, None] * gradients, 0.0
    for i, share in enumerate(shares):
        v = scaled[i].copy()
        for j, other in enumerate(scaled):
            if j != i and v @ other < 0:
                v -= v @ other / (other @ other) * other
        total = total + share * v
    return total


@pytest.mark.parametrize("weighting", ["samples", "equal"])
def test_fedbone_follows_its_steps_over_rounds_with_absent_clients(weighting):
    parties = make_parties(SETS)
    rounds, histories = rounds_of(parties), {}
    method = make("fedbone", parties, shared="all", weighting=weighting)
    for rnd, new in zip(rounds, run(method, rounds), strict=True):
        expected = {}
        for kind in ("encoder", "decoder"):
            rows = getattr(rnd, kind)
            order = sorted(
                range(len(rows.owners)), key=lambda k, rows=rows: (rows.owners[k].client, rows.owners[k].task)
            )
            counts = np.array([parties[rows.owners[k].client].samples for k in order], dtype=float)
            shares = counts / counts.sum() if weighting == "samples" else np.full(len(order), 1 / len(order))
            deltas = (rows.after.double() - rows.before.double()).numpy()[order]
            histories[kind] = project_by_hand(deltas, histories.get(kind), shares)
            expected[kind] = rows.before.double().numpy() + histories[kind]
        assert_close(new, expected, atol=5e-6)


def test_fedbone_attention_without_directions_is_even():
    products = np.diag([4.0, 0.0, 1.0])
    even = attend(products, np.array([0.0, 0.0, 0.0]), 0.0)
    np.testing.assert_allclose(even, 1)
    some = attend(products, np.array([2.0, 0.0, -1.0]), 1.0)  # cosines 1, none, −1
    np.testing.assert_allclose(some, 3 * np.exp([1, 0, -1]) / np.exp([1, 0, -1]).sum())


def test_fedbone_of_agreeing_updates_is_fedavg_in_its_first_round():
    parties = make_parties(SETS)
    rnd = make_round(parties, alike=True)
    positive = make_round(
        parties, alike=True, updates=(rnd.encoder.delta.abs().numpy(), rnd.decoder.delta.abs().numpy())
    )
    got = aggregate("fedbone", positive, shared="all")
    assert_close(got, aggregate("fedavg", positive, weighting="samples"))


def test_fedbone_order_of_meeting_is_that_of_names():
    products = GRADIENTS @ GRADIENTS.T
    shares, attention = np.full(3, 1 / 3), np.ones(3)
    found = [common_coefficients(products, attention, shares, order) @ GRADIENTS for order in ((0, 1, 2), (2, 0, 1))]
    assert not np.allclose(*found)  # it matters
    ids = ("b", "c", "a")
    parties = tuple(dataclasses.replace(p, id=name) for p, name in zip(make_parties([("depth",)] * 3), ids))
    new = make("fedbone", parties, weighting="equal").aggregate(encoder_round(np.zeros(3), GRADIENTS, parties=parties))
    np.testing.assert_allclose(new["encoder"][0], found[1], atol=1e-6)


# -- ColNet ------------------------------------------------------------------------------------------------------------


def test_colnet_without_weight_is_the_group_mean():
    """That is single-task FL, where groups are alike clients."""
    parties = make_parties([("depth",), ("edge",), ("depth",), ("edge",), TASKS])
    rnd = make_round(parties)
    new = aggregate("colnet", rnd, weight=0.0)
    assert torch.equal(new["encoder"], aggregate("single_task_fl", rnd)["encoder"])
    assert not torch.allclose(aggregate("colnet", rnd)["encoder"], new["encoder"])


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_colnet_adds_the_conflict_averse_update_of_its_groups(weight):
    """Which is CAGrad's on the groups' means, whose own test says that it is the optimum."""
    parties = make_parties([("depth",), ("edge",), ("depth",), ("edge",), TASKS])
    rnd = make_round(parties)
    places = [[0, 2], [1, 3], [4]]  # alike: the datasets take turns
    starts, ends = (
        torch.stack([values[members].mean(0) for members in places])
        for values in (rnd.encoder.before, rnd.encoder.after)
    )
    groups = make_parties([("depth",)] * 3)
    common = aggregate(
        "cagrad",
        Round(
            0, groups, Rows(tuple(map(Owner, range(3))), torch.zeros_like(starts), ends - starts, rnd.encoder.tensors)
        ),
        shared="encoder",
        c=0.4,
    )["encoder"]
    expected = torch.empty_like(rnd.encoder.after)
    for members, end in zip(places, ends):
        expected[members] = end + weight * common[0]
    assert_close(aggregate("colnet", rnd, weight=weight), {"encoder": expected.numpy()})


def test_colnet_groups():
    sets = [("depth",), ("depth",), ("edge", "depth"), ("depth", "edge"), ("depth",)]
    parties = make_parties(sets)
    rnd = make_round(parties)
    found = {}
    for how in ("alike", "task"):
        method = make("colnet", parties, groups=how)
        method.aggregate(of(rnd, method))
        found[how] = list(method.diagnostics()["groups"].values())
    assert found == {"alike": [0, 1, 2, 3, 0], "task": [0, 0, 1, 1, 0]}  # with every other client on another dataset


def test_colnet_clusters_by_the_direction_of_updates():
    parties = make_parties([("depth",)] * 6)
    rng = np.random.default_rng(0)
    ways, sizes = rng.normal(size=(3, 39)), np.array([1, 50, 1, 0.02, 1, 1])
    which = np.array([0, 1, 2, 0, 1, 2])
    updates = sizes[:, None] * (ways[which] + 0.1 * rng.normal(size=(6, 39)))
    rnd = make_round(parties, updates=(updates, 0.0))
    method = make("colnet", parties, groups="kmeans", k=3, weight=0.0)
    new = method.aggregate(of(rnd, method))["encoder"]
    assert list(method.diagnostics()["groups"].values()) == which.tolist()
    torch.testing.assert_close(new[0], rnd.encoder.after[[0, 3]].mean(0))


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_clusters_are_a_fixed_point_of_k_means(k):
    x = np.random.default_rng(k).normal(size=(8, 20))
    labels = np.array(cluster(x @ x.T, k))
    assert len(set(labels)) == min(k, 8)
    centres = np.stack([x[labels == label].mean(0) for label in range(labels.max() + 1)])
    distances = ((x[:, None] - centres) ** 2).sum(2)
    assert (distances.argmin(1) == labels).all()


def test_vectors_that_are_one_and_the_same_are_one_cluster():
    assert set(cluster(np.ones((4, 4)), 3)) == {0}
    assert squared_distances(np.ones((4, 4))).max() == 0


def test_colnet_does_not_exchange_in_the_last_round():
    method = make("colnet", make_parties(SETS))
    assert method.shared(0) == ("encoder",)  # while the number of rounds is not known
    method.rounds = 3
    assert [method.shared(index) for index in range(3)] == [("encoder",), ("encoder",), ()]
    assert method.notes() == []
    method.rounds = 1
    assert method.shared(0) == () and "nothing was exchanged" in method.notes()[0]


# -- in common ---------------------------------------------------------------------------------------------------------

STATEFUL = {"fedavgm": {}, "fedadam": {"decoders": "task"}, "fedyogi": {}, "emr": {"shared": "all"}, "fedbone": {}}


@pytest.mark.parametrize("name", STATEFUL)
def test_a_server_without_its_state_goes_elsewhere(name):
    """So that the tests of saving and loading say something."""
    parties = make_parties(SETS)
    rounds = rounds_of(parties)
    new = run(make(name, parties, **STATEFUL[name]), rounds)[-1]
    fresh = run(make(name, parties, **STATEFUL[name]), rounds[-1:])[0]
    assert any(not torch.allclose(new[kind], fresh[kind], atol=1e-4) for kind in new)
