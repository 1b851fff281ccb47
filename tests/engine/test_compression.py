"""Uploads in fewer bytes: what arrives, what it costs, and what is left for the next time, whatever the method."""

from __future__ import annotations

import math

import pytest
import torch
from kit import SMALLER, TINY, TWINS, rows_of
from resuming import cut_and_whole, numbers_of

import fmtlbench
from fmtlbench.config.run_config import FederationConfig
from fmtlbench.engine.compression import Compressor, round_to_levels
from fmtlbench.exchange import TensorSlice

NAMES = ("decoder main depth", "decoder main edge")
TENSORS = (TensorSlice("a", "a", 0, 100), TensorSlice("b", "b", 100, 104), TensorSlice("n", "n", 104, 105))


def make(kind, **given):
    return Compressor(FederationConfig(rounds=1, compression=kind, **given))


def rows(seed, count=2):
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(105, generator=g) for _ in range(count)]


def test_topk_sends_the_largest_entries_of_each_tensor_and_bills_values_and_places():
    before, after = rows(0), rows(1)
    seen, size = make("topk", compression_share=0.1).send(NAMES, before, after, TENSORS)
    for start, end, got in zip(before, after, seen):
        update, arrived = end - start, got - start
        for t, kept in zip(TENSORS, (10, 1, 1)):
            part, there = update[t.start : t.stop], arrived[t.start : t.stop]
            chosen = part.abs().topk(kept).indices
            expected = torch.zeros_like(part).scatter(0, chosen, part[chosen])
            torch.testing.assert_close(there, expected, atol=1e-6, rtol=1e-6)
    # 10 of 100: an index of 7 bits each is less than a bit per entry; 1 of 4: 2 bits; 1 of 1: none.
    bits = (10 * 32 + 10 * 7) + (32 + 2) + 32
    assert size == 2 * math.ceil(bits / 8)


def test_many_entries_are_told_by_a_bit_each():
    (before,), (after,) = rows(0, 1), rows(1, 1)
    _, size = make("topk", compression_share=0.5).send(NAMES[:1], [before], [after], TENSORS[:1])
    assert size == math.ceil((50 * 32 + 100) / 8)  # 50 indices would be 350 bits


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_rounded_values_lie_within_a_step_below(bits):
    values = rows(3, 1)[0]
    low, high = values.aminmax()
    step = (high - low) / (2**bits - 1)
    got = round_to_levels(values, bits)
    assert ((got <= values + 1e-5) & (got >= values - step - 1e-5)).all()
    assert len(got.unique()) <= 2**bits
    assert torch.equal(round_to_levels(values, 32), values)
    assert torch.equal(round_to_levels(torch.full((5,), 3.0), bits), torch.full((5,), 3.0))


def test_quantize_bills_its_bits_and_the_range_of_each_tensor():
    _, size = make("quantize").send(NAMES, rows(0), rows(1), TENSORS)
    assert size == 2 * math.ceil((105 * 8 + 3 * 64) / 8)
    _, size = make("quantize", compression_bits=32).send(NAMES, rows(0), rows(1), TENSORS)
    assert size == 2 * 105 * 4
    _, size = make("topk", compression_bits=8).send(NAMES, rows(0), rows(1), TENSORS[:1])
    assert size == 2 * math.ceil((10 * 8 + 10 * 7 + 64) / 8)


@pytest.mark.parametrize("kind", ["topk", "quantize"])
def test_nothing_is_lost_with_error_feedback(kind):
    """What arrived in all rounds and what is still to come add up to all updates."""
    one, arrived, sent = make(kind), [torch.zeros(105), torch.zeros(105)], [torch.zeros(105), torch.zeros(105)]
    for index in range(6):
        before, after = rows(10 + index), rows(20 + index)
        seen, _ = one.send(NAMES, before, after, TENSORS)
        for k in range(2):
            arrived[k] += seen[k] - before[k]
            sent[k] += after[k] - before[k]
    for k in range(2):
        torch.testing.assert_close(arrived[k] + one.residuals[NAMES[k]], sent[k], atol=1e-4, rtol=1e-4)
    without = make(kind, error_feedback=False)
    without.send(NAMES, before, after, TENSORS)
    assert not without.residuals


def test_what_stays_home_is_free_and_whole():
    before, after = rows(0), rows(1)
    one = make("topk", compression_share=0.1)
    seen, size = one.send(NAMES, before, after, TENSORS, home=TENSORS[:1])
    assert size == 2 * math.ceil((32 + 2 + 32) / 8)
    for end, got, rest in zip(after, seen, one.residuals.values()):
        assert torch.equal(got[:100], end[:100]) and not rest[:100].any()


@pytest.fixture
def twin_run(tmp_path):
    file = tmp_path / "twins.yml"
    file.write_text(TWINS)

    def run(algo, **given):
        arguments = {"scenario": str(file), "rounds": 2, "out": tmp_path / "runs", "device": "cpu", "keep": "none"}
        return fmtlbench.run(algo, **{**arguments, **TINY, **SMALLER, "checkpoint_every": 9, **given})

    return run


@pytest.mark.parametrize("algo", ["fedavg", "fedamp", "fedbn"])
def test_any_method_pays_less_to_send_and_as_much_to_receive(twin_run, algo):
    """One that installs nothing, too: its client starts from what it has, not from what arrived."""
    plain, small = twin_run(algo), twin_run(algo, **{"federation.compression": "topk"})
    for before, after in zip(rows_of(plain), rows_of(small)):
        assert after["bytes_down"] == before["bytes_down"]
        assert 0.1 < after["bytes_up"] / before["bytes_up"] < 0.2  # a tenth of the values, and their places
    exact = twin_run(algo, **{"federation.compression": "quantize", "federation.compression_bits": 32})
    assert [row["bytes_up"] for row in rows_of(exact)] == [row["bytes_up"] for row in rows_of(plain)]
    # The same values but for the rounding of before + (after − before).
    losses = lambda result: [
        value for row in rows_of(result) for by_task in row["losses"].values() for value in by_task.values()
    ]
    assert losses(exact) == pytest.approx(losses(plain), rel=1e-2)


def test_interrupted_is_uninterrupted(twin_run, tmp_path):
    """Residuals are in the checkpoints."""
    options = {"federation.compression": "topk", "federation.compression_bits": 8, "rounds": 3}
    resumed, whole = cut_and_whole(lambda **given: twin_run("fedper", **{**options, **given}), tmp_path)
    assert numbers_of(resumed) == numbers_of(whole)


def test_bad_values_are_refused():
    from fmtlbench.base.errors import UsageError
    from fmtlbench.config.resolve import resolve

    for key, value, words in (
        ("compression", "gzip", "topk"),
        ("compression_share", 0, "more than 0"),
        ("compression_bits", 33, "32"),
    ):
        with pytest.raises(UsageError, match=words):
            resolve("fedavg", "st_mt_1", overrides={f"federation.{key}": value})
