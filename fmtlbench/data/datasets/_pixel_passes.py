"""Compiled loops over pixels for the readers."""

from __future__ import annotations

import numpy as np

from ...base.jit import entry


@entry
def vectors(pixels, values, faint, out):
    """Decode bytes [H, W, 3] into vectors by the table `values`; zero where the squared length is below `faint`."""
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            a, b, c = values[pixels[y, x, 0]], values[pixels[y, x, 1]], values[pixels[y, x, 2]]
            if a * a + b * b + c * c < faint:
                a = b = c = np.float32(0)
            out[y, x, 0], out[y, x, 1], out[y, x, 2] = a, b, c


@entry
def clear_untrusted(normals, segments, trusted):
    """Set the vectors [H, W, 3] to zero, in place, where `trusted` (by segment number) is false."""
    for y in range(segments.shape[0]):
        for x in range(segments.shape[1]):
            if not trusted[segments[y, x]]:
                normals[y, x, 0] = normals[y, x, 1] = normals[y, x, 2] = 0
