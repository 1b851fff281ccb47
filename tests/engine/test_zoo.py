"""Every registered method end to end: it runs, its bytes follow from its definition, it resumes bit for bit."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from interrupt import AfterRound, Stopped
from kit import SMALLER, TINY, make_federation, rows_of
from resuming import cuts_and_whole, numbers_of
from zoo import ELSEWHERE, SOMETIMES, STRONG, noted_rounds

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.engine.admit import admit
from fmtlbench.engine.client import turns_of
from fmtlbench.engine.executor import SerialExecutor
from fmtlbench.engine.messages import Train

# What travels each way in a round, by definition; FedSTA's decoders only in rounds that `unify_every` divides.
TRAVELS = {
    "local": (),
    "single_task_fl": ("encoder",),
    "fedavg": ("encoder", "decoder"),
    "fedprox": ("encoder", "decoder"),
    "fedper": ("encoder",),
    "fedrep": ("encoder",),
    "fedbabu": ("encoder",),
    "fedsta": ("encoder",),
    "ditto": ("encoder", "decoder"),
    "fedamp": ("encoder", "decoder"),
    "pcgrad": ("encoder", "decoder"),
    "cagrad": ("encoder", "decoder"),
    "fedmtl": ("encoder", "decoder"),
    "matfl": ("encoder",),
    "fedhca2": ("encoder", "decoder"),
    "fedavgm": ("encoder", "decoder"),
    "fedadam": ("encoder", "decoder"),
    "fedyogi": ("encoder", "decoder"),
    "fednova": ("encoder", "decoder"),
    "fedbn": ("encoder", "decoder"),
    "lg_fedavg": ("decoder",),
    "task_means": ("encoder", "decoder"),
    "emr": ("encoder",),
    "fedbone": ("encoder",),
    "colnet": ("encoder",),
}


def test_every_method_is_in_the_table_of_what_travels():
    others = [name for names in ELSEWHERE.values() for name in names]
    assert sorted([*TRAVELS, *others]) == sorted(ALGORITHMS)
    for file, names in ELSEWHERE.items():
        text = (Path(__file__).parent / file).read_text()
        assert all(f'"{name}"' in text for name in names)


@pytest.mark.parametrize("algo", sorted(TRAVELS))
def test_runs_and_its_bytes_equal_its_definition(trio, trio_run, algo):
    result = trio_run(algo)
    clients = result.summary["clients"]
    assert [c["id"] for c in clients] == ["four", "one", "two"]
    sizes = {kind: sum(c["parameters"][kind] for c in clients) for kind in ("encoder", "decoder")}
    expected = [sum(sizes[kind] for kind in TRAVELS[algo]) * 4] * 2
    if algo == "fedbn":
        expected = [size - 4 * batch_norms_of(trio) for size in expected]
    if algo == "colnet":  # its last round is local training
        expected[-1] = 0
    assert [(r["bytes_up"], r["bytes_down"]) for r in rows_of(result)] == [(size, size) for size in expected]
    assert all(record["value"] is not None for record in result.scores)
    assert len(result.scores) == 7


def batch_norms_of(scenario):
    """How many scales and shifts of batch norms the clients' encoders and decoders have."""
    federation = make_federation("fedbn", scenario, **{**TINY, **SMALLER, "federation.rounds": 1})
    count = 0
    for facts in federation.facts:
        for layout in facts.layouts.values():
            count += len(layout.owners) * sum(t.stop - t.start for t in layout.tensors if t.norm == "batch")
    assert count, "the decoders of this network have some"
    return count


def test_fedsta_decoders_travel_when_they_are_unified(trio_run):
    result = trio_run("fedsta", **{"algo.unify_every": 2})
    decoders = sum(c["parameters"]["decoder"] for c in result.summary["clients"]) * 4
    first, second = rows_of(result)
    assert second["bytes_up"] - first["bytes_up"] == decoders


@pytest.mark.parametrize(
    "algo", ["fedavg", "fedprox", "ditto", "fedamp", "pcgrad", "cagrad", "fedmtl", "fedavgm", "fednova"]
)
def test_the_encoder_only_variant_sends_encoders_only(trio_run, algo):
    result = trio_run(algo, **{"algo.shared": "encoder"})
    encoders = sum(c["parameters"]["encoder"] for c in result.summary["clients"]) * 4
    assert {r["bytes_up"] for r in rows_of(result)} == {encoders}


# -- from round to round -----------------------------------------------------------------------------------------------

BY_TASK = {"algo.decoders": "task"}
METHODS = {name: (name, STRONG.get(name, {})) for name in sorted(ALGORITHMS)} | {
    f"{name}, decoders by task": (name, {**STRONG[name], **BY_TASK}) for name in ELSEWHERE["test_zoo_clients.py"]
}


