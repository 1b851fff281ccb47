"""Batches of tensors from a view: shuffled and augmented from a named stream.

Embedded data come as whole arrays of one size and are only mirrored; real images go through the papers' transforms
(loading.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..tasks import TASKS
from .amounts import USUAL, Amounts
from .relabel import relabel
from .tensors import to_tensors
from .views import View


def train_batches(
    view: View,
    tasks: tuple[str, ...],
    size: int,
    rng: np.random.Generator,
    augment: tuple[str, ...],
    device: torch.device,
    workers: int = 0,
    amounts: Amounts = USUAL,
) -> Iterator[dict[str, Tensor]]:
    """Yield the batches of one epoch in random order; a last, smaller batch is dropped unless it is the only one.

    Args:
        view: the images to use.
        tasks: the tasks whose labels to load.
        size: images per batch.
        rng: decides the order and, image by image, every random transform.
        augment: names of transforms.AUGMENTATIONS; embedded data take 'flip' alone.
        device: where to put the tensors.
        workers: processes that load real images ahead; 0 loads in this process. Does not change the result.
        amounts: strengths of the random transforms of real images.
    """
    order = view.indices[rng.permutation(len(view))]
    parts = _split_into_batches(order[: batch_count(len(view), size) * size], size)
    if not view.dataset.stacked:
        seed = int(rng.integers(2**63))
        loaded = _load_real_batches(view, parts, tasks, augment, seed, device, workers, amounts)
        yield from (relabelled(view, batch) for batch in loaded)
        return
    for indices in parts:
        arrays = _read_stack(view, indices, tasks)
        if "flip" in augment:
            flip(arrays, rng.random(len(arrays["image"])) < 0.5)
        yield relabelled(view, to_tensors(arrays, device))


def test_batches(
    view: View, tasks: tuple[str, ...], size: int, device: torch.device, workers: int = 0
) -> Iterator[dict[str, Tensor]]:
    """Yield batches with every image once, in order; real images are padded or stretched to the dataset's size."""
    parts = _split_into_batches(view.indices, size)
    if not view.dataset.stacked:
        yield from (relabelled(view, b) for b in _load_real_batches(view, parts, tasks, (), None, device, workers))
        return
    for indices in parts:
        yield relabelled(view, to_tensors(_read_stack(view, indices, tasks), device))


def relabelled(view: View, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the batch with the view's relabelling rules applied; the same batch if the view has none."""
    return relabel(batch, view.relabel, view.classes) if view.relabel else batch


def batch_count(images: int, size: int) -> int:
    """Return the number of training batches per epoch."""
    return max(1, images // size)


def flip(arrays: dict[str, np.ndarray], which: np.ndarray) -> None:
    """Mirror the chosen samples left to right, in place."""
    for key, value in arrays.items():
        mirrored = value[which, :, ::-1]
        if key != "image":
            TASKS[key].kind.mirror(mirrored)
        value[which] = mirrored


def _load_real_batches(
    view: View,
    parts: list[np.ndarray],
    tasks: tuple[str, ...],
    augment: tuple[str, ...],
    seed: int | None,
    device: torch.device,
    workers: int,
    amounts: Amounts = USUAL,
) -> Iterator[dict[str, Tensor]]:
    from .loading import RealBatches, load  # imported late: it compiles loops that embedded data do not need

    batches = RealBatches(view.dataset, parts, ("image", *tasks), augment, seed, amounts, view.labels_of)
    return load(batches, device, workers)


def _read_stack(view: View, indices: np.ndarray, tasks: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return embedded images and their labels stacked to [B, ...]; some may have the labels of others."""
    if not view.labels_of:
        return view.dataset.batch(indices, keys=("image", *tasks))
    labelled = np.array([view.labels_of.get(index, index) for index in indices.tolist()])
    return view.dataset.batch(indices, keys=("image",)) | view.dataset.batch(labelled, keys=tasks)


def _split_into_batches(indices: np.ndarray, size: int) -> list[np.ndarray]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]
