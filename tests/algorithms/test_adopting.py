"""Methods whose clients prepare a model before they train: FedALA, FedFomo, IFCA."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from judging_clients import TENSORS, WIDTHS, JudgingClient, JudgingFederation
from toy_rounds import measured_for
from toys import aggregate, make, make_parties, make_round, of, renumbered, through_disk

from fmtlbench.algorithms._foreign import encoder_losses
from fmtlbench.algorithms.fedala import choose_tensors, join_spans, last_stage
from fmtlbench.algorithms.fedfomo import fomo_weights, loss_gains
from fmtlbench.algorithms.ifca import add_noise, lowest
from fmtlbench.exchange import Round, Rows, TensorSlice

SETS = [("depth", "edge"), ("depth",), ("semseg", "normals", "edge"), ("edge",)]
ALL_FOUR = [0, 1, 2, 3]


def random_row(seed, kind="encoder"):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=WIDTHS[kind])).float()


def adopt(method, client, index=1):
    client.round = index
    with torch.no_grad():
        method.adopt(client)


# -- judging encoders --------------------------------------------------------------------------------------------------


def test_losses_of_encoders_are_means_over_images_and_leave_the_clients_own():
    client = JudgingClient(make_parties(SETS)[0])
    own, encoders = client.live["encoder"][0].clone(), [random_row(1), random_row(2)]
    found = encoder_losses(client, encoders, client.batches())
    assert found.shape == (2, 2) and torch.equal(client.live["encoder"][0], own)
    for row, encoder in zip(found, encoders):
        client.live["encoder"][0].copy_(encoder)
        whole = client.losses({"image": client.images}).detach().numpy()  # 10 images: batches of 4, 4 and 2
        np.testing.assert_allclose(row, whole, rtol=1e-5)


def test_no_images_to_judge_by_is_said():
    client = JudgingClient(make_parties(SETS)[0])
    with pytest.raises(ValueError, match="client c0 has no images to judge encoders by"):
        encoder_losses(client, [random_row(1)], client.batches(held_out=True))


def test_running_statistics_are_no_parameters():
    tensors = (*TENSORS["encoder"], TensorSlice("n.running_mean", "encoder", 39, 42, statistic=True))
    assert Rows((), torch.zeros(0, 44), torch.zeros(0, 44), tensors).parameters == 39


# -- FedALA ------------------------------------------------------------------------------------------------------------


def ala_client(seed=0, party=0, anchors=("encoder",)):
    client = JudgingClient(make_parties(SETS)[party], seed=seed)
    for kind in client.live:
        for place, row in enumerate(client.live[kind]):
            row.copy_(random_row([seed, place, 1], kind))
    for kind in anchors:
        client.anchor[kind] = [random_row([seed, place, 2], kind) for place in range(len(client.live[kind]))]
    return client


def reference_ala(client, mixed, weights, own, common, passes, eta, share):
    """θ̂ and W of an encoder by loops over elements, and the mean loss of every pass."""
    images = client.images[: max(1, round(share * len(client.images)))].numpy().astype(float)
    scales, omega = client.scales.numpy().astype(float), client.weights.numpy().astype(float)
    offsets = [float(row.double().mean()) for row in client.live["decoder"]]
    losses = []

    def mixture():
        theta = common.copy()
        for e in mixed:
            theta[e] = own[e] + (common[e] - own[e]) * weights[e]
        return theta

    for _ in range(passes):
        seen = 0.0
        for start in range(0, len(images), 4):
            batch, theta = images[start : start + 4], mixture()
            gradient = np.zeros_like(theta)
            for a, offset, w in zip(scales, offsets, omega):
                gap = a * theta + offset - batch
                gradient += w * a * gap.mean(0)
                seen += w * (gap**2).sum(1).mean() / 2 * len(batch)
            for e in mixed:
                weights[e] = min(1.0, max(0.0, weights[e] - eta * gradient[e] * (common[e] - own[e])))
        losses.append(seen / len(images))
    return mixture(), weights, losses


@pytest.mark.parametrize("layers, first", [(("last_stage",), 18), (("all",), 0), (("n.", "b.bias"), None)])
def test_fedala_learns_its_weights_as_the_formula_says(layers, first):
    method = make("fedala", make_parties(SETS), layers=layers, eta=0.05, max_passes=3)
    client = ala_client(seed=3)
    own, common = (r.numpy().astype(float) for r in (client.live["encoder"][0].clone(), client.anchor["encoder"][0]))
    mixed = list(range(first, 39)) if first is not None else [*range(12, 18), *range(36, 39)]
    theta, weights, losses = reference_ala(client, mixed, np.ones(39), own, common, 3, 0.05, 0.8)
    adopt(method, client)
    (learned,) = client.memory["weights"]["encoder"]
    np.testing.assert_allclose(learned, weights[mixed], atol=1e-4)
    np.testing.assert_allclose(client.live["encoder"][0], theta, atol=1e-4)
    assert 0 < weights[mixed].min() < 0.9 and losses[-1] < losses[0]
    assert client.looks == [(None, 0.8, False)] * 3
    # Later rounds: a pass each, from the weights that were learned.
    client.live["encoder"][0].copy_(torch.from_numpy(own))
    theta, weights, _ = reference_ala(client, mixed, weights, own, common, 1, 0.05, 0.8)
    adopt(method, client, index=2)
    np.testing.assert_allclose(client.memory["weights"]["encoder"][0], weights[mixed], atol=1e-4)
    np.testing.assert_allclose(client.live["encoder"][0], theta, atol=1e-4)
    assert len(client.looks) == 4


def test_fedala_ends_its_first_learning_when_losses_lie_together():
    client = ala_client(seed=3)
    own, common = (r.numpy().astype(float) for r in (client.live["encoder"][0].clone(), client.anchor["encoder"][0]))
    *_, losses = reference_ala(client, range(18, 39), np.ones(39), own, common, 40, 0.01, 0.8)
    for threshold in (0.1, 0.5):
        ends = next(n for n in range(4, 41) if np.std(losses[n - 4 : n]) < threshold)
        client = ala_client(seed=3)
        method = make("fedala", make_parties(SETS), eta=0.01, window=4, threshold=threshold, max_passes=40)
        adopt(method, client)
        assert len(client.looks) == ends > 4
    client = ala_client(seed=3)
    adopt(make("fedala", make_parties(SETS)), client)  # ten losses at least, by default
    assert 10 <= len(client.looks) <= 30


@pytest.mark.parametrize("options", [{}, {"layers": ("all",)}, {"shared": "all"}])
def test_fedala_whose_weights_stay_one_takes_the_common_model(options):
    method = make("fedala", make_parties(SETS), eta=0.0, max_passes=2, **options)
    client = ala_client(anchors=method.shared(1))
    kept = [row.clone() for row in client.live["decoder"]]
    adopt(method, client)
    assert torch.equal(client.live["encoder"][0], client.anchor["encoder"][0])
    expected = client.anchor.get("decoder", kept)
    assert all(torch.equal(mine, row) for mine, row in zip(client.live["decoder"], expected, strict=True))


def test_fedala_whose_weights_are_zero_keeps_its_own_upper_layers():
    method = make("fedala", make_parties(SETS), eta=0.0)
    client = ala_client()
    own = client.live["encoder"][0].clone()
    client.memory["weights"] = {"encoder": [torch.zeros(21)]}
    adopt(method, client)
    assert torch.equal(client.live["encoder"][0][18:], own[18:])
    assert torch.equal(client.live["encoder"][0][:18], client.anchor["encoder"][0][:18])


def test_fedala_mixes_decoders_whole_if_they_travel():
    method = make("fedala", make_parties(SETS), shared="all", eta=0.05, max_passes=2)
    client = ala_client(seed=1, party=2, anchors=("encoder", "decoder"))
    own = [row.clone() for row in client.live["decoder"]]
    adopt(method, client)
    weights = client.memory["weights"]["decoder"]
    assert [len(w) for w in weights] == [WIDTHS["decoder"]] * 3
    assert all(0 <= w.min() < 1 and w.max() <= 1 for w in weights)
    for mine, old, common, w in zip(client.live["decoder"], own, client.anchor["decoder"], weights):
        torch.testing.assert_close(mine, old + (common - old) * w)


def test_fedala_adopts_nothing_before_the_first_reply():
    client = ala_client(anchors=())
    own = client.live["encoder"][0].clone()
    adopt(make("fedala", make_parties(SETS)), client, index=0)
    assert torch.equal(client.live["encoder"][0], own) and client.memory == {} and client.looks == []


def test_fedala_averages_as_fedavg_and_brings_who_was_absent_up_to_date():
    parties = make_parties(SETS)
    rnd = make_round(parties)
    for options, plain in (({}, {"shared": "encoder"}), ({"shared": "all"}, {})):
        mine, fedavg = aggregate("fedala", rnd, **options), aggregate("fedavg", rnd, **plain)
        assert mine.keys() == fedavg.keys()
        assert all(torch.equal(mine[kind], fedavg[kind]) for kind in mine)
    federation = JudgingFederation(make("fedala", parties, max_passes=2))
    federation.rounds([ALL_FOUR, [0, 1], [2, 3]])
    anchors = [client.anchor["encoder"][0] for client in federation.clients]
    assert torch.equal(anchors[0], anchors[1]) and not torch.equal(anchors[0], anchors[2])
    assert federation.method.diagnostics() == {"mixed_parameters": {"encoder": 21}}


def test_a_newcomer_to_fedala_gets_the_mean():
    parties = make_parties(SETS)
    encoders = make_round(parties).encoder.after
    torch.testing.assert_close(make("fedala", parties).newcomer_encoder(encoders), encoders.mean(0))
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4])
    by_samples = make("fedala", parties, weighting="samples").newcomer_encoder(encoders)
    torch.testing.assert_close(by_samples, weights @ encoders)


@pytest.mark.parametrize(
    "names, chosen",
    [
        ("body.patch.w body.layers_0.w body.layers_0.b.7.w body.layers_1.w norms.0.w norms.1.w", "layers_1 norms.1"),
        ("body.conv1.w body.bn1.w body.layer1.0.conv1.w body.layer2.0.conv1.w body.layer2.1.bn2.b", "layer2"),
        ("body.stem_0.w body.stem_1.w body.stages_0.w body.stages_1.w body.stages_2.w", "stages_2"),
        ("body.conv_stem.w body.blocks.0.0.w body.blocks.10.0.w body.blocks.9.0.w", "blocks.10"),
        ("stem.w deep.weight deep.bias", "deep"),
        ("stem.w only.1.w deep.weight deep.bias", "deep"),
    ],
)
def test_the_last_stage_is_told_by_names(names, chosen):
    names = names.split()
    sizes = [100 if "layer" in name or "stages" in name or "blocks" in name else 10 for name in names]
    assert last_stage(names, sizes) == {n for n in names if any(part in n for part in chosen.split())}


def test_layers_may_be_named_and_a_wrong_name_is_answered_with_the_nearest():
    tensors = TENSORS["encoder"]
    assert [t.name for t in choose_tensors(tensors, ("a.", "last_stage"))] == ["a.weight", "b.weight", "b.bias"]
    assert join_spans(choose_tensors(tensors, ("a.", "last_stage"))) == [(0, 12), (18, 39)]
    with pytest.raises(ValueError, match=r"algo.layers: no tensor of the encoder begins with 'b.wieght'.*b\.weight"):
        aggregate("fedala", make_round(make_parties(SETS)), layers=("b.wieght",))


# -- FedFomo -----------------------------------------------------------------------------------------------------------


def fomo_client(seed=0, others=(0, 1, 3)):
    """Client 2, and others' encoders: two that do better than its own, and one that does worse."""
    client = JudgingClient(make_parties(SETS)[2], held_out=0.2, seed=seed)
    good = (client.scales * client.images[: client.kept].mean(0)).mean(0)
    client.live["encoder"][0].copy_(good + random_row([seed, 2]))
    client.received = {str(j): good + scale * random_row([seed, j]) for j, scale in zip(others, (0.3, 0.6, 3.0))}
    return client


