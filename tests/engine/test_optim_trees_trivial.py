"""Small pure parts of the engine against values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from fake_data import FakeReader

from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import TrainConfig
from fmtlbench.data.datasets import dataset_for
from fmtlbench.data.views import View
from fmtlbench.engine.evaluate import make_meter
from fmtlbench.engine.optim import learning_rate, make_optimizer
from fmtlbench.engine.state_trees import join_tree, split_tree, to_device
from fmtlbench.engine.trivial import best_constant
from fmtlbench.tasks import TASKS

CPU = torch.device("cpu")


def train_config(**given):
    defaults = {"optimizer": "adamw", "lr": 1.0, "weight_decay": 0.0, "batch_size": 1, "local_epochs": {}}
    return TrainConfig(**{**defaults, **given})


# -- learning rate ---------------------------------------------------------------------------------------------------


def test_warm_up_rises_linearly_from_its_start_and_meets_the_cosine():
    config = train_config(lr=1.0, warmup_epochs=4, warmup_lr=0.2, min_lr=0.1)
    assert [learning_rate(config, e, 20) for e in range(4)] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    # the cosine counts from epoch 0: 4/20 of the way down
    assert learning_rate(config, 4, 20) == pytest.approx(0.1 + 0.45 * (1 + math.cos(math.pi / 5)))


@pytest.mark.parametrize("after", [True, False])
def test_both_cosines_are_timms(after):
    """The papers' code builds its schedule as here: t_initial without the warm-up, which comes before it."""
    from timm.scheduler.cosine_lr import CosineLRScheduler

    name = "cosine_after_warmup" if after else "cosine"
    config = train_config(lr=1e-4, warmup_epochs=5, warmup_lr=1.25e-7, min_lr=1.25e-6, schedule=name)
    optimizer = make_optimizer(config, [torch.nn.Parameter(torch.ones(2))], CPU)
    timms = CosineLRScheduler(
        optimizer, t_initial=100 - 5 * after, lr_min=1.25e-6, warmup_t=5, warmup_lr_init=1.25e-7, warmup_prefix=after
    )
    for epoch in range(100):
        timms.step(epoch)
        assert learning_rate(config, epoch, 100) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
    assert (learning_rate(config, 5, 100) == 1e-4) is after


def test_a_warm_up_in_rounds_is_one_in_that_many_local_epochs():
    schedule = {"lr": 1e-4, "warmup_lr": 1.25e-7, "min_lr": 1.25e-6, "schedule": "cosine_after_warmup"}
    rounds, epochs = train_config(warmup_rounds=5, **schedule), train_config(warmup_epochs=20, **schedule)
    for epoch in range(400):
        assert learning_rate(rounds, epoch, 400, 4, "nyud") == learning_rate(epochs, epoch, 400, 4, "nyud")
    assert learning_rate(rounds, 19, 400, 4) < 1e-4 == learning_rate(rounds, 20, 400, 4)
    assert learning_rate(rounds, 4, 100, 1) < 1e-4 == learning_rate(rounds, 5, 100, 1)


def test_a_warm_up_by_dataset():
    by_name = train_config(warmup_epochs={"nyud": 8, "pascal": 2}, min_lr=0.1)
    for dataset, length in (("nyud", 8), ("pascal", 2)):
        one = train_config(warmup_epochs=length, min_lr=0.1)
        rates = [[learning_rate(config, epoch, 40, 4, dataset) for epoch in range(40)] for config in (by_name, one)]
        assert rates[0] == rates[1] and rates[0].index(max(rates[0])) == length