class Watching(SerialExecutor):
    """Sees what a round leaves of clients that are absent, and of heads and statistics once they are trained."""

    def __init__(self):
        super().__init__()
        self.kept, self.rounds = [], 0  # (what was seen, how to see it again)

    def map(self, messages, on_step=None):
        begins = any(isinstance(message, Train) for message in messages.values())
        if begins:
            self.check()
            self.kept = [(vector_of(client), vector_of, client) for client in self.others(messages)]
        yield from super().map(messages, on_step)
        if begins:
            self.kept += [(kept_parts(client), kept_parts, client) for client in self.clients]
            self.rounds += 1

    def others(self, messages):
        return [client for index, client in enumerate(self.clients) if index not in messages]

    def check(self):
        for before, look, client in self.kept:
            assert all(torch.equal(a, b) for a, b in zip(before, look(client), strict=True))

    def stop(self):
        self.check()
        super().stop()


def vector_of(client):
    return [client.main.flat.vector.clone()]


def kept_parts(client):
    """Heads and running statistics."""
    return [row.clone() for row in client.main.flat.rows("head")] + [v.clone() for v in client.main.buffers().values()]


@pytest.fixture(scope="module")
def played(trio_run, tmp_path_factory):
    """`played(name)`: (the runs that went on where they were cut, the whole run, its executor), made once."""
    made = {}

    def play(name):
        if name not in made:
            algo, options = METHODS[name]
            options = {"rounds": 3 if algo in TRAVELS else 4, **(SOMETIMES if algo != "local" else {}), **options}
            cuts, watching = [3], {"executor": Watching()}
            if algo == "mas":  # before the first round after the split, in it, and when all have been told the groups
                options["rounds"], cuts, watching = 5, [2, 3, 4], {}  # and its clients have heads in two models
            run, folder = partial(trio_run, algo, **options), tmp_path_factory.mktemp(algo)
            resumed, whole = cuts_and_whole(run, folder, cuts, step=2, **watching)
            made[name] = resumed, whole, watching.get("executor")
        return made[name]

    return play


@pytest.mark.parametrize("name", METHODS)
def test_cut_in_a_round_and_resumed_equals_uninterrupted(played, name):
    """Whatever a method carries from round to round (tracks, anchors, duals, clusters, sums) is in the checkpoint."""
    resumed, whole, _ = played(name)
    for result in resumed:
        assert numbers_of(result) == numbers_of(whole)
    if name == "mas":
        assert len(rows_of(whole)[-1]["algorithm"]["task_groups"]) == 2


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"local"}))
def test_who_is_absent_is_seeded_and_in_the_rows(played, name):
    rows = rows_of(played(name)[1])
    assert all(len(row["present"]) == 2 and set(row["losses"]) == set(row["present"]) for row in rows)
    assert len({tuple(row["present"]) for row in rows}) > 1
    of_client = {name: sum(row["ledger"][name]["up"].values()) for row in rows for name in row["ledger"]}
    assert all(row["bytes_up"] < sum(of_client.values()) for row in rows) and rows[0]["bytes_up"] > 0


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"mas"}))
def test_servers_touch_neither_heads_nor_buffers_nor_who_is_absent(played, name):
    """The executor looked, after local training and again when the next round began."""
    _, whole, watching = played(name)
    assert watching.rounds == len(rows_of(whole))


def federation_of(algo, scenario, **overrides):
    return make_federation(algo, scenario, **{**TINY, "data.size": SMALLER["data.size"], **overrides})


@pytest.mark.parametrize("algo", ["fedavg", "fedper", "fedsta", "pcgrad", "cagrad", "ditto"])
def test_a_returning_client_starts_from_the_common_model(trio, algo):
    federation = federation_of(algo, trio, **SMALLER, **{"federation.rounds": 5, **SOMETIMES})
    rounds = noted_rounds(federation)
    returned = False
    for index in range(5):
        present, behind = federation.present(index), set(federation.behind)
        (absent,) = set(range(3)).difference(present)
        kept = federation.executor.clients[absent].main.flat.vector.clone()
        row = federation.round(index)
        assert torch.equal(federation.executor.clients[absent].main.flat.vector, kept)
        first, second = rounds[-1].encoder.before
        assert torch.allclose(first, second, atol=1e-6)
        returned |= bool(behind.intersection(present))
        assert (row["bytes_down"] > row["bytes_up"]) is bool(behind.intersection(present))
    assert returned


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_a_method_with_personal_models_has_nothing_to_catch_up_with(scenario_file, part):
    """FedHCA²'s common update is its own affair, whichever of its halves is off."""
    federation = federation_of(
        "fedhca2", scenario_file, **{"federation.rounds": 2, "federation.participation": 0.5, f"algo.{part}": "none"}
    )
    federation.round(0)
    federation.round(1)
    assert federation.common == {} and federation.behind
    assert federation.algorithm.common == ()


def test_participation_has_no_meaning_for_local(trio_run):
    with pytest.raises(UsageError, match="local on trio: nobody takes part in anything"):
        trio_run("local", **{"federation.participation": 0.5})