def reference_fomo(client, base, models, relative=False):
    """Weights by loops over tasks and models."""

    def losses(encoder):
        kept = client.live["encoder"][0].clone()
        client.live["encoder"][0].copy_(encoder)
        found = client.losses({"image": client.images[: client.kept]}).detach().tolist()
        client.live["encoder"][0].copy_(kept)
        return found

    reference, weights = losses(base), []
    for model in models:
        theirs = losses(model)
        if relative:
            gain = sum(1 - t / r for t, r in zip(theirs, reference)) / len(theirs)
        else:
            gain = sum(w * (r - t) for w, r, t in zip(client.weights.tolist(), reference, theirs))
        weights.append(max(0.0, gain / (math.dist(model.tolist(), base.tolist()) + 1e-5)))
    return [w / sum(weights) for w in weights] if any(weights) else weights


@pytest.mark.parametrize("loss", ["weighted", "relative"])
@pytest.mark.parametrize("baseline", ["last", "start"])
def test_fedfomo_combines_by_gain_per_distance(baseline, loss):
    method = make("fedfomo", make_parties(SETS), baseline=baseline, loss=loss)
    client = fomo_client(seed=5)
    own = client.live["encoder"][0].clone()
    base, models = own, dict(client.received)
    if baseline == "start":
        base = client.memory["start"] = own + random_row(77)
        models["2"] = own  # what it ended with is one of them
    expected = reference_fomo(client, base, models.values(), loss == "relative")
    assert sum(w > 0 for w in expected) >= 2 and 0 in expected
    new = base + sum(w * (model - base) for w, model in zip(expected, models.values()))
    adopt(method, client)
    torch.testing.assert_close(client.live["encoder"][0], new, atol=1e-5, rtol=1e-5)
    told = method.measure(client)
    assert list(told) == list(models) and [len(w) for w in told.values()] == [1] * len(models)
    np.testing.assert_allclose([float(w) for w in told.values()], expected, rtol=1e-4)
    assert client.looks == [(None, 1.0, True)]
    kept = client.memory.get("start")
    assert kept is None if baseline == "last" else torch.equal(kept, client.live["encoder"][0])


