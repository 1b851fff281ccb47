"""Compute exact labels from what each pixel's ray hit."""

from __future__ import annotations

import numpy as np

from .scene import Scene


def semseg(scene: Scene, obj: np.ndarray, sky: int) -> np.ndarray:
    """Return the class of every pixel; `obj` is the object index, -1 for sky."""
    table = np.array([*scene.labels, sky], dtype=np.uint8)  # index -1 is the last entry
    return table[obj]


def human_parts(tags: np.ndarray, solid: np.ndarray) -> np.ndarray:
    return np.append(tags[:, 2], 0).astype(np.uint8)[solid]


def edge(obj: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Return 1 on the nearer side of every change of object between 4-neighbours: lines one pixel thin.

    The nearer side is marked so that a mirrored scene has the mirrored edges. At equal depths both sides are.
    """
    out = np.zeros(obj.shape, bool)
    for a, b in (((slice(None), slice(1, None)), (slice(None), slice(-1))), ((slice(1, None),), (slice(-1),))):
        change = obj[a] != obj[b]
        out[a] |= change & (depth[a] <= depth[b])
        out[b] |= change & (depth[b] <= depth[a])
    return out.astype(np.uint8)


def saliency(scene: Scene, obj: np.ndarray, person: int) -> np.ndarray:
    """Return the mask of the object with the largest visible area, weighted towards the middle and for people."""
    height, width = obj.shape
    y = (np.arange(height) + 0.5) / height - 0.5
    x = (np.arange(width) + 0.5) / width - 0.5
    weight = np.exp(-8.0 * (x[None, :] ** 2 + y[:, None] ** 2))
    score = np.bincount((obj + 1).ravel(), weight.ravel(), minlength=len(scene.labels) + 1)[1:]
    score *= np.where(np.array(scene.labels) == person, 2.2, 1.0)
    score[~np.array(scene.salient)] = 0.0
    best = int(score.argmax())
    return ((obj == best) & (score[best] > 0)).astype(np.uint8)
