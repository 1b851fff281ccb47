"""Compiled passes over the pixels of a batch: decoding, and the sums of meters. Called through `compiled.py` only.

Each reads its arrays once, in blocks that stay in the cache, by loops that the compiler turns into vector code. No
result depends on threads or on the width of a vector: blocks begin at fixed places and are added in a fixed order.
What a kernel returns first says whether its other results are valid; if not, torch finds what is wrong with the input.
"""

from __future__ import annotations

from math import pi, sqrt, tan

import numpy as np

from ..base.jit import entry, jit

BLOCK = 1024  # pixels; a power of two, for `fold`
CLASS_BLOCK = 4096  # larger, since decoding keeps only a maximum and a class per pixel
TINY = 1e-12  # the least length that a vector is divided by
DEGREES = 180 / pi
EIGHTH = tan(pi / 8)
# (arctan(z) / z - 1) / z² as a polynomial in z², Chebyshev's fit for |z| <= tan(pi / 8): relative error 5e-18
ARCTAN = (
    -0.3333333333333333,
    0.19999999999995516,
    -0.14285714284665682,
    0.11111111015187018,
    -0.0909090457530649,
    0.07692183125376892,
    -0.06664510525508936,
    0.05858140904866328,
    -0.050854078345894844,
    0.03923044778479309,
    -0.019175404711104935,
)


@entry
def largest(scores):
    """Return the channel of the largest value: [B, C, …] → int64 [B, pixels].

    As torch's argmax: the first of equal ones, and NaN is larger than all numbers.
    """
    images, channels = scores.shape[0], scores.shape[1]
    pixels = scores.size // (images * channels)
    scores = scores.reshape(images, channels, pixels)
    out = np.empty((images, pixels), np.int64)
    most, place = np.empty(CLASS_BLOCK, scores.dtype), np.empty(CLASS_BLOCK, np.int32)
    for b in range(images):
        for begin in range(0, pixels, CLASS_BLOCK):
            n = min(CLASS_BLOCK, pixels - begin)
            most[:n] = scores[b, 0, begin : begin + n]
            place[:n] = 0
            for c in range(1, channels):
                values = scores[b, c, begin : begin + n]
                for j in range(n):
                    value, before = values[j], most[j]
                    larger = (not value <= before) & (before == before)
                    most[j] = value if larger else before
                    place[j] = c if larger else place[j]
            out[b, begin : begin + n] = place[:n]
    return True, out


@jit
def fold(values, count):
    """Sum values[:count] of a block in pairs, then pairs of pairs; the block is overwritten."""
    values[count:] = 0.0
    half = len(values) // 2
    while half:
        for j in range(half):
            values[j] += values[half + j]
        half //= 2
    return values[0]


@jit
def arctan2(y, x):
    """Return the angle of (x, y) with both >= 0, to two units in the last place; branch-free, for vector code."""
    low, high = y <= EIGHTH * x, x < EIGHTH * y
    z = (y if low else -x if high else y - x) / (x if low else y if high else y + x)
    z = 0.0 if y == 0 else z  # also for x = 0
    u = z * z
    series = 0.0
    for k in range(len(ARCTAN) - 1, -1, -1):
        series = ARCTAN[k] + u * series
    return (0.0 if low else pi / 2 if high else pi / 4) + (z + z * u * series)


@entry
def angles(prediction, target, skip_zero, ignore, bins, limits):
    """Measure the angles between vectors [B, 3, H, W] where no channel of the target is `ignore`.

    Returns whether all is finite, the sum of angles in degrees, how many pixels count, how many of them are in each bin
    of 180 / bins degrees, and how many are below each limit.
    """
    images, pixels = prediction.shape[0], prediction.shape[2] * prediction.shape[3]
    prediction, target = prediction.reshape(images, 3, pixels), target.reshape(images, 3, pixels)
    histogram, below = np.zeros(bins + 1, np.int64), np.zeros(len(limits), np.int64)
    angle, bin_of = np.empty(BLOCK), np.empty(BLOCK, np.int32)
    total, broken, per_degree, last = 0.0, False, bins / 180, np.int32(bins - 1)
    for b in range(images):
        for begin in range(0, pixels, BLOCK):
            n = min(BLOCK, pixels - begin)
            here = slice(begin, begin + n)
            p0, p1, p2 = prediction[b, 0, here], prediction[b, 1, here], prediction[b, 2, here]
            g0, g1, g2 = target[b, 0, here], target[b, 1, here], target[b, 2, here]
            for j in range(n):
                px, py, pz = np.float64(p0[j]), np.float64(p1[j]), np.float64(p2[j])
                gx, gy, gz = np.float64(g0[j]), np.float64(g1[j]), np.float64(g2[j])
                # v - v is 0 for finite v only
                broken |= (px - px) + (py - py) + (pz - pz) + (gx - gx) + (gy - gy) + (gz - gz) != 0
                p, g = sqrt(px * px + py * py + pz * pz), sqrt(gx * gx + gy * gy + gz * gz)
                keep = (gx != ignore) & (gy != ignore) & (gz != ignore) & ((g > 0) | (not skip_zero))
                p, g = p if p > TINY else TINY, g if g > TINY else TINY
                px, py, pz, gx, gy, gz = px / p, py / p, pz / p, gx / g, gy / g, gz / g
                dx, dy, dz, sx, sy, sz = px - gx, py - gy, pz - gz, px + gx, py + gy, pz + gz
                apart, along = sqrt(dx * dx + dy * dy + dz * dz), sqrt(sx * sx + sy * sy + sz * sz)
                degrees = 2 * arctan2(apart, along) * DEGREES
                angle[j] = degrees if keep else 0.0
                place = np.int32(degrees * per_degree)
                bin_of[j] = np.int32(bins) if not keep else last if place > last else place
            if broken:  # NaN has no bin
                return False, total, 0, histogram[:bins], below
            for j in range(n):
                histogram[bin_of[j]] += 1
            for k in range(len(limits)):
                for j in range(n):
                    below[k] += (angle[j] < limits[k]) & (bin_of[j] < bins)
            total += fold(angle, n)
    return not broken, total, images * pixels - histogram[bins], histogram[:bins], below


@entry
def depths(prediction, target, least, limit, close):
    """Measure the errors of depths where 0 < target < limit, with predictions raised to `least`.

    Returns whether all is finite, the sums of squared and of relative errors, how many pixels have a ratio below
    `close`, and how many count.
    """
    prediction, target = prediction.ravel(), target.ravel()
    squared, relative = np.empty(BLOCK), np.empty(BLOCK)
    squares, relatives, near, pixels, broken = 0.0, 0.0, 0, 0, False
    for begin in range(0, len(target), BLOCK):
        n = min(BLOCK, len(target) - begin)
        ps, gs = prediction[begin : begin + n], target[begin : begin + n]
        for j in range(n):
            p, g = np.float64(ps[j]), np.float64(gs[j])
            broken |= (p - p) + (g - g) != 0
            keep = (g > 0) & (g < limit)
            p, g = p if p > least else least, g if keep else 1.0
            error = p - g if keep else 0.0
            squared[j], relative[j] = error * error, abs(error) / g
            near += keep & (p / g < close) & (g / p < close)
            pixels += keep
        squares += fold(squared, n)
        relatives += fold(relative, n)
    return not broken, squares, relatives, near, pixels
