"""MAS against its definition, written out: affinities of quadratic losses, all partitions, FedAvg in every group."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fake_clients import TENSORS, QuadraticClient
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import make, make_parties, make_round, renumbered

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.mas import (
    best_partition,
    look_ahead,
    partitions,
    score_in_group,
    tasks_of_tracks,
    unconnected,
)
from fmtlbench.base.seeds import stream
from fmtlbench.engine.method import Hooks
from fmtlbench.exchange import Owner, Party, Round, Rows

MAS = ALGORITHMS["mas"]
BATCHES = 7
# Two pairs of tasks that help each other and harm the others, told by whoever has both of a pair.
HELPS = {frozenset(("depth", "normals")), frozenset(("edge", "semseg"))}
GROUPS = [["depth", "normals"], ["edge", "semseg"]]
PARTIES = make_parties(
    [("semseg", "depth", "normals", "edge"), ("depth",), ("edge", "normals"), ("edge", "semseg"), ("normals", "depth")]
)


# -- affinities --------------------------------------------------------------------------------------------------------


class LookingClient(QuadraticClient):
    """A client whose task t has the loss ½ Σ c_t (θ − x_bt)² + k_t on batch b, θ its encoder."""

    def __init__(self, method, party, dtype=torch.float64):
        super().__init__(method, party, batches=BATCHES)
        rng = np.random.default_rng(party.index)
        count, width = len(party.tasks), len(self.rows("encoder")[0])
        self.theta = {name: (theta.detach() + 0.1).to(dtype).requires_grad_() for name, theta in self.theta.items()}
        self.vector().copy_(torch.from_numpy(rng.normal(size=len(self.vector()))))
        self.curved = torch.from_numpy(rng.uniform(0.5, 2.0, (count, width))).to(dtype)
        self.aims = torch.from_numpy(rng.normal(size=(BATCHES, count, width))).to(dtype)
        self.floors = torch.from_numpy(rng.uniform(0.1, 1.0, (BATCHES, count))).to(dtype)
        self.weights = torch.from_numpy(rng.uniform(0.5, 5.0, count)).to(dtype)
        self.lr, self.batch, self.asked = 0.03, BATCHES, []

    def batches(self, count=None, share=1.0, held_out=False):
        assert share == 1 and not held_out
        self.asked.append(count)
        yield from ({"number": number} for number in range(min(count, BATCHES)))

    def losses(self, batch, track=None):
        encoder = self.theta[track or self.track][self.places["encoder"][0]]
        apart = (self.curved * (encoder - self.aims[batch["number"]]).square()).sum(1)
        return apart / 2 + self.floors[batch["number"]]

    def loss_weights(self):
        return self.weights

    def row_gradients(self, loss, kind):
        (found,) = torch.autograd.grad(loss, self.theta[self.track], retain_graph=True)
        return [found[place] for place in self.places[kind]]


def affinities_by_hand(client, number, decay):
    """Return z by acting task and the one acted on."""
    theta, rate = client.rows("encoder")[0].numpy(), client.lr
    curved, aims = client.curved.numpy(), client.aims[number].numpy()
    floors = client.floors[number].numpy()

    def loss(task, x):
        return 0.5 * sum(c * (v - aim) ** 2 for c, v, aim in zip(curved[task], x, aims[task])) + floors[task]

    tasks = range(len(curved))
    found = np.zeros((len(tasks), len(tasks)))
    for a in tasks:
        slope = client.weights.numpy()[a] * curved[a] * (theta - aims[a]) + decay * theta
        for r in tasks:
            found[a, r] = (1 - loss(r, theta - rate * slope) / loss(r, theta)) / rate
    return found


def measure(method, client):
    with torch.no_grad():
        return method.measure(client)


@pytest.mark.parametrize("every, looks", [(1, 7), (3, 3), (10, 1)])
def test_affinities_are_what_a_step_for_one_task_does_to_another(every, looks):
    method = make("mas", PARTIES, affinity_every=every, weight_decay=0.2)
    client = LookingClient(method, PARTIES[0])
    expected = np.mean([affinities_by_hand(client, number, 0.2) for number in range(looks)], 0)
    told = measure(method, client)
    assert set(told) == {"affinity"} and client.asked == [looks]
    np.testing.assert_allclose(told["affinity"].numpy(), expected, rtol=1e-5, atol=1e-6)
    assert (np.diag(expected) > 0).all() and (expected < 0).any()


def test_a_look_ahead_leaves_every_bit_as_it_was():
    method = make("mas", PARTIES)
    client = LookingClient(method, PARTIES[0], torch.float32)
    client.vector()[:3] = torch.tensor([1e-8, -3e7, 0.1])
    kept = client.vector().clone()
    found = look_ahead(client, {"number": 0}, 1e-4)
    assert torch.equal(client.vector(), kept) and np.isfinite(found).all() and found.any()


def test_a_loss_of_nothing_tells_nothing():
    """A batch without a label of a task has loss 0: the others of the batch count, other batches count for it."""
    method = make("mas", PARTIES, affinity_every=4)  # two of seven batches
    client = LookingClient(method, PARTIES[2])
    own = client.rows("encoder")[0]

    def without(*numbers):
        client.floors[list(numbers), 1], client.aims[list(numbers), 1] = 0.0, own.clone()

    without(0)
    told = measure(method, client)
    first, second = (look_ahead(client, {"number": number}, 1e-4) for number in (0, 1))
    assert not np.isfinite(first[:, 1]).any() and np.isfinite(first[:, 0]).all() and "known" not in told
    np.testing.assert_allclose(told["affinity"][:, 1].numpy(), second[:, 1], rtol=1e-6)
    np.testing.assert_allclose(told["affinity"][:, 0].numpy(), (first + second)[:, 0] / 2, rtol=1e-6)
    without(0, 1)
    told = measure(method, client)
    assert not told["known"][:, 1].any() and told["known"][:, 0].all() and told["affinity"].isfinite().all()
    method.aggregate(Round(0, PARTIES, measured={2: told}))
    assert set(method.affinities) == {("normals", "edge")}


def test_who_measures_and_when():
    method = make("mas", PARTIES, affinity_rounds=2)
    method.rounds = 10
    several, single = LookingClient(method, PARTIES[0]), LookingClient(method, PARTIES[1])
    found = []
    for several.round in range(5):
        found.append(bool(measure(method, several)))
    assert found == [True, True, False, False, False] and measure(method, single) == {}
    method.params = MAS.Params(affinity_rounds=10)
    for several.round in (2, 3):  # merged for three rounds
        found.append(bool(measure(method, several)))
    assert found[5:] == [True, False]
    several.round, several.lr = 0, 0.0
    assert measure(method, several) == {}


def test_the_server_means_over_clients_then_over_rounds():
    method = make("mas", PARTIES)
    method.rounds = 10
    matrix = torch.tensor

    def told(index, measured):
        method.aggregate(Round(index, PARTIES, measured=measured))

    told(0, {2: {"affinity": matrix([[9.0, 1.0], [2.0, 9.0]])}, 0: {"affinity": torch.full((4, 4), 4.0)}, 1: {}})
    told(1, {2: {"affinity": matrix([[9.0, 5.0], [6.0, 9.0]])}})
    affinity = method.diagnostics()["affinity"]
    assert affinity["edge"]["normals"] == ((1 + 4) / 2 + 5) / 2
    assert affinity["normals"]["edge"] == ((2 + 4) / 2 + 6) / 2
    assert affinity["semseg"] == {"depth": 4.0, "edge": 4.0, "normals": 4.0}


def test_the_order_of_clients_rounds_no_mean():
    parties = make_parties([("depth", "edge")] * 3)
    found = set()
    for values in permutations((1e16, 1.0, -1e16)):
        method = make("mas", parties)
        told = {i: {"affinity": torch.full((2, 2), value, dtype=torch.float64)} for i, value in enumerate(values)}
        method.aggregate(Round(0, parties, measured=told))
        found.add(method.diagnostics()["affinity"]["depth"]["edge"])
    assert found == {1 / 3}


def test_affinities_of_a_wrong_shape_are_told():
    method = make("mas", PARTIES)
    with pytest.raises(
        ValueError, match=r"client c2 told affinities of shape \(2,\), expected \(2, 2\): .* edge, norm"
    ):
        method.aggregate(Round(0, PARTIES, measured={2: {"affinity": torch.ones(2)}}))


# -- partitions --------------------------------------------------------------------------------------------------------


def mean_score(affinity, groups):
    """Return the mean over tasks of what their group does for them, with floats and sets."""
    scores = []
    for group in groups:
        for task in group:
            if len(group) > 1:
                scores.append(np.mean([affinity[a][task] for a in group - {task}]))
            else:
                others = [t for t in range(len(affinity)) if t != task]
                scores.append(np.mean([affinity[task][o] for o in others] + [affinity[o][task] for o in others]))
    return np.mean(scores)


def best_by_hand(affinity, most):
    """Return the best partitions, found as sets of sets among all ways to number the tasks, with fewest groups."""
    tasks = range(len(affinity))
    ways = {
        frozenset(frozenset(t for t in tasks if numbers[t] == n) for n in set(numbers))
        for numbers in product(range(most), repeat=len(tasks))
    }
    highest = max(mean_score(affinity, groups) for groups in ways)
    best = [groups for groups in ways if mean_score(affinity, groups) > highest - 1e-9]
    return [groups for groups in best if len(groups) == min(map(len, best))]


def as_sets(numbers):
    return frozenset(frozenset(t for t, own in enumerate(numbers) if own == n) for n in set(numbers))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(count=st.integers(2, 6), most=st.integers(2, 3), seed=st.integers(0, 999))
def test_the_best_partition_is_found(count, most, seed):
    affinity = np.random.default_rng(seed).normal(size=(count, count)) + np.diag([100.0] * count)  # never looked at
    found = best_partition([[Fraction(value) for value in row] for row in affinity.tolist()], most)
    assert [as_sets(found)] == best_by_hand(affinity, most)
    assert found[0] == 0 and len(set(found)) <= most


def test_every_partition_is_tried_once():
    for count, most, expected in ((4, 2, 8), (4, 3, 14), (5, 3, 41), (3, 3, 5)):  # sums of Stirling's numbers
        found = [as_sets(numbers) for numbers in partitions(count, most)]
        assert len(found) == len(set(found)) == expected


def test_a_task_alone_has_the_mean_of_all_it_has_a_part_in():
    """Task 2 is no help to the others and they harm it, but parting hurts nobody."""
    affinity = [[0, 3, -1], [3, 0, -1], [-2, -2, 0]]
    fractions = [[Fraction(value) for value in row] for row in affinity]
    assert best_partition(fractions, 2) == (0, 0, 1)
    assert mean_score(np.array(affinity), [{0, 1}, {2}]) == (3 + 3 - 1.5) / 3


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3])
def test_of_equal_partitions_the_one_with_fewest_groups_is_taken(value):
    """Sums of 0.1 that are rounded would prefer one or the other by chance."""
    for count in (2, 3, 5):
        assert best_partition([[Fraction(value)] * count] * count, 3) == (0,) * count


def test_fewest_groups_come_before_the_order_of_names():
    affinity = [[0, -1, 1, 0], [0, 0, 0, -1], [1, 1, 0, -1], [0, -1, -1, 0]]
    two, three = [{0, 3}, {1, 2}], [{0, 2}, {1}, {3}]
    assert mean_score(np.array(affinity), two) == mean_score(np.array(affinity), three)
    assert best_partition([[Fraction(value) for value in row] for row in affinity], 3) == (0, 1, 1, 0)


def test_a_task_scores_what_is_done_for_it_and_not_what_it_does():
    """No partition shows it, since all tasks of a group are in its mean."""
    affinity = [[Fraction(value) for value in row] for row in ([0, 10, 20], [1, 0, 30], [2, 3, 0])]
    assert [score_in_group(affinity, task, (0, 1, 2)) for task in range(3)] == [Fraction(3, 2), Fraction(13, 2), 25]
    assert score_in_group(affinity, 2, (0, 2)) == 20
    assert score_in_group(affinity, 1, (1,)) == Fraction(10 + 3 + 1 + 30, 4)


def test_of_equal_splits_the_first_by_name_is_taken():
    far, near = Fraction(-1), Fraction(1)
    affinity = [[near if {a, r} != {0, 2} else far for r in range(3)] for a in range(3)]
    # Task 1 may go with 0 or with 2.
    assert mean_score(np.array(affinity, dtype=float), [{0, 1}, {2}]) == mean_score(
        np.array(affinity, dtype=float), [{0}, {1, 2}]
    )
    assert best_partition(affinity, 2) == (0, 0, 1)


def test_pairs_that_nobody_holds_count_as_the_mean_and_are_told():
    parties = make_parties([("depth", "edge"), ("edge", "normals")])
    method = make("mas", parties)
    method.rounds = 2
    told = {0: {"affinity": torch.tensor([[0.0, 1.0], [2.0, 0.0]])}, 1: {"affinity": torch.tensor([[0, 3.0], [6, 0]])}}
    method.aggregate(Round(0, parties, measured=told))
    matrix, unknown = method._affinity_matrix()
    assert matrix == [[0, 1, 3], [2, 0, 3], [3, 6, 0]] and set(unknown) == set(permutations(("depth", "normals")))
    assert method.notes()[0].endswith("which count as the mean of the others: depth→normals, normals→depth")


def test_without_any_affinity_all_tasks_stay_together():
    method = make("mas", PARTIES)
    method.aggregate(make_round(PARTIES))
    assert method.groups == [["depth", "edge", "normals", "semseg"]]
    assert any("measured an affinity" in note for note in method.notes())
    assert any("goes on as FedAvg" in note for note in method.notes())


# -- merge, split, continue --------------------------------------------------------------------------------------------


def noise(party, index, what, width):
    return 0.1 * torch.from_numpy(stream(0, "noise", party.id, index, what).normal(size=width))


class Federation:
    """Clients that train by adding noise, around the hooks in the engine's order; every answer is checked."""

    def __init__(self, parties=PARTIES, rounds=6, **options):
        self.server, self.client = (Hooks(MAS, MAS.Params(**options), parties, rounds) for _ in range(2))
        self.remake = lambda: Hooks(MAS, MAS.Params(**options), parties, rounds)
        self.clients = [QuadraticClient(self.client, party) for party in parties]
        for client in self.clients:
            client.theta = {name: theta.detach() for name, theta in client.theta.items()}
        self.parcels, self.seen = [], []

    def affinity(self, party):
        pairs = [[frozenset((a, r)) in HELPS for r in party.tasks] for a in party.tasks]
        return {"affinity": torch.tensor(pairs).float() * 2 - 1 + 0.1 * party.index} if len(party.tasks) > 1 else {}

    def names(self, index, i, kind):
        party = self.clients[i].party
        names = self.server.rows_sent(index, party, kind)
        tasks = [None] if kind == "encoder" else party.tasks
        return [("main", task) for task in tasks] if names is None else list(names)

    def read(self, i, kind, names):
        client = self.clients[i]
        places = {None: 0, **{task: place for place, task in enumerate(client.party.tasks)}}
        return [client.rows(kind, track)[places[task]] for track, task in names]

    def train(self, i, index):
        client = self.clients[i]
        for track, tasks in self.client.tasks_by_track(client).items():
            client.vector(track).mul_(0.999)  # a decay moves what is not trained, too
            for kind, of in (("encoder", [None]), ("decoder", tasks)):
                for task, row, start in zip(
                    of, self.read(i, kind, [(track, task) for task in of]), self.begun[i, kind, track], strict=True
                ):
                    row.copy_(start + noise(client.party, index, task or "+".join(sorted(tasks)), len(row)))

    def round(self, index, present):
        kinds = self.server.shared(index)
        self.parcels.append({i: self.server.parcel(i) for i in present})
        names = {(i, kind): self.names(index, i, kind) for i in present for kind in kinds}
        before, after, self.begun = {}, {}, {}
        for i in present:
            client = self.clients[i]
            client.round, client.received = index, self.parcels[-1][i]
            self.client.adopt(client)
            for kind in kinds:
                before[i, kind] = [row.clone() for row in self.read(i, kind, names[i, kind])]
                for track, tasks in self.client.tasks_by_track(client).items():
                    of = [(track, task) for task in ([None] if kind == "encoder" else tasks)]
                    self.begun[i, kind, track] = [row.clone() for row in self.read(i, kind, of)]
            self.train(i, index)
            for kind in kinds:
                after[i, kind] = [row.clone() for row in self.read(i, kind, names[i, kind])]
        seen = {}
        for kind in kinds:
            owners = [Owner(i, task, track) for i in present for track, task in names[i, kind]]
            both = (torch.stack([row for i in present for row in of[i, kind]]) for of in (before, after))
            seen[kind] = Rows(tuple(owners), *both, TENSORS[kind])
        told = {i: self.affinity(self.clients[i].party) for i in present}
        rnd = Round(index, self.server.parties, measured=told, **seen)
        self.seen.append(rnd)
        new = self.server.aggregate(rnd)
        for kind, values in new.items():
            rows = iter(values)
            for i in present:
                for row in self.read(i, kind, names[i, kind]):
                    row.copy_(next(rows))

    def run(self, attendance, first=0, resume=False):
        for index, present in enumerate(attendance, start=first):
            self.round(index, present)
            if resume:  # as from a checkpoint: nothing else may be carried along
                state = self.server.state_dict()
                json.dumps({name: value for name, value in state.items() if name != "kept"})
                self.server = self.remake()
                self.server.load_state_dict(state)
        return self


