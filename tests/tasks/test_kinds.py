"""Kinds of labels: files come back, mirroring twice is nothing, and the shipped tasks show the scenes exactly."""

from __future__ import annotations

import numpy as np
import pytest

from fmtlbench.data.datasets import read_array
from fmtlbench.data.datasets.synth import generate
from fmtlbench.data.datasets.synth.sample import full_sample
from fmtlbench.tasks import (
    IGNORE,
    TASKS,
    Classes,
    LabelError,
    Metres,
    Positive,
    ProbabilityMap,
    UnitVectors,
    in_columns,
    in_order,
)

KINDS = [Classes(), ProbabilityMap(("#000", "#fff")), UnitVectors(), Metres(), Positive("x", 1.0, "grows")]
rng = np.random.default_rng(0)


def label_of(kind, shape=(9, 14)):
    """A label with everything that one of its kind can hold."""
    if isinstance(kind, (Classes, ProbabilityMap)):
        return rng.choice([0, 1, IGNORE], shape).astype(np.uint8)
    if isinstance(kind, UnitVectors):
        vectors = rng.normal(size=(*shape, 3))
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        vectors[:2] = 0
        return vectors.astype(np.float32)
    values = rng.uniform(0.5, 9, shape).astype(np.float32)
    values[:2] = 0
    return values


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_labels_of_its_own_are_no_problem_and_others_are(kind):
    label = label_of(kind)
    assert kind.problem(label, label.shape[:2], 2) is None
    assert kind.problem(label, (1, 1), 2) and kind.problem(label.astype(np.float64), None, 2)
    assert len(kind.labelled(label)) < label.shape[0] * label.shape[1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_mirroring_twice_is_nothing(kind):
    label = label_of(kind)
    twice = label.copy()
    for _ in range(2):
        twice = twice[:, ::-1].copy()
        kind.mirror(twice)
    assert np.array_equal(twice, label)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_what_is_unlabelled_is_255_as_a_target(kind):
    label = label_of(kind)
    target = kind.as_target(label)
    unknown = (label == kind.unlabelled).all(-1) if kind.channels else label == kind.unlabelled
    ignored = (target == IGNORE).all(0) if kind.channels else target == IGNORE
    assert np.array_equal(unknown, ignored) and unknown.any()
    assert label_of(kind).shape[:2] == target.shape[-2:]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_predictions_come_back_from_their_files(kind, tmp_path):
    value = {Classes: rng.integers(3, size=(9, 14)), ProbabilityMap: rng.random((9, 14), np.float32)}.get(type(kind))
    if value is None:
        label = np.abs(label_of(kind)) if kind.channels else label_of(kind) + 1
        value = np.moveaxis(label, -1, 0)[:, 2:] if kind.channels else label
    kind.write_prediction(tmp_path, "a", value, ("x", "y", "z"))
    (file,) = [path for path in tmp_path.iterdir() if path.suffix in kind.suffixes]
    assert np.abs(kind.read_prediction(read_array(file)) - value).max() <= (
        0.5 / 127.5 + 1e-6 if kind.dtype.kind != "u" or isinstance(kind, ProbabilityMap) else 0
    )


def test_twice_as_large_is_half_as_far_and_twice_the_disparity():
    for kind, factor in ((Metres(), 0.5), (Positive("x", 1.0, "grows"), 2.0)):
        label = label_of(kind)
        scaled = label.copy()
        kind.magnify(scaled, 2.0)
        assert np.allclose(scaled, factor * label)


@pytest.mark.parametrize(
    ("kind", "array", "picture", "message"),
    [
        (Classes(), np.array([[0.5]]), False, "expected class numbers"),
        (Classes(), np.array([[0, 9]], np.uint8), True, "class 9, expected 0 to 2"),
        (ProbabilityMap(("#0", "#1")), np.array([[0, 1]], np.uint8), True, "expected a picture of 0 and 255"),
        (ProbabilityMap(("#0", "#1")), np.array([[0, 7]]), False, "expected an array of 0, 1 and 255"),
        (UnitVectors(), np.zeros((4, 4)), False, "expected normals"),
        (Metres(), np.array([[-1.0]]), False, "expected floating-point numbers of at least 0"),
        (Metres(), np.array([[1]]), False, "int64"),
    ],
)
def test_files_of_another_form_are_refused(kind, array, picture, message):
    with pytest.raises(LabelError, match=message):
        kind.read_label(array, 3, picture)


def test_the_first_tasks_keep_their_places():
    first = ["edge", "depth", "sal", "semseg", "normals", "human_parts"]
    assert in_order(first) == ("semseg", "human_parts", "sal", "normals", "edge", "depth")  # of whole models
    assert in_columns([*first, "disparity", "gone"]) == [
        "semseg", "human_parts", "sal", "depth", "normals", "edge", "disparity", "gone",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["synth-nyud", "synth-pascal"])
def test_disparity_is_the_inverse_of_depth(name):
    scene = full_sample(name, "test", 3, (48, 48))
    disparity = generate(name, "test", 3, (48, 48), ("disparity",))["disparity"]
    seen = scene["depth"] > 0
    assert disparity.dtype == np.float32 and np.allclose(disparity[seen] * scene["depth"][seen], 1)
    assert (disparity[~seen] == 0).all()


@pytest.mark.parametrize("name", ["synth-nyud", "synth-pascal"])
def test_occlusion_edges_lie_on_the_nearer_side_of_jumps_only(name):
    marked = 0
    for index in range(4):
        scene = full_sample(name, "test", index, (48, 48))
        edges = generate(name, "test", index, (48, 48), ("occlusion",))["occlusion"]
        depth = np.where(scene["solid"] < 0, np.inf, scene["depth"])
        around = np.pad(depth, 1, mode="edge")
        farther = np.maximum.reduce([around[1:-1, 2:], around[1:-1, :-2], around[2:, 1:-1], around[:-2, 1:-1]])
        assert (farther[edges == 1] > 1.05 * depth[edges == 1]).all()
        assert not edges[scene["solid"] < 0].any()  # nothing is behind the sky
        marked += edges.sum()
    assert marked > 100


def test_scenes_are_asked_for_further_tasks_without_moving_the_others(tmp_path):
    from fmtlbench.data.datasets import dataset_for, open_split

    info = dataset_for("nyud", "synth")
    usual = open_split(info, "train", size=(32, 32), limit=4, cache_dir=tmp_path)
    more = open_split(info, "train", size=(32, 32), limit=4, tasks=("occlusion", "depth"), cache_dir=tmp_path)
    assert "occlusion" not in usual.keys and "occlusion" in more.keys and TASKS["occlusion"].from_scene
    for key in usual.keys:
        assert np.array_equal(usual.arrays(key), more.arrays(key))