def test_fedfomo_keeps_its_encoder_if_nobody_does_better():
    parties = make_parties(SETS)
    for baseline in ("last", "start"):
        client = fomo_client()
        best = client.live["encoder"][0].clone()
        client.received = {"0": best + 50, "1": best - 50}
        if baseline == "start":  # not even what it ended with
            client.memory["start"] = best.clone()
            client.live["encoder"][0].add_(70)
        method = make("fedfomo", parties, baseline=baseline)
        adopt(method, client)
        assert torch.equal(client.live["encoder"][0], best)
        assert {float(w) for w in method.measure(client).values()} == {0.0}


def test_fedfomo_does_nothing_in_its_first_round():
    client = fomo_client(others=())
    own = client.live["encoder"][0].clone()
    method = make("fedfomo", make_parties(SETS))
    adopt(method, client, index=0)
    assert torch.equal(client.live["encoder"][0], own) and method.measure(client) == {} and client.looks == []
    assert torch.equal(client.memory["start"], own)
    assert make("fedfomo", make_parties(SETS), validation=0.4).held_out() == 0.4


def test_gains_that_are_no_numbers_count_nothing():
    weights = fomo_weights(np.array([1.0, np.nan, -np.inf, np.inf, 2.0]), np.ones(5))
    np.testing.assert_allclose(weights, [1 / 3, 0, 0, 0, 2 / 3])
    assert (fomo_weights(np.array([np.nan, -1.0]), np.zeros(2)) == 0).all()
    assert fomo_weights(np.array([1.0]), np.zeros(1)) == [1.0]  # a model that is the client's own
    relative = loss_gains(np.array([2.0, 0.0]), np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([9.0, 9.0]), "relative")
    assert relative[0] == 0.75 and np.isfinite(relative).all() and relative[1] < 0


