"""Options of metrics in a run: what each preset chooses gives the public meters' scores; the edge loss's own weight."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_data import FakeReader
from golden_files import cases
from golden_meters import feed

from fmtlbench.config.resolve import resolve
from fmtlbench.data.configured_tasks import task_specs
from fmtlbench.data.datasets import dataset_for
from fmtlbench.data.meters import make_meter
from fmtlbench.engine.trivial import best_constant
from fmtlbench.metrics import EdgeLossPublic, MaxF, MetricError
from fmtlbench.metrics.maxf import levels
from fmtlbench.tasks import TASKS

MINI = Path(__file__).parents[3] / "shared" / "mini"
PUBLISHED = Path(__file__).parents[2] / "reports" / "papers" / "published"


def meter_of(preset, task, dataset, **overrides):
    """As a run of the preset makes it for the real data."""
    config = resolve("local", "st_mt_1", preset, overrides=overrides)
    return make_meter(task_specs(config, dataset)[task], dataset_for(dataset, "real"), config.data.size[dataset])


def probabilities(prediction, target):
    return prediction / np.float32(255), target


CASES = {
    "semseg_pascalcontext": ("semseg", "pascal", lambda p, g: (p, g.astype(np.int64)), "mIoU", 1e-6),
    "semseg_nyud": ("semseg", "nyud", lambda p, g: (p, g.astype(np.int64)), "mIoU", 1e-6),
    "human_parts": ("human_parts", "pascal", lambda p, g: (p, g.astype(np.int64)), "mIoU", 1e-6),
    "normals": ("normals", "pascal", lambda p, g: (np.moveaxis(p, 3, 1) / 255 * 2 - 1, g), "mErr", 1e-4),
    "sal": ("sal", "pascal", probabilities, "maxF", 1e-3),
    "sal_emptymask": ("sal", "pascal", probabilities, "maxF", 1e-3),
    "sal_integer_preds": ("sal", "pascal", probabilities, "maxF", 1e-3),
    "sal_crash": ("sal", "pascal", probabilities, "maxF", 1e-3),
    "depth_nyud": ("depth", "nyud", lambda p, g: (p, g), "RMSE", 1e-5),
}


@pytest.mark.parametrize("number", cases("C_meters/sal_set{}.npz", range(3)))
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("preset", "scores"), [("paper", "scores_fedhca2"), ("fmtl-bench", "scores_fmtl")])
def test_a_papers_preset_scores_as_its_public_meters(golden, preset, scores, name, number):
    task, dataset, convert, label, tolerance = CASES[name]
    expected = golden(f"C_meters/{scores}.json")[f"{name}_set{number}"]
    result = feed(meter_of(preset, task, dataset), golden(f"C_meters/{name}_set{number}.npz"), convert).compute()
    if "raises" in expected:  # the public meter divides by zero here
        assert 0 <= result.value <= 100
        return
    assert result.value == pytest.approx(expected.get(label, expected.get("rmse")), abs=tolerance)
    if task == "sal":
        assert result.extras["sal_mIoU"] == pytest.approx(expected["mIoU"], abs=tolerance)


@pytest.mark.parametrize("dataset", ["pascal", "nyud"])
@pytest.mark.parametrize("scores", ["scores_fedhca2", "scores_fmtl"])
def test_the_edge_loss_of_the_fmtl_bench_preset_is_the_public_meters_for_any_training_weight(golden, scores, dataset):
    """Its training weighs edges of NYUD 0.8 and of PASCAL 0.95; the meter 0.95 both."""
    file, expected = golden("C_meters/edge_pascalcontext_set0.npz"), golden(f"C_meters/{scores}.json")
    logits = lambda p, g: (np.log(p / (255 - p.astype(float))), g)
    meter = feed(meter_of("fmtl-bench", "edge", dataset), file, logits)
    assert meter.compute().value == pytest.approx(expected["edge_pascalcontext_set0"]["loss"], abs=1e-6)


def test_absent_classes_and_zero_normals_move_the_scores_of_the_test_vectors(golden):
    """Otherwise the agreement above would say nothing."""
    public = golden("C_meters/scores_fedhca2.json")
    moved = {}
    for name in ("semseg_pascalcontext", "semseg_nyud", "normals"):
        task, dataset, convert, label, _ = CASES[name]
        own = feed(meter_of("nano", task, dataset), golden(f"C_meters/{name}_set0.npz"), convert).compute().value
        moved[name] = own - public[f"{name}_set0"][label]
    assert moved["semseg_pascalcontext"] > 4.7 and moved["semseg_nyud"] > 2.5 and moved["normals"] < -0.05


def test_the_config_beats_the_dataset_which_beats_the_class():
    info = replace(dataset_for("nyud", "real"), metric_options={"odsf": {"max_dist": 0.02, "nms": False}})
    spec = replace(TASKS["edge"], metric_options={"nms": True, "thresholds": 9})
    options = make_meter(spec, info, (425, 560)).options
    assert options == {"max_dist": 0.02, "nms": True, "thresholds": 9, "gt": "seism"}
    # 1.5 pixels at least is for the dataset's tolerance: one that somebody chose counts as it is
    assert make_meter(spec, info, (15, 20)).options["max_dist"] == 1.5 / 25
    chosen = replace(spec, metric_options={"max_dist": 0.001})
    assert make_meter(chosen, info, (15, 20)).options["max_dist"] == 0.001


# -- the edge loss on the published scale ------------------------------------------------------------------------------


def attainable(share, weight):
    """×100, (least, best constant, greatest) double-sigmoid loss when this share of the pixels are edges.

    The second sigmoid sees x between 0 and 1. An edge pixel costs w·log(1 + e⁻ˣ), another one (1 − w)·log(1 + eˣ).
    """
    edge, other = (lambda x: weight * math.log1p(math.exp(-x))), (lambda x: (1 - weight) * math.log1p(math.exp(x)))
    constants = [share * edge(x) + (1 - share) * other(x) for x in np.linspace(0, 1, 1001)]
    least = share * edge(1) + (1 - share) * other(0)
    return 100 * least, 100 * min(constants), 100 * (share * edge(0) + (1 - share) * other(1))


def published():
    """Every edge loss of the two tables, ×100 as printed."""
    values = []
    for file in ("fmtlbench_table6_niid4_ubsdmt.csv", "fmtlbench_table7_niid6_ubcdmt_global.csv"):
        with (PUBLISHED / file).open(encoding="utf-8") as rows:
            for row in csv.DictReader(rows):
                texts = [row[key] for key in row if key.endswith("edge_loss_x100")]
                values += [float(text) for text in texts if text not in ("", "NULL", "OOM")]
    return values


def labels(share, size=(40, 50)):
    edges = np.zeros(size, np.uint8)
    edges.flat[: round(share * edges.size)] = 1
    return edges[None]


def score(weight, logits, target):
    meter = EdgeLossPublic(positive_weight=weight)
    meter.update(np.zeros(target.shape) + logits, target)
    return 100 * meter.compute().value


@pytest.mark.parametrize("weight", [0.95, 0.8])
@pytest.mark.parametrize("share", [0.02, 0.03, 0.045])
def test_the_attainable_interval_is_the_meters(weight, share):
    target = labels(share)
    perfect, upside_down = np.where(target == 1, 40.0, -40.0), np.where(target == 1, -40.0, 40.0)
    least, constant, greatest = attainable(share, weight)
    assert score(weight, perfect, target) == pytest.approx(least, rel=1e-9)
    assert score(weight, upside_down, target) == pytest.approx(greatest, rel=1e-9)
    assert min(score(weight, z, target) for z in np.linspace(-40, 40, 161)) == pytest.approx(constant, rel=1e-3)
    rng = np.random.default_rng(0)
    for spread in (0.1, 1, 10):
        assert least < score(weight, rng.normal(0, spread, target.shape), target) < greatest


@pytest.mark.parametrize("share", [0.025, 0.03, 0.035, 0.04, 0.045, 0.048])
def test_the_published_edge_losses_lie_between_perfect_and_constant_with_weight_095_only(share):
    low, high = min(published()), max(published())
    assert (low, high) == (4.73, 4.99)
    least, constant, _ = attainable(share, 0.95)
    assert least <= low and high <= constant
    assert attainable(share, 0.8)[0] > 13.8 > high  # no prediction at all reaches them with the training's 0.8
    assert meter_of("fmtl-bench", "edge", "nyud").positive_weight == 0.95


def test_no_share_of_edges_explains_them_with_weight_08():
    assert min(attainable(share, 0.8)[0] for share in np.linspace(0, 1, 101)) > 2 * max(published())


@pytest.mark.skipif(not MINI.is_dir(), reason="the real samples are not beside this checkout")
def test_the_published_edge_losses_are_attainable_on_real_label_maps():
    from PIL import Image

    maps = [np.asarray(Image.open(file)) > 0 for file in sorted((MINI / "NYUDv2" / "edge").glob("*.png"))]
    assert len(maps) > 20
    share = float(np.mean([edges.mean() for edges in maps]))
    assert 0.02 < share < 0.048
    least, constant, _ = attainable(share, 0.95)
    assert all(least < value < constant for value in published())


# -- saliency ----------------------------------------------------------------------------------------------------------


def saliency(images=4):
    rng = np.random.default_rng(1)
    prediction = rng.integers(0, 256, (images, 15, 18)).astype(np.float32) / 255
    target = rng.choice([0, 1, 255], prediction.shape, p=[0.6, 0.3, 0.1])
    target[0] = np.where(target[0] == 1, 0, target[0])  # an image without a salient pixel
    return prediction, target


def loop(prediction, target, thresholds):
    """(maxF, mean IoU over images, IoU of the whole), each at its best threshold."""
    valid, truth, rows = target != 255, target == 1, []
    for t in thresholds:
        guess = (prediction >= np.float32(t)) & valid
        hit = (guess & truth).sum()
        p, r = hit / max(guess.sum(), 1), hit / truth.sum()
        union = [(a | b).sum() for a, b in zip(guess, truth)]
        single = [(a & b).sum() / u if u else 1.0 for a, b, u in zip(guess, truth, union)]
        rows.append((130 * p * r / max(0.3 * p + r, 1e-30), 100 * np.mean(single), 100 * hit / sum(union)))
    return tuple(map(max, zip(*rows)))


@pytest.mark.parametrize("count", [1, 9, 19, 49, 99, 255])
def test_any_step_that_can_be_told_exactly(count):
    prediction, target = saliency()
    prediction = np.round(prediction * (count + 1)) / np.float32(count + 1)  # ties with every threshold
    meter = MaxF(thresholds=count)
    meter.update(prediction.astype(np.float32), target)
    grid = [k / (count + 1) for k in range(1, count + 1)]
    best, iou, _ = loop(prediction.astype(np.float32), target, grid)
    assert meter.compute().value == pytest.approx(best)
    assert meter.compute().extras["sal_mIoU"] == pytest.approx(iou)


def test_a_step_that_single_precision_blurs_is_refused_with_the_nearest():
    assert levels(43) is None and levels(19) == 60
    with pytest.raises(MetricError, match=r"thresholds is 43.*the nearest is 42"):
        MaxF(thresholds=43)


def test_thresholds_between_bounds():
    prediction, target = saliency()
    narrow, all_of_them = MaxF(lowest=0.2, highest=0.9), MaxF()
    for meter in (narrow, all_of_them):
        meter.update(prediction, target)
    best, iou, _ = loop(prediction, target, [k / 20 for k in range(4, 19)])
    assert narrow.compute().value == pytest.approx(best) and narrow.compute().value < all_of_them.compute().value
    assert narrow.compute().extras["sal_mIoU"] == pytest.approx(iou)
    assert 0.2 <= narrow.compute().extras["threshold"] <= 0.9 and all_of_them.compute().extras["threshold"] < 0.2


def test_the_sigmoid_of_the_probability_is_what_the_thresholds_see():
    prediction, target = saliency()
    meter = MaxF(scores="sigmoid_of_probability")
    meter.update(prediction, target)
    squashed = torch.from_numpy(prediction).sigmoid().numpy()
    assert meter.compute().value == pytest.approx(loop(squashed, target, [k / 20 for k in range(1, 20)])[0])


def test_the_iou_of_a_batch_depends_on_the_batch():
    prediction, target = saliency()
    grid = [k / 20 for k in range(1, 20)]
    whole, halves, single = (MaxF(iou="batch") for _ in range(3))
    whole.update(prediction, target)
    for start in (0, 2):
        halves.update(prediction[start : start + 2], target[start : start + 2])
    for i in range(4):
        single.update(prediction[i : i + 1], target[i : i + 1])
    _, images, together = loop(prediction, target, grid)
    iou = [meter.compute().extras["sal_mIoU"] for meter in (whole, halves, single)]
    assert iou[0] == pytest.approx(together) and iou[2] == pytest.approx(images)
    assert len({round(value, 6) for value in iou}) == 3
    assert len({meter.compute().value for meter in (whole, halves, single)}) == 1  # maxF sums over the set


# -- the trivial row ---------------------------------------------------------------------------------------------------


class Labels(FakeReader):
    def __init__(self, task, values):
        self.task, self.values, self.size = task, values, values.shape[1:3]

    def batch(self, indices, keys):
        return {"image": np.zeros((len(indices), *self.size, 3), np.uint8), self.task: self.values[indices].copy()}


def trivial(task, values, dataset="nyud", metric=None, **options):
    from fmtlbench.data.views import View

    spec = replace(TASKS[task], metric=metric or TASKS[task].metric, metric_options=options)
    return best_constant(spec, dataset_for(dataset, "synth"), View(Labels(task, values), np.arange(len(values))), 2)


def test_the_best_constant_is_scored_with_the_runs_options():
    classes = np.array([[[2, 2, 0]], [[2, 2, 0]], [[1, 0, 255]]], np.uint8)
    number = dataset_for("nyud", "synth").classes["semseg"]
    assert trivial("semseg", classes, absent="zero") == pytest.approx(100 * (4 / 8) / number)
    depth = np.array([[[1.0, 3.0]], [[9.0, 0.0]]], np.float32)
    assert trivial("depth", depth, max_depth=5.0) == pytest.approx(1)  # of 1 and 3
    salient = np.zeros((2, 2, 5), np.uint8)
    salient[0, 0] = 1
    scored = {"scores": "sigmoid_of_probability", "iou": "batch"}
    assert trivial("sal", salient, "pascal", **scored) == trivial("sal", salient, "pascal")


@pytest.mark.parametrize("weight", [0.95, 0.5])
def test_the_best_constant_edge_loss_has_the_metrics_weight(weight):
    values = np.repeat(labels(0.1, (8, 10)), 2, 0)
    found = trivial("edge", values, metric="edge_loss_public", positive_weight=weight)
    assert 100 * found == pytest.approx(attainable(0.1, weight)[1], rel=1e-4)
