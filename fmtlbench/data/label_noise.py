"""Choose which training images of a client carry the labels of another of its images (data.label_noise).

The images stay. All labels of an image are exchanged together, so the tasks of a client are wrong on the same images.
"""

from __future__ import annotations

import numpy as np

from ..base.errors import UsageError


def draw_label_sources(indices: np.ndarray, share: float, rng: np.random.Generator) -> dict[int, int]:
    """Draw the images with wrong labels; return for each the image whose labels it carries, never its own.

    round(share × images) are drawn. They hand their labels round in a random circle, so that labels are wrong but each
    occurs as often as before; a single one has the labels of any other image, which then occur twice.

    Raises:
        UsageError: The share is of none of the images, or there is no other image to take labels from.
    """
    if not share:
        return {}
    wrong = round(share * len(indices))
    if not wrong:
        raise UsageError(
            f"{share:g} of {len(indices)} training images is none; expected {1 / len(indices):.2g} or more"
        )
    if len(indices) < 2:
        raise UsageError("1 training image, and no other whose labels it could carry; set more images")
    order = indices[rng.permutation(len(indices))].tolist()
    circle = order[: max(2, wrong)]
    return dict(zip(circle[:wrong], circle[1:] + circle[:1]))