def stored(parties, present=None, drawn=0, method=None, index=0, told=None, **options):
    """A server that has seen a round of these clients."""
    method = method or make("fedfomo", parties, **options)
    rnd = make_round([parties[i] for i in (range(len(parties)) if present is None else present)], drawn, index)
    assert method.aggregate(Round(index, tuple(parties), rnd.encoder, measured=told or {})) == {}
    return method, rnd.encoder


def test_fedfomo_sends_the_best_others_and_never_a_clients_own():
    parties = make_parties([("depth",)] * 8)
    method = make("fedfomo", parties, epsilon=0.0, models=4)
    assert method.parcel(3) == {}  # nobody has sent anything yet
    _, rows = stored(parties, method=method)
    parcel = method.parcel(3)
    assert len(parcel) == 3 and "3" not in parcel
    assert all(torch.equal(model, rows.after[int(other)]) for other, model in parcel.items())
    told = {3: {"7": torch.tensor([0.2]), "1": torch.tensor([0.5]), "0": torch.tensor([0.3])}}
    _, rows = stored(parties, drawn=1, method=method, index=1, told=told)
    assert sorted(method.parcel(3)) == ["0", "1", "7"]
    again = {3: {"5": torch.tensor([0.9]), "1": torch.tensor([0.1])}}
    stored(parties, present=[3, 5], drawn=2, method=method, index=2, told=again)
    assert sorted(method.parcel(3)) == ["0", "1", "5"]  # 0.3, 0.5 + 0.1, 0.9; 7 has 0.2
    assert torch.equal(method.parcel(3)["1"], rows.after[1])  # an absent client's is the one it sent last
    ids = [party.id for party in parties]
    assert method.diagnostics() == {"weights": {ids[3]: {ids[5]: pytest.approx(0.9), ids[1]: pytest.approx(0.1)}}}


