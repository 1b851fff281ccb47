"""What holds for every registered metric: merging, the ideal value, errors that name the tensor, light imports."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.metrics import METRICS, MetricError

NAMES = ["edge_loss", "edge_loss_public", "maxf", "merr", "miou", "odsf", "rmse"]
OPTIONS = {"miou": {"num_classes": 5}, "odsf": {"gt": "plain", "nms": False, "max_dist": 0.05}}
IDEAL = {"miou": 100, "maxf": 100, "merr": 0, "rmse": 0, "odsf": 100, "edge_loss": 0}
SIZE = (14, 17)


def build(name):
    return METRICS[name](**OPTIONS.get(name, {}))


def batch(name, rng, images=2):
    """(prediction, target) as the engine hands them over, a tenth of the labels ignored."""
    shape = (images, *SIZE)
    ignored = rng.random(shape) < 0.1
    if name == "miou":
        return rng.integers(0, 5, shape), np.where(ignored, 255, rng.integers(0, 5, shape))
    if name == "merr":
        target = rng.normal(size=(images, 3, *SIZE))
        target /= np.linalg.norm(target, axis=1, keepdims=True)
        return rng.normal(size=target.shape), np.where(ignored[:, None], 255.0, target)
    if name == "rmse":
        return rng.normal(3, 2, shape), np.where(ignored, 255.0, rng.uniform(0.5, 9, shape))
    target = np.where(ignored, 255, rng.integers(0, 2, shape))
    return (rng.normal(size=shape) if name.startswith("edge_loss") else rng.random(shape)), target


def equal(a, b):
    """Counts bit for bit, sums to the last bits."""
    assert a.keys() == b.keys()
    for key in a:
        if np.issubdtype(a[key].dtype, np.integer):
            np.testing.assert_array_equal(a[key], b[key], err_msg=key)
        else:
            np.testing.assert_allclose(a[key], b[key], rtol=1e-13, err_msg=key)


def test_the_registry_holds_exactly_these():
    ours = [name for name, metric in METRICS.items() if metric.__module__.startswith("fmtlbench.")]
    assert ours == NAMES  # others may have been brought by files of users


@pytest.mark.parametrize("name", NAMES)
def test_describes_itself(name):
    metric = METRICS[name]
    assert metric.name == name
    assert metric.higher_is_better == (name not in ("edge_loss", "edge_loss_public", "merr", "rmse"))
    assert metric.unit in ("%", "deg", "m", "")
    assert metric.label and metric.tasks and "\n" not in metric.description


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), order=st.permutations(range(4)), cut=st.integers(0, 4))
def test_merge_is_associative_and_order_free(name, seed, order, cut):
    rng = np.random.default_rng(seed)
    batches = [batch(name, rng, images=int(rng.integers(1, 3))) for _ in range(4)]
    whole, left, right = build(name), build(name), build(name)
    for pair in batches:
        whole.update(*pair)
    for position, i in enumerate(order):
        (left if position < cut else right).update(*batches[i])
    left_state = left.state()
    right.merge(left)
    equal(right.state(), whole.state())
    equal(left.state(), left_state)  # the merged meter is left alone
    assert right.compute().value == pytest.approx(whole.compute().value, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_merging_an_empty_meter_changes_nothing(name):
    meter = build(name)
    meter.update(*batch(name, np.random.default_rng(0)))
    before = meter.state()
    meter.merge(build(name))
    equal(meter.state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_state_survives_pickling_and_loading(name):
    meter, other = build(name), build(name)
    meter.update(*batch(name, np.random.default_rng(0)))
    other.load_state(meter.state())
    assert other.compute() == meter.compute() == pickle.loads(pickle.dumps(meter)).compute()


@pytest.mark.parametrize("name", sorted(IDEAL))
def test_perfect_prediction_gives_the_ideal_value(name):
    _, target = batch(name, np.random.default_rng(1))
    if name == "odsf":  # already thin, or thinning would be judged as well
        target = np.zeros((1, *SIZE), int)
        target[:, 5, 3:12] = 1
    if name == "merr":
        prediction = target * 3.0
    elif name == "rmse":
        prediction = target
    elif name == "edge_loss":
        prediction = np.where(target == 1, 800.0, -800.0)
    elif name == "miou":
        prediction = np.where(target == 255, 0, target)
    else:
        prediction = (target == 1).astype(np.float32)
    meter = build(name)
    meter.update(prediction, target)
    assert meter.compute().value == pytest.approx(IDEAL[name], abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_no_valid_pixel_gives_nan(name):
    meter = build(name)
    assert math.isnan(meter.compute().value)
    prediction, target = batch(name, np.random.default_rng(0))
    meter.update(prediction, np.full_like(target, 255))
    assert math.isnan(meter.compute().value)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_changed(name):
    pair = [torch.as_tensor(value) for value in batch(name, np.random.default_rng(0))]
    pair = [value.int() if name in ("miou",) else value for value in pair]  # int32: what the meters compute in
    copies = [value.clone() for value in pair]
    build(name).update(*pair)
    assert all(torch.equal(a, b) for a, b in zip(pair, copies))


@pytest.mark.parametrize("name", NAMES)
def test_a_channel_axis_of_length_one_is_dropped(name):
    if name == "merr":
        pytest.skip("has three channels")
    prediction, target = batch(name, np.random.default_rng(0))
    flat, deep = build(name), build(name)
    flat.update(prediction, target)
    deep.update(prediction[:, None], target[:, None])
    assert flat.compute() == deep.compute()


def wrong(name):
    prediction, target = batch(name, np.random.default_rng(0))
    yield "shape", prediction[..., :-1], target, "prediction: shape"
    yield "dimensions", prediction[0, 0], target, "prediction: shape"
    yield "batch", prediction[:1], target, "prediction: shape"
    yield "dtype", prediction.astype(complex), target, "prediction: dtype"
    yield "text", "text", target, "prediction: expected a tensor"
    if name == "miou":
        yield "float", prediction.astype(float), target, "prediction: dtype torch.float64, expected integer"
        yield "class", prediction + 1, target, "prediction: values from 1 to 5, expected class ids 0 to 4"
        yield "label", prediction, np.where(target == 255, 255, target + 1), "target: values from"
        yield "negative", prediction, np.where(target == 0, -1, target), "target: values from -1"
        yield "large", prediction, np.where(target == 0, 256, target), "target: values from"
        return
    yield "integer", prediction.astype(int), target, "prediction: dtype torch.int64, expected floating"
    broken = prediction.copy()
    broken.flat[7] = math.nan
    yield "nan", broken, target, "prediction: 1 of"
    if name in ("merr", "rmse"):
        bad = target.copy()
        bad.flat[3] = math.inf
        yield "infinite label", prediction, bad, "target: 1 of"
    else:
        for value in (2, 254, 256, -1):
            bad = target.copy()
            bad.flat[3] = value
            yield f"label {value}", prediction, bad, "target: values from"
        yield "half label", prediction, target + 0.5, "target: values from"
    if name in ("maxf", "odsf"):
        yield "percent", prediction * 100, target, "prediction: values from"
        yield "below", prediction - 0.5, target, "prediction: values from"


@pytest.mark.parametrize(
    ("name", "prediction", "target", "message"),
    [pytest.param(name, *case[1:], id=f"{name}-{case[0]}") for name in NAMES for case in wrong(name)],
)
def test_mistakes_name_the_tensor_and_leave_the_state_alone(name, prediction, target, message):
    meter = build(name)
    with pytest.raises(MetricError, match=message) as caught:
        meter.update(prediction, target)
    assert isinstance(caught.value, FmtlbenchError) and isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(meter.label) and "\n" not in str(caught.value)
    assert meter.state() == {}


def test_merge_refuses_other_metrics_and_options():
    with pytest.raises(MetricError, match="RMSE"):
        build("miou").merge(build("rmse"))
    with pytest.raises(MetricError, match="num_classes"):
        build("miou").merge(METRICS["miou"](num_classes=6))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("miou", {"num_classes": 1}),
        ("miou", {"num_classes": 5, "absent": "ignore"}),
        ("miou", {"num_classes": 5, "ignore": 3}),
        ("merr", {"zero": "no"}),
        ("rmse", {"max_depth": 0}),
        ("odsf", {"gt": "nyud"}),
        ("odsf", {"max_dist": 11}),
        ("odsf", {"thresholds": 0}),
        ("odsf", {"jobs": 0}),
        ("edge_loss", {"positive_weight": 95}),
    ],
)
def test_options_are_checked(name, options):
    with pytest.raises(MetricError, match=METRICS[name].label):
        METRICS[name](**options)


def test_a_metric_is_one_file_and_one_registration(tmp_path):
    path = tmp_path / "bias.py"
    path.write_text(
        "from fmtlbench.metrics import METRICS, Metric\n"
        "@METRICS.register('bias')\n"
        "class Bias(Metric):\n"
        "    label, unit, higher_is_better, tasks, description = 'bias', 'm', False, ('depth',), 'mean error'\n"
        "    def update(self, prediction, target):\n"
        "        self._add(error=(prediction - target).sum(), pixels=(target > 0).sum())\n"
        "    def _score(self, sums):\n"
        "        return sums['error'].item() / sums['pixels'].item(), {}\n"
    )
    try:
        metric = METRICS.resolve(str(path))
        one, two = metric(), metric()
        one.update(torch.full((1, 2, 2), 3.0), torch.ones(1, 2, 2))
        two.update(torch.full((1, 2, 2), 2.0), torch.ones(1, 2, 2))
        one.merge(two)
        assert one.compute().value == 1.5 and metric.name == "bias"
    finally:
        METRICS._items.pop("bias", None)


def test_loading_the_registry_imports_nothing_heavy():
    code = (
        "import sys, fmtlbench.metrics as m; m.METRICS.load(); assert len(m.METRICS) >= 7;"
        "print(sorted({'torch', 'numba', 'skimage', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", NAMES)
def test_cuda_equals_cpu(name):
    pair = [torch.as_tensor(value) for value in batch(name, np.random.default_rng(0))]
    cpu, cuda = build(name), build(name)
    cpu.update(*pair)
    cuda.update(*[value.cuda() for value in pair])
    equal(cuda.state(), cpu.state())