class Reference:
    """Separate FedAvg runs, one for all tasks and then one per group, as if each had a server of its own."""

    def __init__(self, parties, merge_rounds, groups):
        self.parties, self.merge_rounds, self.groups = parties, merge_rounds, groups
        tasks = sorted({task for party in parties for task in party.tasks})
        self.encoder = {tuple(tasks): torch.full((5,), 0.3, dtype=torch.float64)}
        self.decoder = {task: torch.full((3,), 0.3, dtype=torch.float64) for task in tasks}

    def begin(self, index):
        if index == self.merge_rounds:
            (merged,) = self.encoder.values()
            self.encoder = {tuple(group): merged for group in self.groups}

    def round(self, index, present):
        new, decoders = {}, {}
        for group, encoder in self.encoder.items():
            sent, weights = [], []
            for party in (self.parties[i] for i in present):
                own = sorted(set(party.tasks) & set(group))
                if own:
                    sent.append(encoder + noise(party, index, "+".join(own), 5))
                    weights.append(party.samples)
            new[group] = sum(w * row for w, row in zip(weights, sent)) / sum(weights) if sent else encoder
        for task, decoder in self.decoder.items():
            having = [self.parties[i] for i in present if task in self.parties[i].tasks]
            total = sum(p.samples for p in having)
            sent = [p.samples * (decoder + noise(p, index, task, 3)) for p in having]
            decoders[task] = sum(sent) / total if sent else decoder
        self.encoder, self.decoder = new, decoders