@pytest.mark.parametrize("algo, option", [("fedprox", "mu"), ("ditto", "lam"), ("fedamp", "lam"), ("fedmtl", "rho")])
def test_a_regulariser_changes_training_and_zero_takes_it_away(trio_run, algo, option):
    extra = {"algo.sigma": 1e4} if algo == "fedamp" else {}
    strong, none = (rows_of(trio_run(algo, **{f"algo.{option}": value, **extra})) for value in (5.0, 0.0))
    assert strong[-1]["losses"] != none[-1]["losses"]
    plain = rows_of(trio_run("fedavg" if algo == "fedprox" else "local"))
    assert none[-1]["losses"] == plain[-1]["losses"]


def test_ditto_scores_the_personal_track(trio_run):
    scores = [r["value"] for r in trio_run("ditto", **{"algo.lam": 0.0}).scores]
    assert scores == [r["value"] for r in trio_run("local").scores]
    assert scores != [r["value"] for r in trio_run("fedavg").scores]


def test_fedbabu_finetunes_a_copy(trio_run):
    with_tuning, without = trio_run("fedbabu"), trio_run("fedbabu", **{"algo.finetune_epochs": 0})
    assert [r["value"] for r in with_tuning.scores] != [r["value"] for r in without.scores]
    # scoring leaves no trace in training
    assert [r["losses"] for r in rows_of(with_tuning)] == [r["losses"] for r in rows_of(without)]


def test_frozen_blocks_do_not_move(trio_run, tmp_path):
    from fmtlbench.engine.checkpoint import Checkpoint

    for algo, options, frozen in (("fedbabu", {}, "head"), ("fedrep", {"algo.head_epochs": 0}, "head")):
        with pytest.raises(Stopped):  # with both checkpoints still there
            trio_run(algo, out=tmp_path / "stopped", checkpoint_every=1, progress=AfterRound(2), **options)
        (folder,) = (tmp_path / "stopped" / "trio" / algo).iterdir()
        first, last = (Checkpoint(folder / "checkpoint", r).read("client-001")["main"] for r in (1, 2))
        heads = trio_run(algo, **options).summary["clients"][1]["parameters"][frozen]
        assert (first["vector"][-heads:] == last["vector"][-heads:]).all()
        assert not (first["vector"][:1000] == last["vector"][:1000]).all()


def test_an_epochs_batches_are_shared_by_turns():
    top, bottom = ("decoder", "head"), ("encoder",)
    assert turns_of(bottom, 7) == {0: bottom}
    assert turns_of((top, bottom), 7) == {0: top, 3: bottom}
    assert turns_of((top, bottom), 2) == {0: top, 1: bottom}
    assert turns_of((top, bottom, top), 9) == {0: top, 3: bottom, 6: top}
    assert turns_of((top, bottom), 1) == {0: ("decoder", "head", "encoder")}  # not one for each: all at once


def test_one_local_epoch_of_fedrep_trains_everything_in_as_many_steps_as_others_take(scenario_file):
    """The papers train PASCAL for one local epoch: heads on half of its batches, then the encoder on the others."""
    once = {"federation.rounds": 1, "train.local_epochs": {"pascal": 1, "nyud": 2}}
    fedrep, fedper = (federation_of(algo, scenario_file, **once) for algo in ("fedrep", "fedper"))
    seen = {}

    def watch(party, _):
        flat = fedrep.executor.clients[party.index].main.flat
        grads = {kind: {p.grad is not None for p in flat.parameters_of((kind,))} for kind in flat.counts()}
        assert all(len(alike) == 1 for alike in grads.values())
        seen.setdefault(party.index, []).append("".join(kind[0] for kind, (on,) in grads.items() if on))

    start = [client.main.flat.vector.clone() for client in fedrep.executor.clients]
    fedrep.algorithm.aggregate = lambda rnd: {}
    fedrep.round(0, watch)
    assert [len(steps) for steps in seen.values()] == [client.steps_per_round for client in fedper.executor.clients]
    assert [client.steps_per_round for client in fedrep.executor.clients] == [
        client.steps_per_round for client in fedper.executor.clients
    ]
    for index, steps in seen.items():
        half = len(steps) // 2
        assert steps == ["dh"] * half + ["e"] * (len(steps) - half) and half
        moved = fedrep.executor.clients[index].main.flat.vector != start[index]
        assert all(moved[part.start : part.stop].any() for part in fedrep.executor.clients[index].main.flat.segments)


def test_more_head_epochs_than_local_epochs_are_refused(scenario_file):
    given = {"train.local_epochs": {"pascal": 1, "nyud": 4}}
    admit(resolve("fedrep", scenario_file, overrides={**given, "algo.head_epochs": 1}))
    with pytest.raises(UsageError, match=r"fedrep on duo: local epochs of pascal: algo.head_epochs=2 .* 1 at most"):
        admit(resolve("fedrep", scenario_file, overrides={**given, "algo.head_epochs": 2}))