def test_fedfomo_explores_less_and_less():
    parties = make_parties([("depth",)] * 12)
    told = {i: {str((i + 1) % 12): torch.tensor([1.0])} for i in range(12)}

    def parcels(**options):
        method, _ = stored(parties, told=told, models=2, **options)
        return [list(method.parcel(i)) for i in range(12)]

    best = [[str((i + 1) % 12)] for i in range(12)]
    assert parcels(epsilon=0.0) == best
    random = parcels(epsilon=1.0, epsilon_decay=0.0)
    assert random != best and all(str(i) not in sent for i, sent in enumerate(random))
    assert random == parcels(epsilon=1.0, epsilon_decay=0.0) != parcels(epsilon=1.0, epsilon_decay=0.0, seed=1)
    assert parcels(epsilon=0.3, epsilon_decay=0.3) == best  # nothing is left of it after a round


def test_fedfomos_parcels_follow_a_renaming_and_survive_a_checkpoint():
    parties, order = make_parties([("depth",)] * 6), [3, 0, 5, 1, 4, 2]
    others = renumbered(parties, order)
    method, _ = stored(parties, models=3)
    other, _ = stored(others, models=3)
    for k in range(6):
        mine = {parties[int(j)].id for j in method.parcel(order[k])}
        assert mine == {others[int(j)].id for j in other.parcel(k)}
    told = measured_for("fedfomo", parties, make_round(parties, index=1))
    stored(parties, method=method, index=1, told=told)
    copy = make("fedfomo", parties, models=3)
    copy.load_state_dict(through_disk(method.state_dict()))
    for i in range(6):
        mine, theirs = method.parcel(i), copy.parcel(i)
        assert mine.keys() == theirs.keys() and all(torch.equal(mine[j], theirs[j]) for j in mine)


