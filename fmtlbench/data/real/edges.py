"""Edges of PASCAL-Context, drawn from its label maps: one way to train on, another to be scored against.

The public code trains on thin(|Laplacian(LabelMap)| > 0), while SEISM, which gives the published odsF, scores against
thin(pixels that differ from the right, lower or lower-right neighbour). The two lie up to a pixel apart, so the test
split delivers the second (with metric option gt="plain", whose thinning leaves a thin map as it is).
"""

from __future__ import annotations

import numpy as np

from ...metrics.edges.image import label_edges, thin
from .kernels import bends


def training_edges(segments: np.ndarray) -> np.ndarray:
    """[H, W] integers → [H, W] uint8 {0, 1}: where the Laplacian of the numbers is not zero, thinned."""
    drawn = np.empty(segments.shape, np.uint8)
    bends(segments, drawn)
    return thin(drawn)


def scoring_edges(segments: np.ndarray) -> np.ndarray:
    """[H, W] integers → [H, W] uint8 {0, 1}: what odsF is measured against."""
    return label_edges(segments, "labelmap")
