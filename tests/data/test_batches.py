"""Batches: order, size, mirror images, and one convention for what is not labelled."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fmtlbench.data import batches
from fmtlbench.data.views import View

CPU = torch.device("cpu")


class Toy:
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