def test_fedfomo_round_by_round():
    """Own models stay; M − 1 others come from the second round on; what is told adds up to 1 or is 0."""
    parties = make_parties(SETS)
    federation = JudgingFederation(make("fedfomo", parties, models=3))
    federation.rounds([[0, 1, 2], ALL_FOUR, [0, 3], ALL_FOUR])
    assert [set(map(len, sent.values())) for sent in federation.parcels] == [{0}, {2}, {2}, {2}]
    assert all(str(i) not in parcel for sent in federation.parcels for i, parcel in sent.items())
    for told in federation.told[1:]:
        for weights in told.values():
            assert sum(map(float, weights.values())) in (pytest.approx(1.0), 0.0)
    assert "3" not in federation.told[1][3] and "3" in federation.told[3][3]  # at first it had trained nothing yet
    torch.testing.assert_close(federation.method.models[2], federation.clients[2].live["encoder"][0])


def test_fedfomo_says_when_nobody_helps_anybody():
    parties = make_parties(SETS)
    method, _ = stored(parties)
    assert method.notes() == []
    stored(parties, method=method, index=1, told={0: {"0": torch.tensor([1.0]), "1": torch.tensor([0.0])}})
    assert "local training" in method.notes()[0]
    stored(parties, method=method, index=2, told={0: {"0": torch.tensor([0.5]), "1": torch.tensor([0.5])}})
    assert method.notes() == []


# -- IFCA --------------------------------------------------------------------------------------------------------------


def test_one_cluster_of_ifca_is_fedper():
    attendance = [[0, 1, 2], ALL_FOUR, [0, 3], [1, 2], ALL_FOUR]
    for weighting in ("equal", "samples"):
        parties = make_parties(SETS)
        ifca = JudgingFederation(make("ifca", parties, k=1, weighting=weighting))
        fedper = JudgingFederation(make("fedavg", parties, shared="encoder", weighting=weighting))
        for index, present in enumerate(attendance):
            mine, theirs = ifca.round(index, present), fedper.round(index, present)
            exact = {"atol": 0, "rtol": 0} if weighting == "equal" else {"atol": 1e-6, "rtol": 1e-6}
            torch.testing.assert_close(mine["encoder"], theirs["encoder"], **exact)
        assert all(client.looks == [] for client in ifca.clients)  # there is nothing to choose from


def test_ifca_takes_the_encoder_with_the_lowest_loss():
    parties = make_parties(SETS)
    method = make("ifca", parties, k=3, batches=2)
    for seed in range(6):
        client = JudgingClient(parties[2], seed=seed)
        candidates = [random_row([seed, n]) for n in range(3)]
        client.live["encoder"][0].copy_(candidates[1])
        client.memory["choice"], client.received = 1, {"0": candidates[0], "2": candidates[2]}
        losses = []
        for candidate in candidates:
            other = JudgingClient(parties[2], seed=seed)
            other.live["encoder"][0].copy_(candidate)
            losses.append(float(other.losses({"image": other.images[:8]}).detach() @ other.weights))
        adopt(method, client, index=2)
        best = losses.index(min(losses))
        assert torch.equal(client.live["encoder"][0], candidates[best])
        assert int(method.measure(client)["choice"]) == client.memory["choice"] == best
        assert client.looks == [(2, 1.0, False)]


def test_what_is_no_number_is_never_chosen():
    assert lowest(np.array([np.nan, 3.0, 2.0, 2.0])) == 2
    assert lowest(np.array([np.nan, np.nan])) == 0


