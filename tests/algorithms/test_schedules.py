"""What travels, what trains, what is scored, and who weighs how much."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from toys import aggregate, make, make_parties, make_round, of, without

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.schema import build, plain

PARTIES = make_parties([("depth", "edge"), ("semseg",), ("depth",), ("edge", "depth")], datasets=("nyud",))
ALL_KINDS = ("encoder", "decoder", "head")


def test_listing_the_zoo_loads_neither_torch_nor_scipy():
    code = (
        "import sys; from fmtlbench.algorithms import ALGORITHMS; assert len(ALGORITHMS) >= 15; "
        "print([m for m in ('torch', 'scipy', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_whole_zoo_is_there():
    means = "local single_task_fl fedavg fedprox fedper fedrep fedbabu fedsta ditto"
    others = "fedamp pcgrad cagrad fedmtl matfl fedhca2"
    assert {*means.split(), *others.split()} <= set(ALGORITHMS)
    for cls in ALGORITHMS.values():
        assert cls.title and cls.paper


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_options_survive_the_config(name):
    params = ALGORITHMS[name].Params()
    assert build(ALGORITHMS[name].Params, plain(params)) == params


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_heads_never_travel_and_results_follow_what_is_shared(name):
    rnd = make_round(PARTIES)
    for index in range(25):
        shared = make(name, PARTIES).shared(index)
        assert set(shared) <= {"encoder", "decoder"}
    method = make(name, PARTIES)
    if shared := method.shared(0):
        new = method.aggregate(of(rnd, method))
        sent_later = name == "fedfomo"  # when the next round begins
        assert set(new) == (set() if sent_later else set(shared))
        assert all(new[kind].shape == getattr(rnd, kind).after.shape for kind in new)


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "ditto", "fedamp", "pcgrad", "cagrad", "fedmtl"])
def test_encoder_variants_treat_the_encoder_as_ever(name):
    rnd = make_round(PARTIES)
    both, alone = aggregate(name, rnd), aggregate(name, rnd, shared="encoder")
    assert set(both) == {"encoder", "decoder"} and set(alone) == {"encoder"}
    assert torch.equal(both["encoder"], alone["encoder"])


@pytest.mark.parametrize("name", ["fedper", "fedrep", "fedbabu", "single_task_fl", "matfl"])
def test_encoder_methods(name):
    assert make(name, PARTIES).shared(0) == ("encoder",)


def test_fedsta_unifies_decoders_of_a_task_every_so_often():
    assert not any("decoder" in make("fedsta", PARTIES).shared(i) for i in range(100))  # as the FedHCA² supplement
    assert [i for i in range(7) if "decoder" in make("fedsta", PARTIES, unify_every=3).shared(i)] == [2, 5]
    rnd = make_round(PARTIES)
    new = aggregate("fedsta", rnd, unify_every=1)
    for task in ("depth", "edge", "semseg"):
        rows = [k for k, owner in enumerate(rnd.decoder.owners) if owner.task == task]
        for k in rows:
            torch.testing.assert_close(new["decoder"][k], rnd.decoder.after[rows].mean(0))
    torch.testing.assert_close(new["encoder"][0], rnd.encoder.after.mean(0))
    assert set(aggregate("fedsta", rnd)) == {"encoder"}


def test_fedrep_fits_heads_first_within_the_local_epochs():
    top, bottom = ("decoder", "head"), ("encoder",)
    assert make("fedrep", PARTIES).local_schedule(2) == [top, bottom]
    assert make("fedrep", PARTIES).local_schedule(5) == [top, top, bottom, bottom, bottom]
    assert make("fedrep", PARTIES).local_schedule(1) == [(top, bottom)]  # each on half of the batches
    assert make("fedrep", PARTIES, head_epochs=1).local_schedule(3) == [top, bottom, bottom]
    assert make("fedrep", PARTIES, head_epochs=0).local_schedule(1) == [bottom]
    assert make("fedrep", PARTIES, head_epochs=1).local_schedule(1) == [top]
    with pytest.raises(ValueError, match=r"algo.head_epochs=3 is more than there are; expected 2 at most"):
        make("fedrep", PARTIES, head_epochs=3).local_schedule(2)


def test_fedbabu_trains_the_encoder_and_is_scored_after_finetuning():
    method = make("fedbabu", PARTIES, finetune_epochs=3)
    assert method.local_schedule(2) == [("encoder",)] * 2
    assert method.evaluation_model().finetune == (("decoder", "head"),) * 3
    assert make("fedbabu", PARTIES).evaluation_model().finetune == (("decoder", "head"),)
    assert make("fedbabu", PARTIES).evaluation_model().track == "main"


def test_ditto_scores_a_personal_track_that_never_travels():
    method = make("ditto", PARTIES)
    assert method.tracks == ("main", "personal") and method.evaluation_model().track == "personal"
    rnd = make_round(PARTIES)
    for kind, rows in aggregate("ditto", rnd).items():
        assert torch.equal(rows, aggregate("fedavg", rnd)[kind])


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"fedrep", "fedbabu"}))
def test_everybody_else_trains_everything(name):
    assert make(name, PARTIES).local_schedule(2) == [ALL_KINDS] * 2
    assert make(name, PARTIES).evaluation_model().finetune == ()


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "ditto", "fedper", "fedrep", "fedbabu", "fedsta"])
def test_sample_weights(name):
    rnd = make_round(PARTIES)
    options = {"unify_every": 1} if name == "fedsta" else {}
    new = aggregate(name, rnd, weighting="samples", **options)
    w = torch.tensor([float(party.samples) for party in PARTIES])  # 10, 20, 30, 40
    torch.testing.assert_close(new["encoder"][2], (w[:, None] * rnd.encoder.after).sum(0) / w.sum())
    if "decoder" in new:
        w = torch.tensor([float(PARTIES[o.client].samples) for o in rnd.decoder.owners])
        if name == "fedsta":
            w = w * torch.tensor([o.task == rnd.decoder.owners[0].task for o in rnd.decoder.owners])
        torch.testing.assert_close(new["decoder"][0], (w[:, None] * rnd.decoder.after).sum(0) / w.sum())


def test_single_task_fl_averages_alike_clients_wherever_they_stand():
    sets = [("depth",), ("edge", "depth"), ("depth",), ("depth", "edge"), ("edge",)]
    parties = make_parties(sets, datasets=("nyud",))
    rnd = make_round(parties)
    new, after = aggregate("single_task_fl", rnd)["encoder"], rnd.encoder.after
    for group in ([0, 2], [1, 3], [4]):
        for i in group:
            torch.testing.assert_close(new[i], after[group].mean(0))
    weighted = aggregate("single_task_fl", rnd, weighting="samples")["encoder"]
    torch.testing.assert_close(weighted[0], (10 * after[0] + 30 * after[2]) / 40)
    elsewhere = make_round(make_parties(sets, datasets=("nyud", "pascal")))
    new = aggregate("single_task_fl", elsewhere)["encoder"]  # 1 and 3 are both pascal, 0, 2, 4 nyud
    torch.testing.assert_close(new[4], elsewhere.encoder.after[4])


def test_fedavg_of_decoders_counts_every_decoder_once():
    """Multi-task clients with different numbers of tasks: the public code mis-indexes these."""
    rnd = make_round(PARTIES)
    new = aggregate("fedavg", rnd)["decoder"]
    assert len(new) == 6
    torch.testing.assert_close(new, rnd.decoder.after.mean(0).expand_as(new))


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"local"}))
def test_partial_participation(name):
    """Only the present clients' rows come, and only they get an answer, the same as if nobody else existed."""
    rnd = make_round(PARTIES)
    method = make(name, PARTIES)
    present = of(without(rnd, {0, 2}), method)
    new = method.aggregate(present)
    for kind, value in new.items():
        assert value.shape == getattr(present, kind).after.shape and torch.isfinite(value).all()
    if name in ("fedavg", "fedper"):
        torch.testing.assert_close(new["encoder"][0], rnd.encoder.after[[1, 3]].mean(0))
