"""Edges of PASCAL-Context, drawn from its label maps: one way to train on, another to be scored against.

The public code trains on thin(|Laplacian(LabelMap)| > 0), while SEISM, which gives the published odsF, scores against
thin(pixels that differ from the right, lower or lower-right neighbour). The two lie up to a pixel apart, so the test
split delivers the second (with metric option gt="plain", whose thinning leaves a thin map as it is).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..metrics.edges.image import label_edges, thin
from ._kernels import bends


def training_edges(segments: np.ndarray) -> np.ndarray:
    """[H, W] integers → [H, W] uint8 {0, 1}: where the Laplacian of the numbers is not zero, thinned."""
    drawn = np.empty(segments.shape, np.uint8)
    bends(segments, drawn)
    return thin(drawn)


def scoring_edges(segments: np.ndarray) -> np.ndarray:
    """[H, W] integers → [H, W] uint8 {0, 1}: what odsF is measured against."""
    return label_edges(segments, "labelmap")


@cache
def compile_loops() -> None:
    """Load or compile the readers' pixel loops now: worker processes that are forked later find them ready."""
    from ._kernels import clear_untrusted
    from .nyud import decode_normals

    normals = decode_normals(np.zeros((4, 4, 3), np.uint8))
    for kind in (np.uint8, np.uint16):  # what MATLAB files hold, and as it lies in them
        segments = np.zeros((4, 4), kind, order="F")
        training_edges(segments)
        clear_untrusted(normals, segments, np.zeros(1, bool))