def test_ifcas_encoders_are_set_apart_alike_on_server_and_client():
    parties = make_parties(SETS)
    method = make("ifca", parties, k=3, sigma=0.1)
    federation = JudgingFederation(method)
    new = federation.round(0, [0, 1, 2])
    start = new["encoder"][0].clone()
    assert all(torch.equal(client.live["encoder"][0], start) for client in federation.clients[:3])
    candidates = [add_noise(start, TENSORS["encoder"], 0.1, 0, n) for n in range(3)]
    for n, candidate in enumerate(candidates):
        for t in TENSORS["encoder"]:
            moved = (candidate - start)[t.start : t.stop].norm() / start[t.start : t.stop].norm()
            assert float(moved) == pytest.approx(0.1, rel=1e-4)
        assert all(not torch.equal(candidate, other) for other in candidates[:n])
    assert not torch.equal(candidates[0], add_noise(start, TENSORS["encoder"], 0.1, 1, 0))
    federation.round(1, ALL_FOUR)
    chosen = {i: int(told["choice"]) for i, told in federation.told[1].items()}
    for i, number in chosen.items():
        assert torch.equal(federation.clients[i].start, candidates[number])
    for number in set(range(3)) - set(chosen.values()):
        assert torch.equal(method.encoders[number], candidates[number])
    assert federation.parcels == [{0: [], 1: [], 2: []}, {0: [], 1: [], 2: [], 3: ["start"]}]
    assert method.start is None and len(method.encoders) == 3


def test_ifca_averages_within_clusters_and_sends_what_a_client_lacks():
    parties = make_parties(SETS)
    method = make("ifca", parties, k=3)

    def server_step(index, choices):
        rnd = make_round([parties[i] for i in choices], seed=index, index=index)
        told = {i: {"choice": torch.tensor([float(n)])} for i, n in choices.items()} if index else {}
        return method.aggregate(Round(index, parties, rnd.encoder, measured=told))["encoder"], rnd.encoder.after

    new, after = server_step(0, dict.fromkeys(ALL_FOUR, 0))
    torch.testing.assert_close(new, after.mean(0).expand(4, -1))
    assert method.diagnostics() == {"groups": {}}
    new, after = server_step(1, {0: 2, 1: 0, 2: 2, 3: 0})
    torch.testing.assert_close(new[[0, 2]], after[[0, 2]].mean(0).expand(2, -1))
    torch.testing.assert_close(new[[1, 3]], after[[1, 3]].mean(0).expand(2, -1))
    assert method.diagnostics() == {"groups": {"c0": 2, "c1": 0, "c2": 2, "c3": 0}}
    assert {i: sorted(method.parcel(i)) for i in ALL_FOUR} == {
        0: ["0", "1"], 1: ["1", "2"], 2: ["0", "1"], 3: ["1", "2"]
    }  # fmt: skip
    torch.testing.assert_close(method.parcel(0)["0"], new[1])
    untouched = method.encoders[1].clone()
    server_step(2, {0: 0})
    # 1 and 3 hold an encoder 0 that is not the server's any more; 2 still has its 2.
    assert {i: sorted(method.parcel(i)) for i in ALL_FOUR} == {
        0: ["1", "2"], 1: ["0", "1", "2"], 2: ["0", "1"], 3: ["0", "1", "2"]
    }  # fmt: skip
    assert torch.equal(method.encoders[1], untouched)


def test_ifca_clients_use_what_they_hold_and_what_they_are_sent():
    parties = make_parties(SETS)
    federation = JudgingFederation(make("ifca", parties, k=2, sigma=0.5))
    for index, present in enumerate([[0, 1], ALL_FOUR, [0], [0, 1, 2], ALL_FOUR, [3]]):
        before = [encoder.clone() for encoder in federation.method.encoders]
        federation.round(index, present)
        for i in present if index > 1 else ():
            chosen = int(federation.told[index][i]["choice"])
            assert torch.equal(federation.clients[i].start, before[chosen])
    found = {int(told["choice"]) for choices in federation.told[1:] for told in choices.values()}
    assert found == {0, 1}


