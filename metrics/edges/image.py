"""Count matched edge pixels of one image per threshold. Does not import torch, so worker processes start quickly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import sweeps as kernels
from .curve import chord, levels, precision_recall
from .nms import suppress


class Counts(NamedTuple):
    """Matched, predicted [T] and actual edge pixels, and the same three at the image's own best threshold [3]."""

    matched: np.ndarray
    predicted: np.ndarray
    actual: int
    best: np.ndarray


def boundaries(labels: np.ndarray) -> np.ndarray:
    """Return [H, W] uint8, 1 where the label differs from the right, lower or lower-right one (SEISM's seg2bmap)."""
    padded = np.pad(labels, ((0, 1), (0, 1)), mode="edge")
    right, below, diagonal = padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]
    return ((labels != right) | (labels != below) | (labels != diagonal)).astype(np.uint8)


def thin(binary: np.ndarray) -> np.ndarray:
    """Thin an [H, W] map (non-zero: foreground) to one-pixel lines, as bwmorph(…, 'thin', Inf) does. uint8."""
    alive = np.pad(np.asarray(binary) != 0, 1).view(np.uint8)
    shape, alive = alive.shape, alive.reshape(-1)
    pixels, code = np.flatnonzero(alive).astype(np.int32), np.zeros_like(alive)
    steps = kernels.neighbours(shape[1])
    kernels.draw(pixels, 0, len(pixels), alive, code, steps)
    kernels.thin(alive, code, pixels, len(pixels), steps, np.zeros_like(alive), pixels.copy(), pixels.copy())
    return np.ascontiguousarray(alive.reshape(shape)[1:-1, 1:-1])


def label_edges(target: np.ndarray, gt: str) -> np.ndarray:
    """Return thin label edges from a boundary map ("seism", "plain") or from a map of segments ("labelmap")."""
    return thin(target if gt == "plain" else boundaries(target))


def count(
    strength: np.ndarray, edges: np.ndarray, ignored: np.ndarray | None, max_dist: float, nms: bool, thresholds: int
) -> Counts:
    """Score an 8-bit edge map against thin label edges.

    Args:
        strength: [H, W] uint8.
        edges: [H, W] uint8, non-zero on thin label edges.
        ignored: [H, W] bool or None; no edge counts there, neither predicted nor labelled.
        max_dist: Tolerance as a fraction of the image diagonal.
        nms: Suppress non-maxima first.
        thresholds: Number of thresholds k/(thresholds+1).
    """
    strength = np.ascontiguousarray(strength)
    if nms:
        strength = suppress(strength)
    if ignored is not None:
        strength, edges = np.where(ignored, np.uint8(0), strength), np.where(ignored, np.uint8(0), edges)
    tolerance = chord(max_dist * float(np.hypot(*strength.shape)))
    matched, predicted = kernels.sweep(strength, edges, levels(thresholds), tolerance, True)
    actual = int(np.count_nonzero(edges))
    best = int(precision_recall(matched, predicted, matched, actual)[2].argmax())
    return Counts(matched, predicted, actual, np.array([matched[best], predicted[best], actual]))


def score(strength: np.ndarray, target: np.ndarray, ignored: np.ndarray | None, gt: str, **options: Any) -> Counts:
    """Compute the label edges of `target`, then `count` against them."""
    return count(strength, label_edges(target, gt), ignored, **options)


def valid_part(ignored: np.ndarray | None) -> tuple[slice, slice] | None:
    """Return the bounding box of the pixels that are not ignored; None if all are."""
    if ignored is None:
        return slice(None), slice(None)
    rows, cols = np.flatnonzero(~ignored.all(1)), np.flatnonzero(~ignored.all(0))
    return (slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)) if len(rows) else None