def assert_follows(federation, attendance, merge_rounds, groups):
    """Every client starts every round it is in from the models that the reference has then."""
    reference = Reference(federation.server.parties, merge_rounds, groups)
    for index, present in enumerate(attendance):
        reference.begin(index)
        rnd = federation.seen[index]
        for owner, row in zip(rnd.encoder.owners, rnd.encoder.before, strict=True):
            tasks = {o.task for o in rnd.decoder.owners if (o.client, o.track) == (owner.client, owner.track)}
            (expected,) = (encoder for group, encoder in reference.encoder.items() if tasks <= set(group))
            torch.testing.assert_close(row, expected, rtol=1e-12, atol=1e-12)
        for owner, row in zip(rnd.decoder.owners, rnd.decoder.before, strict=True):
            torch.testing.assert_close(row, reference.decoder[owner.task], rtol=1e-12, atol=1e-12)
        assert sorted((o.client, o.task) for o in rnd.decoder.owners) == sorted(
            (i, task) for i in present for task in federation.server.parties[i].tasks
        )
        reference.round(index, present)


EVERYBODY = tuple(range(len(PARTIES)))
# Client 0 misses the split, 1 the whole merge, 2 is away twice, and in round 4 nobody of the second group is there.
SOMETIMES = [(0, 2, 3), (2, 3, 4), (0, 3, 4), (1, 4), (0, 1, 2), (3, 4, 0), (2, 1), EVERYBODY]