def test_ifca_by_samples_and_with_statistics():
    parties = make_parties(SETS)
    method = make("ifca", parties, weighting="samples")
    statistic = TensorSlice("n.running_mean", "encoder", 39, 42, statistic=True)
    for index in (0, 1):
        rnd = make_round(parties, seed=index, index=index)
        after = torch.cat([rnd.encoder.after, torch.full((4, 3), 7.0)], 1)
        rows = Rows(rnd.encoder.owners, after, after, (*rnd.encoder.tensors, statistic))
        told = {i: {"choice": torch.tensor([float(i > 2)])} for i in ALL_FOUR} if index else {}
        new = method.aggregate(Round(index, parties, rows, measured=told))["encoder"]
    torch.testing.assert_close(new[0], torch.tensor([10.0, 20, 30]) / 60 @ after[:3])
    assert [len(encoder) for encoder in method.encoders] == [39, 39]  # statistics are not for others


def test_ifca_needs_to_be_told_a_choice():
    parties = make_parties(SETS)
    method = make("ifca", parties)
    method.aggregate(of(make_round(parties), method))
    with pytest.raises(ValueError, match=r"round 2: client c0 told nothing as the encoder it chose.*0 to 1"):
        method.aggregate(Round(1, parties, make_round(parties, index=1).encoder))
    with pytest.raises(ValueError, match=r"client c0 told \[2.0\] as the encoder"):
        rnd = make_round(parties, index=1)
        told = {i: {"choice": torch.tensor([2.0])} for i in ALL_FOUR}
        method.aggregate(Round(1, parties, rnd.encoder, measured=told))


def test_ifcas_clusters_follow_a_renaming_and_any_order_of_rows():
    parties, order = make_parties([("depth",)] * 6), [3, 0, 5, 1, 4, 2]
    others = renumbered(parties, order)

    def results(parties, order):
        method = make("ifca", parties)
        for index in (0, 1):
            rnd = make_round(parties, index=index)
            rows = make_round(make_parties([("depth",)] * 6), seed=index).encoder  # by client, whoever it is
            told = measured_for("ifca", parties, rnd)
            mine = Rows(rnd.encoder.owners, rows.before[order], rows.after[order], rows.tensors)
            new = method.aggregate(Round(index, parties, mine, measured=told))["encoder"]
        return new, method.diagnostics()

    (new, groups), (other, their_groups) = results(parties, list(range(6))), results(others, order)
    torch.testing.assert_close(other, new[order])
    assert groups == their_groups and len(set(groups["groups"].values())) == 2


def test_ifca_says_when_all_choose_the_same():
    parties = make_parties(SETS)
    method = make("ifca", parties)
    method.aggregate(of(make_round(parties), method))
    assert method.notes() == []
    for choices, said in (([1, 1, 1, 1], 1), ([0, 1, 1, 1], 0)):
        told = {i: {"choice": torch.tensor([float(n)])} for i, n in enumerate(choices)}
        method.aggregate(Round(1, parties, make_round(parties, index=1).encoder, measured=told))
        assert len(method.notes()) == said


@pytest.mark.parametrize("name", ["fedala", "fedfomo", "ifca"])
def test_rounds_follow_a_renaming_of_the_clients(name):
    parties, order = make_parties(SETS), [2, 0, 3, 1]
    options = {"fedala": {"max_passes": 2}, "fedfomo": {"models": 3}, "ifca": {"sigma": 0.5}}[name]
    attendance = [ALL_FOUR, [0, 1, 3], ALL_FOUR]
    mine = JudgingFederation(make(name, parties, **options))
    mine.rounds(attendance)
    theirs = JudgingFederation(make(name, renumbered(parties, order), **options))
    theirs.rounds([sorted(order.index(i) for i in present) for present in attendance])
    torch.testing.assert_close(theirs.encoders(), mine.encoders()[order], atol=1e-4, rtol=1e-4)
