"""How the images of one domain are dealt to its clients: disjoint, complete, seeded, nobody empty-handed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import FmtlbenchError
from ..scenarios import Partition
from .kept import kept

VERSION = 1  # raise it whenever histograms on disk would be counted otherwise

_histograms: dict[int, tuple[weakref.ref, np.ndarray]] = {}  # by id of the dataset, as long as it lives


def deal(
    partition: Partition, dataset: Any, clients: int, rng: np.random.Generator, least: int = 1
) -> list[np.ndarray]:
    """Sorted image numbers of every client.

    Args:
        partition: which kind, and its alpha.
        dataset: anything with a length; `dirichlet` reads its semantic labels too.
        clients: among how many.
        rng: decides everything random.
        least: images every client gets at least; `least * clients` must not exceed the length.
    """
    parts = KINDS[partition.kind](partition, dataset, clients, rng, least)
    return [np.sort(part) for part in parts]


def linear_sizes(count: int, clients: int, least: int = 1) -> list[int]:
    """Shares in the proportion 1 : 2 : … : clients, rounded by largest remainder, none below `least`."""
    sizes = _rounded(count, np.arange(1, clients + 1))
    while sizes.min() < least:  # only where there are hardly more images than clients
        sizes[sizes.argmin()] += 1
        sizes[sizes.argmax()] -= 1
    return sizes.tolist()


def _rounded(count: int, weights: np.ndarray) -> np.ndarray:
    """`count` in the proportion of the weights, in whole numbers by largest remainder."""
    exact = count * weights / weights.sum()
    sizes = np.floor(exact).astype(int)
    by_remainder = np.argsort(sizes - exact, kind="stable")
    sizes[by_remainder[: count - sizes.sum()]] += 1
    return sizes


def equal_sizes(count: int, clients: int) -> list[int]:
    """Sizes that differ by one at most."""
    return [count // clients + (i < count % clients) for i in range(clients)]


def histograms(dataset: Any) -> np.ndarray:
    """Labelled pixels per image and semantic class, [images, classes]; read once per dataset object.

    Of real data they are kept on disk too, since decoding thousands of labels takes a while.
    """
    known = _histograms.get(id(dataset))
    if known is not None and known[0]() is dataset:
        return known[1]
    classes = classes_of(dataset).get("semseg")
    if not classes:
        name = getattr(getattr(dataset, "info", dataset), "name", dataset)
        raise FmtlbenchError(
            f"partition dirichlet: {name} has no semantic labels to go by; "
            "--set scenario.partition.kind=equal or linear"
        )
    if hasattr(dataset, "digest_of"):
        counts = _kept_counts(dataset, classes)
    else:
        counts = _counts(len(dataset), classes, lambda i: dataset.batch(np.array([i]), keys=("semseg",))["semseg"])
    key = id(dataset)
    _histograms[key] = (weakref.ref(dataset, lambda _: _histograms.pop(key, None)), counts)
    return counts


def classes_of(dataset: Any) -> Mapping[str, int]:
    """Task → number of classes, as the dataset or its info says."""
    return getattr(getattr(dataset, "info", dataset), "classes", {})


def _kept_counts(dataset: Any, classes: int) -> np.ndarray:
    shape = (len(dataset), classes)

    def find() -> list[list[int]]:
        read, progress = lambda i: dataset.sample(i, ("semseg",))["semseg"], dataset.progress
        return _counts(*shape, read, progress).tolist()

    def fits(found: Any) -> bool:
        counts = np.array(found)  # ValueError, if rows differ
        return counts.shape == shape and counts.dtype.kind == "i" and bool((counts >= 0).all())

    about = {"version": VERSION, "classes": classes}
    return np.array(kept("histograms", about, dataset.digest_of("semseg"), fits, find, dataset.cache_dir), np.int64)


def _counts(
    images: int, classes: int, read: Callable[[int], np.ndarray], progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    counts = np.zeros((images, classes), np.int64)
    for index in range(images):  # one by one: real images differ in size and do not stack
        labels = np.asarray(read(index)).ravel().astype(np.int64)
        counts[index] = np.bincount(labels[(labels >= 0) & (labels < classes)], minlength=classes)
        if progress and ((index + 1) % 50 == 0 or index + 1 == images):
            progress(index + 1, images)
    return counts


def _equal(partition: Partition, dataset: Any, clients: int, rng: np.random.Generator, least: int) -> list[np.ndarray]:
    return np.array_split(rng.permutation(len(dataset)), clients)


def _linear(partition: Partition, dataset: Any, clients: int, rng: np.random.Generator, least: int) -> list[np.ndarray]:
    sizes = linear_sizes(len(dataset), clients, least)
    return np.split(rng.permutation(len(dataset)), np.cumsum(sizes)[:-1])


def _quantity(
    partition: Partition, dataset: Any, clients: int, rng: np.random.Generator, least: int
) -> list[np.ndarray]:
    """Shares of the images drawn from Dirichlet(alpha), whatever the images show; nobody gets fewer than `least`."""
    extra = _rounded(len(dataset) - least * clients, rng.dirichlet(np.full(clients, partition.alpha)))
    return np.split(rng.permutation(len(dataset)), np.cumsum(least + extra)[:-1])


def _dirichlet(
    partition: Partition, dataset: Any, clients: int, rng: np.random.Generator, least: int
) -> list[np.ndarray]:
    """Every class is spread over the clients by Dirichlet(alpha); an image goes where its pixels' classes lie."""
    pixels = histograms(dataset)
    spread = rng.dirichlet(np.full(clients, partition.alpha), size=pixels.shape[1])  # [classes, clients]
    total = pixels.sum(1, keepdims=True)
    chance = np.where(total > 0, pixels @ spread / np.maximum(total, 1), 1 / clients)  # [images, clients]
    edges = np.cumsum(chance, axis=1)
    draws = rng.random((len(pixels), 1)) * edges[:, -1:]  # the last edge is 1 but for rounding
    owner = np.minimum((draws >= edges).sum(1), clients - 1)
    sizes = np.bincount(owner, minlength=clients)
    for poor in range(clients):
        while sizes[poor] < least:  # the likeliest image of the richest client
            rich = int(sizes.argmax())
            theirs = np.flatnonzero(owner == rich)
            owner[theirs[chance[theirs, poor].argmax()]] = poor
            sizes[rich] -= 1
            sizes[poor] += 1
    return [np.flatnonzero(owner == client) for client in range(clients)]


Rule = Callable[[Partition, Any, int, np.random.Generator, int], list[np.ndarray]]
KINDS: dict[str, Rule] = {"equal": _equal, "linear": _linear, "dirichlet": _dirichlet, "quantity": _quantity}