def test_each_group_is_a_fedavg_run_from_the_merged_model():
    federation = Federation(rounds=6).run([EVERYBODY] * 6)
    assert federation.server.groups == GROUPS and federation.server.merge_rounds == 2
    assert_follows(federation, [EVERYBODY] * 6, 2, GROUPS)
    sent = {i: [{name: len(v) for name, v in round_[i].items()} for round_ in federation.parcels] for i in EVERYBODY}
    assert sent == {i: [{}, {}, {"groups": len(PARTIES[i].tasks)}, {}, {}, {}] for i in EVERYBODY}
    assert federation.server.kept == {}


def test_who_was_away_starts_from_what_is_common_now():
    federation = Federation(rounds=8, merge=0.25).run(SOMETIMES)
    assert federation.server.merge_rounds == 2 and federation.server.groups == GROUPS
    assert_follows(federation, SOMETIMES, 2, GROUPS)
    parcels = [{i: sorted(parcel) for i, parcel in round_.items()} for round_ in federation.parcels]
    # Client 4 has only tasks of the first group; decoders are sent where somebody else trained them.
    assert parcels[1] == {2: [], 3: [], 4: ["decoder/depth", "decoder/normals", "encoder"]}
    assert parcels[2][0] == [f"decoder/{t}" for t in ("depth", "edge", "normals", "semseg")] + [
        "encoder/0",
        "encoder/1",
        "groups",
    ]
    assert parcels[2][3] == ["groups"] and parcels[2][4] == ["groups"]
    assert parcels[3] == {1: ["decoder/depth", "encoder/0", "groups"], 4: []}
    # In round 3 nobody trained edge or semseg: client 0 holds the newest of the second group.
    assert parcels[4][0] == ["decoder/depth", "decoder/normals", "encoder/0"]
    assert all("groups" not in parcel for parcel in parcels[5].values())
    told = [i for round_ in parcels for i, parcel in round_.items() if "groups" in parcel]
    assert sorted(told) == list(EVERYBODY)
    assert federation.server.kept == {}  # everybody was there in the last round


