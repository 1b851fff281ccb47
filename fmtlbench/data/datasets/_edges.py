"""Compute the edges of PASCAL-Context from its label maps, in one way for training and in another for scoring.

The public code trains on thin(|Laplacian(LabelMap)| > 0), while SEISM, which gives the published odsF, scores against
thin(pixels that differ from the right, lower or lower-right neighbour). The two are up to a pixel apart, so the test
split uses the second (with metric option gt="plain", whose thinning does not change a thin map).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ...metrics.edges.image import label_edges, thin


def training_edges(segments: np.ndarray) -> np.ndarray:
    """Return [H, W] uint8, 1 where the Laplacian of the segment numbers [H, W] is not zero, thinned."""
    from scipy.ndimage import laplace

    return thin(laplace(segments.astype(np.int32), mode="mirror"))


def scoring_edges(segments: np.ndarray) -> np.ndarray:
    """Return [H, W] uint8, 1 on the thin edges of the segment numbers [H, W] that odsF is measured against."""
    return label_edges(segments, "labelmap")


@cache
def compile_loops() -> None:
    """Load or compile the thinning loops now, so that worker processes forked later need not."""
    training_edges(np.zeros((4, 4), np.uint8))
