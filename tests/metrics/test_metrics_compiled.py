"""The compiled kernels say what torch says: decoding and counts exactly, sums to the last bits, errors word by word."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from fmtlbench.metrics import METRICS, RMSE, MeanAngle, MetricError
from fmtlbench.metrics import _compiled as dispatch
from fmtlbench.metrics import _pixel_passes as kernels
from fmtlbench.tasks import TASKS

SHAPE = (2, 37, 61)  # 2257 pixels an image: blocks are cut, and the last one is not full
TAKEN = (torch.float32, torch.float64)
DTYPES = (*TAKEN, torch.float16, torch.bfloat16)


def random(seed=0):
    return torch.Generator().manual_seed(seed)


def vectors(dtype=torch.float32):
    """(predictions, labels) with every special case that a pixel can be."""
    prediction = 3 * torch.randn(SHAPE[0], 3, *SHAPE[1:], generator=random(), dtype=torch.float64)
    target = normalize(torch.randn(prediction.shape, generator=random(1), dtype=torch.float64), dim=1)
    target = torch.where(torch.rand(SHAPE, generator=random(2)).unsqueeze(1) < 0.1, 255.0, target)
    prediction[0, :, 0], target[0, :, 1] = 0.0, 0.0
    prediction[0, :, 2], target[0, :, 2] = 0.0, 0.0
    target[0, 1, 3] = 255.0  # one channel is enough
    prediction[0, :, 4] = 5 * target[0, :, 4]
    prediction[0, :, 5] = -target[0, :, 5]
    prediction[0, :, 6] = target[0, :, 6] + 1e-7
    prediction[0, :, 7] = -target[0, :, 7] + 1e-7
    target[0, :, 8] = torch.tensor([0.0, 0.0, 1.0])[:, None]
    prediction[0, :, 8] = torch.tensor([1.0, 0.0, 0.0])[:, None]
    prediction[0, :, 9] *= 1e-7  # below the least length for some dtypes, or nothing at all
    return prediction.to(dtype), target.to(dtype)


def metres(dtype=torch.float32):
    prediction = 4 * torch.randn(SHAPE, generator=random(), dtype=torch.float64) + 3
    target = 90 * torch.rand(SHAPE, generator=random(1), dtype=torch.float64)
    for row, value in enumerate((0.0, -1.0, 80.0, 79.9999, 255.0, 1e-7, 0.7)):
        target[0, row] = value
    prediction[0, 10], prediction[0, 11] = target[0, 10] * 1.25, target[0, 11] / 1.25
    prediction[0, 12] = target[0, 12]
    return prediction.to(dtype), target.to(dtype)


GIVEN = {"merr": vectors, "rmse": metres}
OPTIONS = [("merr", {}), ("merr", {"zero": "count"}), ("rmse", {}), ("rmse", {"max_depth": 0.7})]


@pytest.fixture
def both(monkeypatch):
    """Updates two meters, one by the kernel and one by torch; both are returned."""

    def run(name, options, *pair):
        one, other = METRICS[name](**options), METRICS[name](**options)
        one.update(*pair)
        with monkeypatch.context() as patch:
            patch.setattr(importlib.import_module(f"fmtlbench.metrics.{name}"), "compiled", lambda *_: None)
            other.update(*pair)
        return one, other

    return run


def alike(one, other):
    ours, theirs = one.state(), other.state()
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert ours[key].dtype == value.dtype and ours[key].shape == value.shape
        if value.dtype == np.int64:
            np.testing.assert_array_equal(ours[key], value, err_msg=key)
        else:
            np.testing.assert_allclose(ours[key], value, rtol=1e-13, err_msg=key)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_every_dtype(both, name, options, dtype):
    one, other = both(name, options, *GIVEN[name](dtype))
    assert one.state()["pixels"] > 0
    alike(one, other)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_mixed_dtypes_strides_and_gradients(both, name, options):
    prediction, target = GIVEN[name]()
    alike(*both(name, options, prediction.double(), target))
    alike(*both(name, options, prediction, target.double()))
    swapped = [value.transpose(-1, -2).contiguous().transpose(-1, -2) for value in (prediction, target)]
    assert not swapped[0].is_contiguous()
    alike(*both(name, options, *swapped))
    alike(*both(name, options, prediction[..., ::3, 1:], target[..., ::3, 1:]))
    alike(*both(name, options, prediction[:1].expand_as(prediction), target))
    alike(*both(name, options, prediction.clone().requires_grad_(), target))
    alike(*both(name, options, prediction.numpy(), target.numpy()))


@pytest.mark.parametrize("value", [255.0, 0.0])
@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_nothing_to_score(both, name, options, value):
    prediction, target = GIVEN[name]()
    one, other = both(name, options, prediction, torch.full_like(target, value))
    alike(one, other)
    assert math.isnan(one.compute().value) or (options == {"zero": "count"} and value == 0)
    one.update(prediction[:0], target[:0])  # no image
    one.update(prediction[..., :0], target[..., :0])
    alike(one, other)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("place", [0, 1500, -1])
@pytest.mark.parametrize("name", GIVEN)
def test_what_is_not_finite_is_refused_in_the_same_words(name, place, which, bad):
    pair = GIVEN[name]()
    pair[which].view(-1)[place] = bad
    pair[1 - which].view(-1)[3] = 255.0
    said = []
    for way in ("update", "_by_torch"):
        meter = METRICS[name]()
        with pytest.raises(MetricError) as caught:
            getattr(meter, way)(*pair)
        said.append(str(caught.value))
        assert meter.state() == {}
    assert said[0] == said[1] and f"1 of {pair[which].numel()} values" in said[0]


def test_huge_and_tiny_numbers(both):
    """Squares that overflow or vanish: a vector without a direction, 90°, as before."""
    prediction, target = vectors(torch.float64)
    prediction[1, :, :5] *= 1e200
    prediction[1, :, 5:9] *= 1e-200
    alike(*both("merr", {}, prediction, target))
    depth, label = metres(torch.float64)
    depth[1, :5], label[1, 5:9] = 1e100, 1e-300
    alike(*both("rmse", {}, depth, label))


@pytest.mark.parametrize("dtype", TAKEN)
@pytest.mark.parametrize("limit", [0.1, 0.3, 0.7, 10.1, 79.99])
def test_the_greatest_depth_is_compared_in_the_dtype_of_the_label(both, dtype, limit):
    at = torch.tensor(limit, dtype=dtype)
    around = torch.stack([at, torch.nextafter(at, at.new_tensor(0)), torch.nextafter(at, at.new_tensor(99))])
    for other in TAKEN:
        one, torchs = both("rmse", {"max_depth": limit}, torch.ones(1, 1, 3, dtype=other), around.view(1, 1, 3))
        assert one.state()["pixels"] == torchs.state()["pixels"] == 1


def test_angles_are_exact_where_they_are_known():
    up = torch.zeros(1, 3, 1, 1, dtype=torch.float64)
    up[0, 2] = 1.0
    for turn, expected in ((up, 0.0), (-up, 180.0), (0 * up, 90.0), (up.roll(1, 1), 90.0)):
        meter = MeanAngle()
        meter.update(turn, up)
        assert meter.compute().value == expected


@pytest.mark.parametrize("near", [0, 180])
@pytest.mark.parametrize("exponent", range(-14, 1))
def test_small_angles_keep_their_digits(near, exponent):
    """2·atan2 of the two lengths: an arc cosine would lose half of the digits here."""
    turn = 10.0**exponent
    label = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64).view(1, 3, 1, 1)
    guess = torch.tensor([math.sin(turn), 0.0, math.cos(turn)], dtype=torch.float64).view(1, 3, 1, 1)
    meter = MeanAngle()
    meter.update(guess if near == 0 else -guess, label)
    value = meter.compute().value
    off = value if near == 0 else 180 - value
    assert off == pytest.approx(math.degrees(turn), rel=1e-12 if near == 0 else 1e-9, abs=0 if near == 0 else 6e-14)


def test_arctan2_over_all_its_range():
    rng = np.random.default_rng(0)
    angle = np.concatenate([rng.uniform(0, np.pi / 2, 5000), 10.0 ** rng.uniform(-12, 0, 5000)])
    angle = np.concatenate([angle, np.pi / 2 - 10.0 ** rng.uniform(-12, 0, 1000), np.pi / 8 * np.arange(5)])
    y, x = abs(np.sin(angle)), abs(np.cos(angle))
    ours = np.array([kernels.arctan2(*pair) for pair in zip(y, x)])
    expected = np.arctan2(y, x)
    assert (abs(ours - expected) <= 3 * np.spacing(expected)).all()
    assert kernels.arctan2(0.0, 0.0) == 0 and kernels.arctan2(1.0, 1.0) == math.pi / 4


@pytest.mark.parametrize("name", GIVEN)
def test_sums_do_not_depend_on_threads(name):
    pair, states, threads = GIVEN[name](), [], torch.get_num_threads()
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            meter = METRICS[name]()
            meter.update(*pair)
            states.append(meter.state())
    finally:
        torch.set_num_threads(threads)
    for state in states[1:]:
        assert all(state[key].tobytes() == value.tobytes() for key, value in states[0].items())


@pytest.mark.parametrize("task", ["semseg", "human_parts"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 5, 37, 61), (1, 1, 3, 4), (2, 40, 70, 130), (3, 21, 1, 1)])
def test_decoding_is_argmax(task, dtype, shape):
    random_scores = torch.randn(shape, generator=random()).to(dtype)
    ties = torch.randint(0, 3, shape, generator=random(1)).to(dtype)
    special = ties.clone()
    for seed, value in ((2, math.nan), (3, math.inf), (4, -math.inf)):
        special[torch.rand(shape, generator=random(seed)) < 0.2] = value
    equal = torch.full(shape, -math.inf, dtype=dtype)
    signs = torch.where(ties == 0, torch.tensor(-0.0, dtype=dtype), 0.0)
    lasts = random_scores.contiguous(memory_format=torch.channels_last)
    for scores in (random_scores, ties, special, equal, signs, lasts, ties[..., ::2], ties.transpose(2, 3)):
        decoded, expected = TASKS[task].decode(scores), scores.argmax(1)
        assert decoded.dtype == expected.dtype == torch.int64
        assert decoded.is_contiguous() and torch.equal(decoded, expected)


def test_decoding_of_odd_tensors():
    decode = TASKS["semseg"].decode
    assert decode(torch.zeros(0, 5, 3, 4)).shape == (0, 3, 4)
    assert decode(torch.zeros(2, 5, 0, 4)).shape == (2, 0, 4)
    with pytest.raises(IndexError):
        decode(torch.zeros(2, 0, 3, 4))
    whole = torch.randint(0, 9, (2, 5, 3, 4), generator=random())
    assert torch.equal(decode(whole), whole.argmax(1))
    learnt = torch.randn(2, 5, 3, 4, generator=random()).requires_grad_()
    assert torch.equal(decode(learnt), learnt.argmax(1))


def test_torch_takes_what_kernels_do_not_read(monkeypatch):
    def never(*_):
        raise AssertionError

    for name in ("angles", "depths", "largest"):
        monkeypatch.setattr(kernels, name, never)
    assert dispatch.compiled("largest", (torch.zeros(1, 2, 3, 4, device="meta"),)) is None
    RMSE().update(*metres(torch.float16))
    MeanAngle().update(*vectors(torch.bfloat16))
    assert TASKS["semseg"].kind.decode(torch.zeros(1, 2, 3, 4, dtype=torch.half)).shape == (1, 3, 4)
    with pytest.raises(AssertionError):
        RMSE().update(*metres())


def test_tasks_and_dispatch_import_nothing_heavy():
    code = (
        "import sys, fmtlbench.tasks, fmtlbench.metrics._compiled; print(sorted({'torch', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