@pytest.mark.parametrize("groups", [2, 3])
def test_three_groups_need_a_third_model(groups):
    federation = Federation(groups=groups, rounds=8, merge=0.25)
    federation.affinity = at_odds
    federation.run(SOMETIMES)
    found = federation.server.groups
    assert federation.server.tracks == ("main", "second", "third")[:groups]
    assert len(found) == groups and sorted(task for group in found for task in group) == sorted(PARTIES[0].tasks)
    assert_follows(federation, SOMETIMES, 2, found)
    tracks = {owner.track for owner in federation.seen[-1].encoder.owners if owner.client == 0}
    assert len(tracks) == groups


def at_odds(party):
    """Return affinities of which one pair is good and one worse than all others."""
    table = {frozenset(("depth", "normals")): 3.0, frozenset(("edge", "semseg")): -5.0}
    pairs = [[table.get(frozenset((a, r)), 0.0) for r in party.tasks] for a in party.tasks]
    return {"affinity": torch.tensor(pairs)} if len(pairs) > 1 else {}


def test_further_models_are_copies_of_the_whole_merged_one_once():
    federation = Federation(rounds=6).run([EVERYBODY] * 2)
    client = federation.clients[0]
    merged = client.vector("main").clone()
    client.round, client.received = 2, federation.server.parcel(0)
    federation.client.adopt(client)
    assert torch.equal(client.vector("second"), merged) and torch.equal(client.vector("main"), merged)
    client.vector("second").add_(1)
    client.round, client.received = 3, {}
    federation.client.adopt(client)
    assert torch.equal(client.vector("second"), merged + 1)
    # A client whose tasks are all in one group has one model.
    one = federation.clients[4]
    one.received = federation.server.parcel(4)
    federation.client.adopt(one)
    assert not torch.equal(one.vector("second"), one.vector("main"))
    assert federation.client.tasks_by_track(one) == {"main": ("normals", "depth")}


