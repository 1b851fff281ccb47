"""Weightings of local losses in real rounds: who is touched by them, what is checkpointed, what a run records."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from kit import SMALLER, TINY, TRIO, make_federation, rows_of
from notes import Notes
from resuming import cut_and_whole, numbers_of

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.weightings import WEIGHTINGS

OWN = """\
import torch
from fmtlbench.weightings import WEIGHTINGS, Weighting


@WEIGHTINGS.register("own")
class Own(Weighting):
    "Own: a sum by other means."
    title, paper = "Own", "none"
    {body}
"""
BY_GRADIENTS = "needs_gradients = True"
WRONG = "def total(self, losses):\n        return losses"


def vectors(weighting, trio, algo="local", **given):
    """What the clients hold after one round."""
    overrides = {**TINY, **SMALLER, "federation.rounds": 1, "train.weighting": weighting, **given}
    federation = make_federation(algo, trio, **overrides)
    federation.round(0)
    return {client.party.id: client.main.flat for client in federation.executor.clients}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    file = tmp_path_factory.mktemp("plain") / "trio.yml"
    file.write_text(TRIO)
    return vectors("equal", str(file))


@pytest.mark.parametrize("weighting", sorted(set(WEIGHTINGS) - {"equal"}))
def test_clients_with_one_task_are_not_touched(weighting, trio, plain):
    weighted = vectors(weighting, trio)
    assert torch.equal(plain["one"].vector, weighted["one"].vector)
    starts_equal = weighting == "dwa"  # for two epochs, which is all that a round has
    assert torch.equal(plain["four"].vector, weighted["four"].vector) is starts_equal
    assert weighted["four"].vector.isfinite().all()


def test_gradients_added_up_task_by_task_are_those_of_the_sum(trio, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.format(body=BY_GRADIENTS))
    sgd = {"train.optimizer": "sgd", "train.lr": 1e-2}  # adam would make much of a rounding error
    for algo in ("local", "fedprox"):
        plain, own = (vectors(w, trio, algo, **sgd) for w in ("equal", str(file)))
        for client in plain:
            torch.testing.assert_close(own[client].vector, plain[client].vector, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("weighting", ["dwa", "rlw", "uw", "famo", "gradnorm", "pcgrad", "db"])
def test_interrupted_is_uninterrupted(trio_run, tmp_path, weighting):
    run = partial(trio_run, "fedper", rounds=3, **{"train.weighting": weighting, "train.local_epochs.pascal": 1})
    resumed, whole = cut_and_whole(run, tmp_path)
    assert numbers_of(resumed) == numbers_of(whole)


def test_every_track_has_weights_of_its_own(trio):
    overrides = {**TINY, **SMALLER, "federation.rounds": 1, "train.weighting": "uw"}
    federation = make_federation("ditto", trio, **overrides)
    federation.round(0)
    four, one, _ = federation.executor.clients
    assert sorted(key.partition(" ")[0] for key in four.weights) == ["main", "personal"] and not one.weights
    assert len({id(w.weighting) for w in four.weights.values()}) == 2


def test_a_frozen_encoder_leaves_each_task_its_own_gradient(trio):
    """FedRep's first epoch trains decoders and heads alone: nothing is there to combine."""
    plain, weighted = (vectors(w, trio, "fedbabu") for w in ("equal", "nash"))  # trains encoders only
    assert not torch.equal(plain["four"].vector, weighted["four"].vector)
    epochs = {"train.local_epochs": {"nyud": 1, "pascal": 1}, "algo.head_epochs": 1}
    plain, weighted = (vectors(w, trio, "fedrep", **epochs) for w in ("equal", "nash"))
    heads = [flat["four"].vector[flat["four"].places("head")[0].start :] for flat in (plain, weighted)]
    # Fixed weights are left out by scale-free ones: Adam does not see them either.
    torch.testing.assert_close(*heads, atol=1e-3, rtol=1e-2)


def test_rows_tell_the_weights_and_a_note_says_once_who_has_nothing_to_weigh(trio_run, tmp_path):
    notes = Notes()
    rows = rows_of(trio_run("local", out=tmp_path, **{"train.weighting": "rlw"}, progress=notes))
    for row in rows:
        assert sorted(row["task_weights"]) == ["four", "two"]
        assert sum(row["task_weights"]["four"].values()) == pytest.approx(1)
    assert [text for text in notes.told if "weigh" in text] == [
        "train.weighting=rlw: one task per step, so nothing to weigh for one"
    ]
    assert "task_weights" not in rows_of(trio_run("local"))[0]


def test_a_wrong_answer_is_told_in_one_line(trio_run, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.format(body=WRONG))
    with pytest.raises(FmtlbenchError, match=r"own.total failed: .*returned \(4,\), expected a tensor of shape \(\)"):
        trio_run("local", **{"train.weighting": str(file)})


def test_compiled_steps_do_not_go_with_gradients_of_each_task():
    resolve("local", "st_mt_1", overrides={"train.compile": True, "train.weighting": "uw"})
    with pytest.raises(UsageError, match=r"nash .* train.compile=false"):
        resolve("local", "st_mt_1", overrides={"train.compile": True, "train.weighting": "nash"})
