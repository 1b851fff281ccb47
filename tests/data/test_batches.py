"""Batches: order, size, mirror images, and one convention for what is not labelled."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest
import torch
from fake_data import FakeReader
from fake_real import FakeReal

from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.data import batches
from fmtlbench.data.views import View

CPU = torch.device("cpu")


class Toy(FakeReader):
    """Image i is i everywhere in its first channel; every pixel of the labels is different."""

    size = (2, 3)

    def __init__(self, count=10):
        h, w = self.size
        n = np.arange(count)
        pixels = (n[:, None, None] * 10 + np.arange(h * w).reshape(h, w)).astype(np.uint8)
        self.arrays = {
            "image": np.repeat(n.astype(np.uint8)[:, None], h * w * 3, 1).reshape(count, h, w, 3),
            "semseg": pixels,
            "depth": pixels.astype(np.float32),
            "normals": np.stack([pixels.astype(np.float32) + c for c in range(3)], -1),
        }

    def batch(self, indices, keys):
        return {key: self.arrays[key][indices].copy() for key in keys}


def epoch(view, size=4, seed=0, augment=(), tasks=("semseg",)):
    return list(batches.train_batches(view, tasks, size, np.random.default_rng(seed), augment, CPU))


def seen(found):
    """Which images, in order: the label of the first pixel tells."""
    return [int(v) // 10 for batch in found for v in batch["semseg"][:, 0, 0]]


def test_an_epoch_is_a_permutation_of_the_view():
    view = View(Toy(), np.array([1, 3, 4, 8]))
    order = seen(epoch(view, size=2))
    assert sorted(order) == [1, 3, 4, 8]
    assert any(seen(epoch(view, size=2, seed=s)) != [1, 3, 4, 8] for s in range(5))


@pytest.mark.parametrize(
    ("images", "size", "sizes"), [(10, 4, [4, 4]), (8, 4, [4, 4]), (3, 4, [3]), (4, 4, [4]), (5, 1, [1] * 5)]
)
def test_a_last_smaller_batch_is_dropped_unless_it_is_the_only_one(images, size, sizes):
    found = epoch(View(Toy(), np.arange(images)), size)
    assert [len(batch["image"]) for batch in found] == sizes
    assert batches.batch_count(images, size) == len(sizes)
    assert len(set(seen(found))) == sum(sizes)


def test_test_batches_take_every_image_in_order():
    found = list(batches.test_batches(View(Toy(), np.array([9, 2, 5])), ("semseg",), 2, CPU))
    assert [len(batch["image"]) for batch in found] == [2, 1]
    assert seen(found) == [9, 2, 5]


def test_the_generator_decides_order_and_mirroring():
    def once(seed):
        return torch.cat([b["semseg"] for b in epoch(View(Toy(), np.arange(8)), seed=seed, augment=("flip",))])

    assert torch.equal(once(0), once(0))
    assert not torch.equal(once(0), once(1))


def test_flip_mirrors_image_and_labels_and_turns_normals_around():
    toy = Toy(3)
    arrays = toy.batch(np.arange(3), ("image", "semseg", "depth", "normals"))
    arrays["image"][...] = np.arange(18).reshape(1, 2, 3, 3)
    before = {key: value.copy() for key, value in arrays.items()}
    batches.flip(arrays, np.array([True, False, True]))
    for key, value in arrays.items():
        assert np.array_equal(value[1], before[key][1])  # not chosen
        expected = before[key][2][:, ::-1] * (np.array([-1, 1, 1]) if key == "normals" else 1)
        assert np.array_equal(value[2], expected)


def test_about_half_the_images_are_mirrored_and_none_without_flip():
    view = View(Toy(24), np.arange(24))

    def mirrored(augment):
        (batch,) = epoch(view, 24, 3, augment)
        return int((batch["semseg"][:, 0, 0] > batch["semseg"][:, 0, 2]).sum())

    assert 4 < mirrored(("flip",)) < 20
    assert mirrored(()) == 0


def test_images_are_normalised_by_the_imagenet_statistics():
    image = np.zeros((1, 1, 2, 3), np.uint8)
    image[0, 0, 1] = 255
    tensor = batches.to_tensors({"image": image}, CPU)["image"]
    assert tensor.shape == (1, 3, 1, 2) and tensor.dtype == torch.float32 and tensor.is_contiguous()
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(tensor[0, :, 0, 0], -mean / std, rtol=1e-5)
    np.testing.assert_allclose(tensor[0, :, 0, 1], (1 - mean) / std, rtol=1e-5)


def test_what_was_not_measured_becomes_the_ignore_label():
    depth = np.array([[[0.0, 2.5, -1.0]]], np.float32)
    normals = np.array([[[[0, 0, 0], [0, 0, 1], [0, 1, 0]]]], np.float32)
    edge = np.array([[[0, 1, 255]]], np.uint8)
    tensors = batches.to_tensors({"depth": depth, "normals": normals, "edge": edge}, CPU)
    assert tensors["depth"].tolist() == [[[255.0, 2.5, 255.0]]]
    assert tensors["normals"].tolist() == [[[[255, 0, 0]], [[255, 0, 1]], [[255, 1, 0]]]]  # channels first
    assert tensors["edge"].tolist() == [[[0, 1, 255]]]


def test_unmeasured_normals_stay_unmeasured_when_mirrored():
    arrays = {"image": np.zeros((1, 1, 2, 3), np.uint8), "normals": np.zeros((1, 1, 2, 3), np.float32)}
    batches.flip(arrays, np.array([True]))
    assert (batches.to_tensors(arrays, CPU)["normals"] == 255).all()


# -- real images: of their own sizes, transformed, loaded by any number of processes -----------------------------------

ALL = ("scale", "crop", "flip", "photometric")
LABELS = ("semseg", "depth", "normals")


def real_epoch(dataset, workers=0, seed=0, augment=ALL, indices=None, size=4):
    view = View(dataset, np.arange(len(dataset)) if indices is None else indices)
    rng = np.random.default_rng(seed)
    return list(batches.train_batches(view, LABELS, size, rng, augment, CPU, workers))


def same(one, two):
    assert len(one) == len(two)
    return all(a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a) for a, b in zip(one, two))


def test_real_batches_have_one_size_and_the_convention_of_tensors():
    found = real_epoch(FakeReal(9))
    assert [len(batch["image"]) for batch in found] == [4, 4]
    for batch in found:
        assert tuple(batch) == ("image", *LABELS)
        assert batch["image"].shape == (4, 3, 24, 32) and batch["image"].dtype == torch.float32
        assert batch["semseg"].shape == (4, 24, 32) and batch["semseg"].dtype == torch.uint8
        assert batch["normals"].shape == (4, 3, 24, 32) and (batch["depth"] > 0).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_move_no_number(workers):
    dataset, before = FakeReal(9), torch.get_rng_state()
    assert same(real_epoch(dataset), real_epoch(dataset, workers))
    view = View(dataset, np.array([7, 0, 8, 2, 5]))
    scored = [list(batches.test_batches(view, LABELS, 2, CPU, n)) for n in (0, workers)]
    assert same(*scored)
    assert torch.equal(torch.get_rng_state(), before)  # drop-path draws from it
    assert not multiprocessing.active_children()


def test_what_is_drawn_for_an_image_does_not_depend_on_its_companions():
    """So a resumed run, or another batch size, transforms every image of the epoch as before."""
    dataset = FakeReal(8)

    def by_image(size):
        found = real_epoch(dataset, size=size, augment=("scale", "flip"))
        blue = [batch["image"][:, 2].flatten(1).max(1).values for batch in found]
        depth = [batch["depth"] for batch in found]
        return dict(zip(torch.cat(blue).tolist(), torch.cat(depth)))

    one, two = by_image(2), by_image(4)
    assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def test_every_epoch_draws_anew():
    dataset = FakeReal(4)
    assert same(real_epoch(dataset, seed=3), real_epoch(dataset, seed=3))
    assert not same(real_epoch(dataset, seed=3), real_epoch(dataset, seed=4))


def test_real_test_batches_pad_every_image_in_order():
    dataset = FakeReal(9, size=(32, 48))
    indices = np.array([8, 1, 4])
    found = list(batches.test_batches(View(dataset, indices), ("semseg", "depth"), 2, CPU))
    assert [len(batch["image"]) for batch in found] == [2, 1]
    images = [{key: value[i] for key, value in batch.items()} for batch in found for i in range(len(batch["image"]))]
    for index, got in zip(indices, images):
        sample = dataset.sample(index)
        height, width = sample["depth"].shape
        top, left = (32 - height) // 2, (48 - width) // 2
        body = np.s_[top : top + height, left : left + width]
        assert np.array_equal(got["depth"][body], sample["depth"])
        assert np.array_equal(got["semseg"][body], sample["semseg"])
        assert int((got["semseg"] == 255).sum()) == 32 * 48 - height * width == int((got["depth"] == 255).sum())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_file_is_named_in_one_line_wherever_it_is_read(workers):
    with pytest.raises(FmtlbenchError, match=r"^images/0003\.png: cannot be decoded$"):
        real_epoch(FakeReal(9, damaged=(3,)), workers, size=3)
    assert not multiprocessing.active_children()


def test_a_label_of_another_size_is_named_with_its_image():
    class Skewed(FakeReal):
        def sample(self, index, keys=None):
            sample = super().sample(index, keys)
            return {**sample, "depth": sample["depth"][1:]}

    with pytest.raises(UsageError, match=r"^image 000\d: depth has \d+×\d+ pixels, its image \d+×\d+$"):
        real_epoch(Skewed(3))


def test_a_worker_that_dies_is_one_line():
    with pytest.raises(FmtlbenchError, match=r"loading process .*data\.workers") as caught:
        real_epoch(Deadly(6), workers=1)
    assert "\n" not in str(caught.value)
    assert not multiprocessing.active_children()


class Deadly(FakeReal):
    def sample(self, index, keys=None):
        os._exit(9)


def test_workers_end_when_the_epoch_is_left_early():
    rng = np.random.default_rng(0)
    running = batches.train_batches(View(FakeReal(9), np.arange(9)), LABELS, 2, rng, ALL, CPU, workers=2)
    next(running)
    assert len(multiprocessing.active_children()) == 2
    running.close()
    assert not multiprocessing.active_children()


def test_an_empty_view_has_nothing_to_score():
    assert list(batches.test_batches(View(FakeReal(3), np.arange(0)), ("depth",), 2, CPU, workers=2)) == []