@pytest.mark.parametrize(
    ("preset", "warmup", "per_round"), [("nano", 3, 1), ("paper", 5, 4), ("paper", 5, 1), ("mat-fl", 0, 10)]
)
def test_the_presets_rates_of_all_epochs_are_what_they_were(preset, warmup, per_round):
    """Before a warm-up could be counted in rounds or differ by dataset; to the last bit."""

    def rate(c, epoch, epochs):
        if epoch < warmup:
            return c.warmup_lr + (c.lr - c.warmup_lr) * epoch / warmup
        if c.schedule == "exponential":
            return max(c.lr * c.decay ** (epoch // per_round), c.min_lr)
        before = warmup if c.schedule == "cosine_after_warmup" else 0
        way = (epoch - before) / max(epochs - before, 1)
        return c.min_lr + 0.5 * (c.lr - c.min_lr) * (1 + math.cos(math.pi * way))

    config = resolve("local", "st_mt_1", preset)
    total = config.federation.rounds * per_round
    rates = [learning_rate(config.train, epoch, total, per_round, "nyud") for epoch in range(total)]
    assert rates == [rate(config.train, epoch, total) for epoch in range(total)]


def test_a_run_shorter_than_its_warm_up():
    config = train_config(lr=1.0, warmup_epochs=4, warmup_lr=0.2, schedule="cosine_after_warmup")
    assert [learning_rate(config, e, 3) for e in range(3)] == pytest.approx([0.2, 0.4, 0.6])


def test_the_cosine_goes_from_full_through_half_to_the_floor():
    config = train_config(lr=1.0, min_lr=0.1)
    assert learning_rate(config, 0, 20) == pytest.approx(1.0)
    assert learning_rate(config, 10, 20) == pytest.approx(0.55)
    assert learning_rate(config, 20, 20) == pytest.approx(0.1)
    rates = [learning_rate(config, e, 20) for e in range(21)]
    assert rates == sorted(rates, reverse=True)
    assert rates[19] - 0.1 < 0.01  # the last epoch that is trained


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_optimisers_take_the_configured_values(name):
    config = train_config(optimizer=name, lr=0.5, weight_decay=0.25, betas=(0.5, 0.75))
    optimizer = make_optimizer(config, [torch.nn.Parameter(torch.ones(2))], CPU)
    (group,) = optimizer.param_groups
    assert type(optimizer).__name__.lower() == name
    assert (group["lr"], group["weight_decay"]) == (0.5, 0.25)
    assert group.get("betas", (0.5, 0.75)) == (0.5, 0.75)


# -- trees -----------------------------------------------------------------------------------------------------------


def test_a_tree_survives_splitting_and_joining():
    tree = {
        "a": torch.arange(6.0).view(2, 3).t(),  # not contiguous
        "b": [torch.tensor(1, dtype=torch.int64), None, "text", True, 3, 0.1],
        "c": {"d": {}, "e": [], "a/b": torch.zeros(0)},
    }
    tensors, skeleton = split_tree(tree)
    assert set(tensors) == {"a", "b/0", "c/a/b"}
    assert all(tensor.is_contiguous() for tensor in tensors.values())
    again = join_tree(tensors, skeleton)
    assert torch.equal(again["a"], tree["a"]) and torch.equal(again["c"]["a/b"], torch.zeros(0))
    assert again["b"][0].dtype == torch.int64 and again["b"][1:] == [None, "text", True, 3, 0.1]
    assert again["c"]["d"] == {} and again["c"]["e"] == []


def test_a_lone_tensor_and_a_lone_value():
    for tree in (torch.ones(2), 5, None):
        tensors, skeleton = split_tree(tree, "x")
        again = join_tree(tensors, skeleton)
        assert torch.equal(again, tree) if isinstance(tree, torch.Tensor) else again == tree


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": {1: 2}}, "state key 1 at a"),
        ({"a": [np.zeros(1)]}, "ndarray at a/0"),
        ({"a": {2, 3}}, "set at a"),
        (object(), "object at the top"),
    ],
)
def test_what_json_and_safetensors_cannot_hold_is_refused(tree, message):
    with pytest.raises(TypeError, match=message):
        split_tree(tree)


@pytest.mark.parametrize(
    "tree", [{"a/b": torch.ones(1), "a": {"b": torch.zeros(1)}}, {"__tensor__": "text"}, {"": {"": torch.ones(1)}}]
)
def test_awkward_names_are_kept_or_refused_but_never_mixed_up(tree):
    try:
        tensors, skeleton = split_tree(tree)
    except (TypeError, ValueError):
        return
    assert str(join_tree(tensors, skeleton)) == str(tree)


def test_to_device_moves_only_tensors():
    moved = to_device({"a": [torch.ones(1), "x"], "b": None}, torch.device("meta"))
    assert moved["a"][0].device.type == "meta" and moved["a"][1] == "x" and moved["b"] is None


# -- the best constant -----------------------------------------------------------------------------------------------


class Labels(FakeReader):
    """A dataset of given labels [N, H, W(, 3)]."""

    def __init__(self, task, labels):
        self.task, self.labels, self.size = task, labels, labels.shape[1:3]

    def batch(self, indices, keys):
        image = np.zeros((len(indices), *self.size, 3), np.uint8)
        return {"image": image, self.task: self.labels[indices].copy()}


def constant(task, labels, domain="nyud"):
    return best_constant(
        TASKS[task], dataset_for(domain, "synth"), View(Labels(task, labels), np.arange(len(labels))), 2
    )


def test_the_majority_class():
    # class 2 on four of eight labelled pixels, two other classes: IoU 1/2, 0, 0
    labels = np.array([[[2, 2, 0]], [[2, 2, 0]], [[1, 0, 255]]], np.uint8)
    assert constant("semseg", labels) == pytest.approx(100 * (4 / 8) / 3)


def test_the_mean_depth():
    labels = np.array([[[1.0, 1.0]], [[4.0, 0.0]]], np.float32)  # 0: not measured; mean 2
    assert constant("depth", labels) == pytest.approx(math.sqrt((1 + 1 + 4) / 3))


