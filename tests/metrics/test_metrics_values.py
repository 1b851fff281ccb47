"""Values worked out by hand or by a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fmtlbench.metrics import RMSE, EdgeLoss, EdgeLossPublic, MaxF, MeanAngle, MeanIoU, MetricError, delta_m
from fmtlbench.metrics.maxf import levels

STEPS = 20


def test_miou_by_hand_with_an_absent_class():
    prediction = torch.tensor([[[0, 0, 1, 1]]])
    target = torch.tensor([[[0, 1, 1, 255]]])
    skip, zero = MeanIoU(num_classes=3), MeanIoU(num_classes=3, absent="zero")
    for meter in (skip, zero):
        meter.update(prediction, target)
    assert skip.compute().value == pytest.approx(50)
    assert zero.compute().value == pytest.approx(100 / 3)
    assert skip.compute().extras["pixelAcc"] == pytest.approx(200 / 3)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_miou_takes_every_integer_dtype(dtype):
    rng = torch.Generator().manual_seed(0)
    prediction, target = torch.randint(0, 40, (2, 2, 9, 9), generator=rng)
    meter, reference = MeanIoU(num_classes=40), MeanIoU(num_classes=40)
    meter.update(prediction.to(dtype), target.to(dtype))
    reference.update(prediction, target)
    assert meter.compute() == reference.compute()


@pytest.mark.parametrize("steps", [STEPS, 2, 10, 50, 100, 256])
def test_maxf_levels_split_exactly_at_the_thresholds(steps):
    """The multiplication trick agrees with p ≥ t at every threshold and at the float32 just below it."""
    fine = levels(steps - 1)
    for k in range(1, steps):
        t = torch.tensor(k / steps)
        assert (t * fine).int() >= k * fine // steps
        assert (torch.nextafter(t, torch.tensor(0.0)) * fine).int() < k * fine // steps


def test_maxf_equals_a_loop_over_thresholds():
    rng = np.random.default_rng(0)
    prediction = rng.integers(0, 41, (3, 20, 20)).astype(np.float32) / 40  # many ties with the thresholds
    target = rng.choice([0, 1, 255], (3, 20, 20), p=[0.6, 0.3, 0.1])
    meter = MaxF()
    meter.update(prediction, target)
    valid, truth, scores, ious = target != 255, target == 1, [], []
    for k in range(1, STEPS):
        guess = (prediction >= np.float32(k / STEPS)) & valid
        p, r = (guess & truth).sum() / guess.sum(), (guess & truth).sum() / truth.sum()
        scores.append(130 * p * r / (0.3 * p + r))
        ious.append(100 * np.mean([(a & b).sum() / (a | b).sum() for a, b in zip(guess, truth)]))
    assert meter.compute().value == pytest.approx(max(scores))
    assert meter.compute().extras["sal_mIoU"] == pytest.approx(max(ious))


def test_merr_by_hand():
    target = torch.zeros(1, 3, 1, 5)
    target[0, 2] = 1.0
    target[0, :, 0, 3] = 0.0  # no normal here
    target[0, 0, 0, 4] = 255.0
    prediction = torch.zeros(1, 3, 1, 5)
    for i, degrees in enumerate([0, 20, 90]):
        prediction[0, 0, 0, i], prediction[0, 2, 0, i] = (
            math.sin(math.radians(degrees)),
            math.cos(math.radians(degrees)),
        )
    prediction[0, 1, 0, 3:] = 7.0
    skip, count = MeanAngle(), MeanAngle(zero="count")
    for meter in (skip, count):
        meter.update(5 * prediction, target)
    result = skip.compute()
    assert result.value == pytest.approx(110 / 3, abs=1e-5)
    assert count.compute().value == pytest.approx(200 / 4, abs=1e-5)
    assert result.extras["median"] == pytest.approx(20, abs=0.01)
    assert [result.extras[k] for k in ("within11.25", "within22.5", "within30")] == pytest.approx(
        [100 / 3, 200 / 3, 200 / 3]
    )


def test_rmse_by_hand():
    meter = RMSE()
    meter.update(torch.tensor([[[1.0, -5.0, 3.0, 9.0, 9.0]]]), torch.tensor([[[2.0, 3.0, 3.0, 0.0, 255.0]]]))
    result = meter.compute()
    assert result.value == pytest.approx(math.sqrt(10 / 3))
    assert result.extras["absRel"] == pytest.approx(1.5 / 3)
    assert result.extras["delta1"] == pytest.approx(100 / 3)


def test_edge_losses_differ_by_one_sigmoid():
    logits, target = torch.tensor([[[2.0, -1.0, 5.0]]]), torch.tensor([[[1, 0, 255]]])
    s = [1 / (1 + math.exp(-x)) for x in (2.0, -1.0)]
    ss = [1 / (1 + math.exp(-x)) for x in s]
    for metric, (a, b) in ((EdgeLoss, s), (EdgeLossPublic, ss)):
        meter = metric(positive_weight=0.8)
        meter.update(logits, target)
        assert meter.compute().value == pytest.approx(-(0.8 * math.log(a) + 0.2 * math.log(1 - b)) / 2)


def test_delta_m_by_hand():
    values, base = {"seg": 44.0, "depth": 0.5}, {"seg": 40.0, "depth": 0.4}
    up = {"seg": True, "depth": False}
    assert delta_m(values, base, up) == pytest.approx((10 - 25) / 2)
    assert delta_m(values, base, up, {"seg": 3, "depth": 1}) == pytest.approx((30 - 25) / 4)
    assert delta_m(base, base, up) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": {"a": 0.0, "b": 1.0}}, r"baseline\['a'\] is 0"),
        ({"baseline": {"a": math.nan, "b": 1.0}}, r"baseline\['a'\] is nan"),
        ({"values": {"a": 1.0, "b": math.nan}}, r"values\['b'\] is nan"),
        ({"baseline": {"a": 1.0}}, r"baseline lacks the keys \['b'\]"),
        ({"higher_is_better": {"a": True, "b": True, "c": True}}, r"has the extra keys \['c'\]"),
        ({"weights": {"a": 0, "b": 0}}, "all weights are 0"),
        ({"weights": {"a": -1, "b": 2}}, r"weights\['a'\] is -1"),
        ({"values": {}}, "no values"),
    ],
)
def test_delta_m_refuses(change, message):
    good = {
        "values": {"a": 1.0, "b": 2.0},
        "baseline": {"a": 1.0, "b": 2.0},
        "higher_is_better": {"a": True, "b": True},
    }
    with pytest.raises(MetricError, match=message):
        delta_m(**{**good, **change})