def test_models_have_the_tasks_of_their_group():
    federation = Federation(rounds=6)
    client = federation.clients[0]
    assert federation.client.tasks_by_track(client) == {"main": PARTIES[0].tasks}
    assert federation.server.rows_sent(0, PARTIES[0], "encoder") is None
    federation.run([EVERYBODY] * 3)
    assert federation.client.tasks_by_track(client) == {"main": ("depth", "normals"), "second": ("semseg", "edge")}
    assert federation.server.rows_sent(3, PARTIES[0], "encoder") == (("main", None), ("second", None))
    expected = (("main", "depth"), ("main", "normals"), ("second", "semseg"), ("second", "edge"))
    assert federation.server.rows_sent(3, PARTIES[0], "decoder") == expected
    # The main model is the one of a client's first group, whichever that is.
    assert federation.server.rows_sent(3, PARTIES[3], "encoder") == (("main", None),)
    assert tasks_of_tracks(("main", "second"), ("b", "a", "c"), [2, 1, 2]) == {"main": ("a",), "second": ("b", "c")}


def test_rounds_before_the_split():
    method = make("mas", PARTIES)
    for method.rounds, expected in ((2, 1), (3, 1), (5, 2), (10, 3), (100, 30)):
        assert method.merge_rounds == expected
    method.params = MAS.Params(merge=0.99)
    for method.rounds in (2, 10):
        assert method.merge_rounds == method.rounds - 1