def test_all_foreground():
    labels = np.zeros((2, 2, 5), np.uint8)
    labels[0, 0] = 1
    labels[1, 1, 4] = 255
    precision = 5 / 19
    assert constant("sal", labels, "pascal") == pytest.approx(100 * 1.3 * precision / (0.3 * precision + 1))


def angle(vector, labels):
    """Mean angle in degrees between one vector and unit labels [N, H, W, 3]."""
    cosine = (labels @ vector).clip(-1, 1)
    return np.degrees(np.arccos(cosine)).mean()


@pytest.mark.parametrize("seed", range(5))
def test_the_best_direction_beats_the_mean_and_any_other(seed):
    rng = np.random.default_rng(seed)
    # two uneven bundles of directions: the mean lies between them, the median near the larger
    labels = np.concatenate([rng.normal([0, 0, 3], 1, (7, 4, 4, 3)), rng.normal([4, 0, 0], 1, (4, 4, 4, 3))])
    labels = (labels / np.linalg.norm(labels, axis=-1, keepdims=True)).astype(np.float32)
    found = constant("normals", labels)
    mean = labels.reshape(-1, 3).mean(0)
    others = [mean, [0, 0, 1], [1, 0, 0], *rng.normal(size=(20, 3)), *(mean + rng.normal(scale=0.1, size=(20, 3)))]
    assert found <= min(angle(v / np.linalg.norm(v), labels) for v in map(np.asarray, others)) + 1e-3
    assert found < angle(mean / np.linalg.norm(mean), labels) - 0.5


def test_one_direction_everywhere_costs_nothing():
    labels = np.tile(np.array([0.6, 0, 0.8], np.float32), (2, 3, 3, 1))
    labels[0, 0, 0] = 0  # not measured
    assert constant("normals", labels) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("metric", ["edge_loss", "edge_loss_public"])
@pytest.mark.parametrize("weight", [0.95, 0.8])
def test_the_best_edge_logit_beats_a_grid_of_others(metric, weight):
    labels = np.zeros((3, 8, 9), np.uint8)
    labels[:, :, 4], labels[0, 0, 0] = 1, 255
    spec = replace(TASKS["edge"], metric=metric, metric_options={"positive_weight": weight})
    view, info = View(Labels("edge", labels), np.arange(3)), dataset_for("nyud", "synth")
    found = best_constant(spec, info, view, 2)
    for logit in np.linspace(-9, 9, 181):
        meter = make_meter(spec, info, (8, 9))
        meter.update(torch.full((3, 8, 9), float(logit)), torch.from_numpy(labels))
        assert found <= meter.compute().value + 1e-7


def test_no_edge_at_all():
    spec = replace(TASKS["edge"], metric="edge_loss")
    view = View(Labels("edge", np.zeros((1, 4, 4), np.uint8)), np.arange(1))
    assert best_constant(spec, dataset_for("nyud", "synth"), view) == pytest.approx(0, abs=1e-6)


def test_many_pixels_are_thinned_for_the_direction_only(monkeypatch):
    labels = np.random.default_rng(0).normal([0, 0, 2], 1, (4, 16, 16, 3))
    labels = (labels / np.linalg.norm(labels, axis=-1, keepdims=True)).astype(np.float32)
    exact = constant("normals", labels)
    monkeypatch.setattr("fmtlbench.tasks._kinds._constants.DIRECTIONS", 100)
    assert exact - 1e-3 < constant("normals", labels) < exact + 2


def test_no_constant_edge_map_is_good():
    labels = np.zeros((1, 32, 32), np.uint8)
    labels[0, :, 16] = 1
    assert 0 <= constant("edge", labels) < 50


@pytest.mark.parametrize(
    ("task", "labels"),
    [
        ("semseg", np.full((2, 2, 2), 255, np.uint8)),
        ("depth", np.zeros((2, 2, 2), np.float32)),
        ("normals", np.zeros((2, 2, 2, 3), np.float32)),
    ],
)
def test_nothing_to_score_is_none(task, labels):
    assert constant(task, labels) is None


# -- meters ----------------------------------------------------------------------------------------------------------


def test_edge_tolerance_is_the_papers_but_at_least_one_and_a_half_pixels():
    info = dataset_for("nyud", "synth")
    assert make_meter(TASKS["edge"], info, (425, 560)).options["max_dist"] == 0.011
    assert make_meter(TASKS["edge"], info, (30, 40)).options["max_dist"] == pytest.approx(1.5 / 50)


def test_class_counts_come_from_the_dataset():
    info = dataset_for("pascal", "synth")
    assert make_meter(TASKS["human_parts"], info, (32, 32)).options["num_classes"] == info.classes["human_parts"] == 7


def test_gradients_below_the_clipping_norm_stay_as_they_are(tiny_run):
    plain, clipped = (tiny_run("local", rounds=1, **{"train.clip_norm": norm}) for norm in (None, 1e9))
    assert [score["value"] for score in clipped.scores] == [score["value"] for score in plain.scores]
