"""Non-maximum suppression of edge maps as in SEISM (Dollár's edge toolbox), compiled.

Uses single precision and running sums, in the order of the original, so that the 8-bit output is the same.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

f4 = np.float32
REACH = 4  # radius of the orientation filter, and how far along the normal a pixel must be the maximum
BORDER = 5  # rows and columns that are faded out


@njit(cache=True, nogil=True)
def _smooth(image):
    """Smooth [H, W] float32 with [1 2 1] × [1 2 1] / 16; border pixels are repeated."""
    rows, cols = image.shape
    middle, out = np.empty_like(image), np.empty_like(image)
    for y in range(rows):
        for x in range(cols):
            left, right = image[y, max(x - 1, 0)], image[y, min(x + 1, cols - 1)]
            middle[y, x] = f4(1 / 16) * (left + f4(2) * image[y, x] + right)
    for y in range(rows):
        above, below = max(y - 1, 0), min(y + 1, rows - 1)
        for x in range(cols):
            out[y, x] = middle[above, x] + f4(2) * middle[y, x] + middle[below, x]
    return out


@njit(cache=True, nogil=True)
def _mirror(i, n):
    """Return index i reflected into 0 … n-1, with the border pixel repeated."""
    while i < 0 or i >= n:
        i = -1 - i if i < 0 else 2 * n - 1 - i
    return i


@njit(cache=True, nogil=True)
def _filter_line(line, scale, out):
    """Filter one line with weights scale · [1 2 3 4 5 4 3 2 1], border mirrored, by summing second differences."""
    n = len(line)
    width = REACH + 1
    slope = value = line[0]
    for i in range(1, width):
        slope += line[_mirror(i, n)]
        value += slope
    value = scale * (f4(2) * value - slope)
    slope = f4(0)
    out[0] = value
    for i in range(1, n):
        slope += line[_mirror(i - 1 - width, n)] + line[_mirror(i - 1 + width, n)] - f4(2) * line[i - 1]
        value += scale * slope
        out[i] = value


@njit(cache=True, nogil=True)
def _filter_triangle(image):
    rows, cols = image.shape
    turned = np.empty((cols, rows), np.float32)
    line = np.empty(cols, np.float32)
    for y in range(rows):
        _filter_line(image[y], f4(1 / 625), line)
        turned[:, y] = line
    out = np.empty_like(image)
    column = np.empty(rows, np.float32)
    for x in range(cols):
        _filter_line(turned[x], f4(1), column)
        out[:, x] = column
    return out


@njit(cache=True, nogil=True)
def _slope(image, y, x, down):
    """Return the central difference (one-sided at the border) down the rows (`down`) or along a row."""
    last = image.shape[0] - 1 if down else image.shape[1] - 1
    here = y if down else x
    low, high = max(here - 1, 0), min(here + 1, last)
    difference = image[high, x] - image[low, x] if down else image[y, high] - image[y, low]
    return difference * f4(0.5) if high - low == 2 else difference


@njit(cache=True, nogil=True)
def _gradient(image, down):
    out = np.empty_like(image)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            out[y, x] = _slope(image, y, x, down)
    return out


@njit(cache=True, nogil=True)
def angle_of(rise, run):
    """Return atan(rise / run) in [0, π); a run of exactly zero gives π/2, or 0 if rise is zero too."""
    if run == 0:
        return f4(math.pi / 2) if rise != 0 else f4(0)
    angle = f4(math.atan(rise / run))
    return angle if angle >= 0 else angle + f4(math.pi)


@njit(cache=True, nogil=True)
def orientation(smooth):
    """Return the direction across the edge at every pixel, in [0, π), [H, W] float32."""
    broad = _filter_triangle(smooth)
    ox, oy = _gradient(broad, False), _gradient(broad, True)
    out = np.empty_like(smooth)
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            oxy = _slope(oy, y, x, False)
            sign = f4(0) if oxy == 0 else f4(-1) if oxy > 0 else f4(1)
            out[y, x] = angle_of(_slope(oy, y, x, True) * sign, _slope(ox, y, x, False) + f4(1e-5))
    return out


@njit(cache=True, nogil=True)
def suppress(strength):
    """Return the edge strength [H, W] uint8 with all pixels except ridges set to 0."""
    rows, cols = strength.shape
    smooth = _smooth(strength.astype(np.float32) / f4(255))
    angles = orientation(smooth)
    out = np.zeros(strength.shape, np.uint8)
    far_x, far_y = f4(cols - 1.001), f4(rows - 1.001)
    for y in range(rows):
        for x in range(cols):
            here = smooth[y, x]
            if here == 0:
                continue
            bar = here * f4(1.01)
            cos, sin = f4(math.cos(angles[y, x])), f4(math.sin(angles[y, x]))
            ridge = True
            for d in range(-REACH, REACH + 1):
                if d == 0:
                    continue
                u = min(max(x + d * cos, f4(0)), far_x)
                v = min(max(y + d * sin, f4(0)), far_y)
                left, top = int(u), int(v)
                du, dv = f4(u - left), f4(v - top)
                upper = (f4(1) - du) * smooth[top, left] + du * smooth[top, left + 1]
                lower = (f4(1) - du) * smooth[top + 1, left] + du * smooth[top + 1, left + 1]
                if bar < (f4(1) - dv) * upper + dv * lower:
                    ridge = False
                    break
            if ridge:
                inset_x, inset_y = min(x, cols - 1 - x), min(y, rows - 1 - y)
                fade = f4(min(inset_x, BORDER)) / f4(BORDER) * (f4(min(inset_y, BORDER)) / f4(BORDER))
                out[y, x] = int(f4(255) * here * fade + f4(0.5))
    return out