def test_clients_count_by_their_images_or_alike():
    rnd = make_round(PARTIES)
    new = make("mas", PARTIES).aggregate(rnd)
    alike = make("mas", PARTIES, weighting="equal").aggregate(rnd)
    shares = torch.tensor([10.0, 20, 30, 40, 50]) / 150
    torch.testing.assert_close(new["encoder"][0], shares @ rnd.encoder.after)
    torch.testing.assert_close(alike["encoder"][3], rnd.encoder.after.mean(0))
    places = [k for k, owner in enumerate(rnd.decoder.owners) if owner.task == "semseg"]  # of clients 0 and 3
    torch.testing.assert_close(new["decoder"][places[1]], torch.tensor([0.2, 0.8]) @ rnd.decoder.after[places])
    torch.testing.assert_close(alike["decoder"][places[0]], rnd.decoder.after[places].mean(0))


def test_renaming_clients_changes_nothing():
    """Numbers and order of the clients: the same groups, the same models."""
    order = [3, 0, 4, 2, 1]  # new client k is old client order[k]
    parties = renumbered(PARTIES, order)
    plain = Federation(rounds=8, merge=0.25)
    other = Federation(parties, rounds=8, merge=0.25)
    plain.affinity = other.affinity = uneven
    plain.run(SOMETIMES)
    other.run([[order.index(i) for i in reversed(present)] for present in SOMETIMES])
    assert plain.server.groups == other.server.groups
    assert plain.server.diagnostics()["affinity"] == other.server.diagnostics()["affinity"]
    for k, old in enumerate(order):
        for track in plain.client.tasks_by_track(plain.clients[old]):
            torch.testing.assert_close(
                plain.clients[old].vector(track), other.clients[k].vector(track), rtol=1e-12, atol=1e-12
            )


def uneven(party):
    """Affinities whose sums are rounded, so that an order of summing would show."""
    values = [[stream(0, "affinity", party.id, a, r).normal() / 3 for r in party.tasks] for a in party.tasks]
    return {"affinity": torch.tensor(values)} if len(party.tasks) > 1 else {}


def test_state_is_all_that_a_server_carries_from_round_to_round():
    whole = Federation(rounds=8, merge=0.25).run(SOMETIMES)
    resumed = Federation(rounds=8, merge=0.25).run(SOMETIMES, resume=True)
    for one, other in zip(whole.clients, resumed.clients, strict=True):
        assert one.memory == other.memory
        for track in whole.server.tracks:
            assert torch.equal(one.vector(track), other.vector(track))
    assert whole.server.diagnostics() == resumed.server.diagnostics()
    sent = [[{i: sorted(parcel) for i, parcel in of.items()} for of in one.parcels] for one in (whole, resumed)]
    assert sent[0] == sent[1]
    assert json.loads(json.dumps(whole.server.diagnostics()))["task_groups"] == GROUPS


