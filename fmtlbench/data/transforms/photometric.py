"""Change brightness, contrast, saturation and hue at random, each in half of the images, as in the papers' code.

Every step maps a byte to a byte, so the steps become tables and one pass over the image is enough.
"""

from __future__ import annotations

import numpy as np

from .pixel_passes import HUES, distort

BRIGHTNESS = 32.0  # largest change, of 255 levels
CONTRAST = (0.5, 1.5)
SATURATION = (0.5, 1.5)
HUE = 18  # largest change, of 180 steps


def photometric(image: np.ndarray, rng: np.random.Generator) -> None:
    """Change the colours of a byte image [H, W, 3] at random, in place."""
    contrast_first = rng.random() < 0.5
    before, after, saturation = (np.arange(256, dtype=np.uint8) for _ in range(3))
    hue = np.arange(HUES, dtype=np.uint8)
    if rng.random() < 0.5:
        before = _scale_and_shift(before, add=rng.uniform(-BRIGHTNESS, BRIGHTNESS))
    if rng.random() < 0.5:
        factor = rng.uniform(*CONTRAST)
        if contrast_first:
            before = _scale_and_shift(before, factor)
        else:
            after = _scale_and_shift(after, factor)
    if rng.random() < 0.5:
        saturation = _scale_and_shift(saturation, rng.uniform(*SATURATION))
    if rng.random() < 0.5:
        hue = ((hue.astype(np.int64) + rng.integers(-HUE, HUE)) % HUES).astype(np.uint8)
    distort(image, before, saturation, np.append(hue, hue[:1]), after)


def _scale_and_shift(table: np.ndarray, factor: float = 1.0, add: float = 0.0) -> np.ndarray:
    return np.clip(table.astype(np.float32) * np.float32(factor) + np.float32(add), 0, 255).astype(np.uint8)
