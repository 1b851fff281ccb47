"""Compiled loops over pixels. Each computes only the pixels that a crop keeps."""

from __future__ import annotations

import numpy as np

from ...base.jit import entry, jit

HUES = 180  # hue in steps of two degrees, so that it fits a byte


@entry
def blend(source, rows, row_weights, columns, column_weights, out):
    """Interpolate [H, W, 3] bilinearly between rows[i] and the next row, columns[j] and the next column.

    Computed as a + (b - a) * w, so that an area of one colour stays exactly the same. A byte image drops the fraction,
    as the papers' conversion does.
    """
    last_row, last_column = source.shape[0] - 1, source.shape[1] - 1
    first, stop = columns.min(), min(columns.max() + 1, last_column) + 1
    mixed = np.empty((stop - first, 3), np.float32)  # the two rows, interpolated once for all columns
    for i in range(len(rows)):
        upper, lower = source[rows[i], first:stop], source[min(rows[i] + 1, last_row), first:stop]
        down = row_weights[i]
        for x in range(stop - first):
            for c in range(3):
                above = np.float32(upper[x, c])
                mixed[x, c] = above + (np.float32(lower[x, c]) - above) * down
        to_row = out[i]
        for j in range(len(columns)):
            x, right = columns[j] - first, column_weights[j]
            x_next = min(x + 1, last_column - first)
            for c in range(3):
                to_row[j, c] = mixed[x, c] + (mixed[x_next, c] - mixed[x, c]) * right


@entry
def locate(rows, columns, cos, sin, height, width, out):
    """Write to out[i, j] the flat index of the pixel that a turn moves to (rows[i], columns[j]), or -1 if outside."""
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    for i in range(len(rows)):
        y = rows[i] - middle_y
        from_y, from_x = middle_y + cos * y + 0.5, middle_x - sin * y + 0.5
        to_row = out[i]
        for j in range(len(columns)):
            x = columns[j] - middle_x
            row, column = int(np.floor(from_y + sin * x)), int(np.floor(from_x + cos * x))
            inside = 0 <= row < height and 0 <= column < width
            to_row[j] = row * width + column if inside else -1


@jit
def cubic_weights(t):
    """Return the weights of the pixels at -1, 0, 1 and 2 for the position t in [0, 1]: Keys' kernel, a = -0.75."""
    a, one = np.float32(-0.75), np.float32(1)  # as in OpenCV
    s = one - t
    first, last = a * t * s * s, a * s * t * t
    second = ((a + np.float32(2)) * t - (a + np.float32(3))) * t * t + one
    return first, second, one - first - second - last, last


@jit
def cubic_row(row, x, weights):
    """Return the weighted sum of four pixels of a row [W, 3], from x on."""
    a, b, c, d = weights
    return (
        a * row[x, 0] + b * row[x + 1, 0] + c * row[x + 2, 0] + d * row[x + 3, 0],
        a * row[x, 1] + b * row[x + 1, 1] + c * row[x + 2, 1] + d * row[x + 3, 1],
        a * row[x, 2] + b * row[x + 1, 2] + c * row[x + 2, 2] + d * row[x + 3, 2],
    )


@entry
def blend_cubic(source, rows, columns, cos, sin, out):
    """Interpolate float32 [H, W, 3] bicubically: out[i, j] is what a turn moves to (rows[i], columns[j]).

    `source` is padded by two pixels before and three after on both axes, so that no step needs to check for the border.
    Values stay between 0 and 255.
    """
    height, width = source.shape[0] - 5, source.shape[1] - 5
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    low, high = np.float32(0), np.float32(255)
    for i in range(len(rows)):
        y = rows[i] - middle_y
        from_y, from_x = middle_y + cos * y, middle_x - sin * y
        to_row = out[i]
        for j in range(len(columns)):
            x = columns[j] - middle_x
            down = min(max(from_y + sin * x, -1.0), height + 0.0) + 1
            right = min(max(from_x + cos * x, -1.0), width + 0.0) + 1
            top, left = int(down), int(right)
            a, b, c, d = cubic_weights(np.float32(down - top))
            across = cubic_weights(np.float32(right - left))
            first, second = cubic_row(source[top], left, across), cubic_row(source[top + 1], left, across)
            third, fourth = cubic_row(source[top + 2], left, across), cubic_row(source[top + 3], left, across)
            for channel in range(3):
                mixed = a * first[channel] + b * second[channel] + c * third[channel] + d * fourth[channel]
                to_row[j, channel] = min(max(mixed, low), high)


@entry
def distort(image, before, saturation, hue, after):
    """Map the colours of a byte image [H, W, 3] through tables, in place: RGB, then saturation and hue, then RGB.

    Works row by row and keeps table look-ups apart from arithmetic, which then runs in vector instructions. Hue,
    saturation and the resulting colours are rounded; `hue` has HUES + 1 entries, the last equal to the first.
    """
    width = image.shape[1]
    red, green, blue, value = np.empty((4, width), np.float32)
    h, s = np.empty(width, np.int32), np.empty(width, np.int32)
    zero, half, one, two = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)
    for i in range(image.shape[0]):
        row = image[i]
        for j in range(width):
            red[j], green[j], blue[j] = before[row[j, 0]], before[row[j, 1]], before[row[j, 2]]
        for j in range(width):
            r, g, b = red[j], green[j], blue[j]
            v = max(r, max(g, b))
            spread = v - min(r, min(g, b))
            sixth = np.float32(HUES / 6) / max(spread, one)  # steps of hue per level
            if v == r:
                angle = (g - b) * sixth
            elif v == g:
                angle = (b - r) * sixth + np.float32(HUES / 3)
            else:
                angle = (r - g) * sixth + np.float32(2 * HUES / 3)
            if angle < -half:
                angle += np.float32(HUES)
            h[j] = np.int32(angle + half)
            s[j] = np.int32(spread * np.float32(255) / max(v, one) + half)
            value[j] = v
        for j in range(width):
            red[j], green[j] = hue[h[j]], saturation[s[j]]
        for j in range(width):
            sector, v = red[j] * np.float32(6 / HUES), value[j]
            chroma = v * green[j] * np.float32(1 / 255)
            floor = v - chroma + half
            # each primary colour is full over a third of the hue circle and falls to zero over a sixth on both sides
            red[j] = floor + chroma * min(max(abs(sector - np.float32(3)) - one, zero), one)
            green[j] = floor + chroma * min(max(two - abs(sector - two), zero), one)
            blue[j] = floor + chroma * min(max(two - abs(sector - np.float32(4)), zero), one)
        for j in range(width):
            row[j, 0], row[j, 1] = after[np.int32(red[j])], after[np.int32(green[j])]
            row[j, 2] = after[np.int32(blue[j])]