def test_running_statistics_stay_out_of_parcels():
    parties = make_parties([("depth", "edge"), ("edge",)])
    tensors = {kind: (*rows, rows[-1]._replace(name="m", start=rows[-1].stop, stop=rows[-1].stop + 2, statistic=True))
               for kind, rows in TENSORS.items()}  # fmt: skip
    method = make("mas", parties)
    method.rounds = 4

    def rows(kind, *owners):
        values = torch.rand(len(owners), tensors[kind][-1].stop)
        return Rows(owners, values, values + 1, tensors[kind])

    new = method.aggregate(
        Round(0, parties, rows("encoder", Owner(0)), rows("decoder", Owner(0, "depth"), Owner(0, "edge")))
    )
    sent = method.parcel(1)
    assert new["encoder"].shape == (1, 7) and torch.equal(sent["encoder/0"], new["encoder"][0, :5])
    assert torch.equal(sent["decoder/edge"], new["decoder"][1, :3]) and method.parcel(0).keys() == {"groups"}


def test_one_decoder_for_all_tasks_is_one_per_group():
    parties = tuple(Party(p.index, p.id, p.dataset, p.tasks, p.samples, merged=True) for p in PARTIES)
    method = Hooks(MAS, MAS.Params(weighting="equal"), parties, 2)
    plain = make_round(PARTIES)

    def whole(tracks):
        owners = tuple(Owner(i, None, track) for i, own in tracks.items() for track in own)
        count, rng = len(owners), np.random.default_rng(len(owners))
        before = torch.from_numpy(rng.normal(size=(count, 18)).astype(np.float32))
        return Rows(owners, before, before + 1, plain.decoder.tensors)

    told = {i: Federation.affinity(Federation(), party) for i, party in enumerate(parties)}
    rows = whole(dict.fromkeys(range(5), ("main",)))
    new = method.aggregate(Round(0, parties, plain.encoder, rows, measured=told))
    torch.testing.assert_close(new["decoder"], rows.after.mean(0).expand_as(rows.after))
    assert method.groups == GROUPS
    assert method.rows_sent(1, parties[0], "decoder") == (("main", None), ("second", None))
    rows = whole({0: ("main", "second"), 3: ("main",), 4: ("main",)})
    new = method.aggregate(Round(1, parties, None, rows))["decoder"]
    torch.testing.assert_close(new[0], (rows.after[0] + rows.after[3]) / 2)  # the first group: clients 0 and 4
    torch.testing.assert_close(new[1], (rows.after[1] + rows.after[2]) / 2)
    assert torch.equal(new[0], new[3]) and torch.equal(new[1], new[2]) and not torch.allclose(new[0], new[1])
    assert sorted(method.parcel(2)) == ["decoder/0", "decoder/1", "groups"]


# -- refusals ----------------------------------------------------------------------------------------------------------


def refusal(task_sets, rounds=10, exchange="decoders", **options):
    scenario = SimpleNamespace(parties=lambda: [SimpleNamespace(tasks=tuple(tasks)) for tasks in task_sets])
    return MAS.refuses(MAS.Params(**options), scenario, SimpleNamespace(rounds=rounds, exchange=exchange))


def test_what_has_no_meaning_is_refused_with_a_way_out():
    fine = [("a", "b"), ("b", "c"), ("c",)]
    assert refusal(fine) is None and refusal(fine, rounds=2) is None
    assert "got federation.rounds=1; --set federation.rounds=2" in refusal(fine, rounds=1)
    assert "--set federation.exchange=decoders" in refusal(fine, exchange="models")
    apart = [("d", "a"), ("c",), ("b",), ("b", "e")]
    assert "the tasks {a, d} and {b, e} and {c}," in refusal(apart)
    assert "--set algo.unknown=mean" in refusal(apart)
    assert refusal(apart, unknown="mean") is None
    assert "12 at most; the clients have 13" in refusal([tuple("abcdefghijklm")])


def test_chains_of_clients_connect_tasks():
    assert unconnected([("a", "b"), ("c", "d"), ("b", "c")]) == [{"a", "b", "c", "d"}]
    assert unconnected([("c",), ("a",), ("c", "b"), ("a",)]) == [{"a"}, {"b", "c"}]
    for sets in permutations([("a", "b"), ("b", "c"), ("d", "e"), ("e",)]):
        assert unconnected(sets) == [{"a", "b", "c"}, {"d", "e"}]


def test_one_task_is_told():
    method = make("mas", make_parties([("depth",), ("depth",)]))
    method.aggregate(make_round(method.parties))
    assert method.groups == [["depth"]] and method.notes() == [
        "all clients have the same one task: there is nothing to split"
    ]
