"""Turn counts per threshold into precision, recall, F and AP, as SEISM computes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def precision_recall(
    hit_p: ArrayLike, predicted: ArrayLike, hit_g: ArrayLike, actual: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (precision, recall, F) from counts, each in [0, 1] and of the shape of the counts.

    Where nothing is predicted, precision is 1 and recall 0; where nothing matches, both are 0.
    """
    hit_p, predicted, hit_g, actual = np.broadcast_arrays(*map(np.asarray, (hit_p, predicted, hit_g, actual)))
    some = (predicted > 0) & (hit_g > 0)
    precision = np.where(some, hit_p / np.maximum(predicted, 1), predicted == 0)
    recall = np.where(some, hit_g / np.maximum(actual, 1), 0.0)
    total = precision + recall
    return precision, recall, 2 * precision * recall / np.where(total > 0, total, 1.0)


def average_precision(precision: np.ndarray, recall: np.ndarray) -> float:
    """Return the area under precision over recall, interpolated at recall 0, 0.01 … 1, with 0 outside the curve."""
    recall, first = np.unique(recall, return_index=True)
    if len(recall) < 2:
        return 0.0
    return float(np.interp(np.linspace(0, 1, 101), recall, precision[first], left=0.0, right=0.0).sum() / 100)


def levels(thresholds: int) -> np.ndarray:
    """Return the smallest 8-bit strength v with v/255 ≥ t for each threshold t = k/(thresholds+1), int32, ascending."""
    t = np.arange(1, thresholds + 1) / (thresholds + 1)
    return (np.arange(256)[:, None] / 255 >= t).argmax(0).astype(np.int32)


def chord(radius: float) -> np.ndarray:
    """Return the disc of pixels within `radius` as its half width in rows 0, 1 … from the centre, int32."""
    d = np.arange(int(radius) + 1)
    return ((np.sqrt(d[:, None] ** 2 + d**2) <= radius).sum(1) - 1).astype(np.int32)
