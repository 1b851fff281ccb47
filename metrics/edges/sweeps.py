"""Thin, match exactly and count for every threshold, in compiled loops.

All of it is in one file because numba's cache notices changes of the calling file only. Pixels are numbered by their
flat index in a grid with an empty margin wide enough that no kernel needs border cases: an index past the end of a row
falls into the margin of the next. Sets of pixels are bit maps, uint64, so that one mask covers a whole row of the disc.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ONE, FULL, TOP = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(58)


def _make_thinning_tables() -> np.ndarray:
    """Return which neighbourhoods lose their centre in the first and in the second sub-iteration, [2, 256] uint8.

    These are the deletion rules of Guo–Hall thinning (bwmorph 'thin'). Bit i of the neighbourhood is their x_{i+1}: E,
    NE, N, NW, W, SW, S, SE.
    """
    code = np.arange(256)
    x = [np.empty(0)] + [(code >> i & 1).astype(bool) for i in range(8)]
    x.append(x[1])
    crossings = sum((~x[2 * i - 1] & (x[2 * i] | x[2 * i + 1])).astype(int) for i in range(1, 5))
    pairs1 = sum((x[2 * i - 1] | x[2 * i]).astype(int) for i in range(1, 5))
    pairs2 = sum((x[2 * i] | x[2 * i + 1]).astype(int) for i in range(1, 5))
    fewest = np.minimum(pairs1, pairs2)
    simple = (crossings == 1) & (fewest >= 2) & (fewest <= 3)
    first = simple & ~((x[2] | x[3] | ~x[8]) & x[1])
    second = simple & ~((x[6] | x[7] | ~x[4]) & x[5])
    return np.stack([first, second]).astype(np.uint8)


TABLES = _make_thinning_tables()

# a de Bruijn sequence: the top six bits of (SPREAD << k) differ for every k, so they identify k
SPREAD = np.uint64(0x03F79D71B4CB0A89)
BIT = np.empty(64, np.int32)
BIT[[(int(SPREAD) << k & (2**64 - 1)) >> 58 for k in range(64)]] = np.arange(64)


@njit(cache=True, nogil=True)
def neighbours(width):
    """Return the flat offsets of the eight neighbours, in the bit order of the thinning tables."""
    return np.array([1, 1 - width, -width, -1 - width, -1, width - 1, width, width + 1], np.int32)


@njit(cache=True, nogil=True)
def draw(pixels, begin, end, alive, code, steps):
    """Add pixels[begin:end] to the foreground `alive` and to the neighbour bits `code`."""
    for i in range(begin, end):
        p = pixels[i]
        alive[p] = 1
        for k in range(8):
            code[p + steps[k]] |= 1 << ((k + 4) & 7)


@njit(cache=True, nogil=True)
def thin(alive, code, pixels, count, steps, listed, todo, gone):
    """Thin to convergence in place.

    `alive` marks foreground, `code` holds each pixel's eight neighbours as bits, `pixels[:count]` lists the foreground.
    A sub-iteration tests again only pixels whose neighbourhood changed since its last test. `listed` (all zero before
    and after) prevents listing a pixel twice; `todo` and `gone` are scratch.
    """
    n_todo = count
    todo[:count] = pixels[:count]
    n_before = 0  # deletions of the previous sub-iteration, gone[:n_before]
    idle = 0
    half = 0
    first = True
    while idle < 2:
        n_gone = n_before
        for i in range(n_todo):
            p = todo[i]
            if alive[p] and TABLES[half, code[p]]:
                gone[n_gone] = p
                n_gone += 1
        # the other sub-iteration has not yet seen the effects of the previous and the present deletions
        for i in range(n_before, n_gone):
            p = gone[i]
            alive[p] = 0
            for k in range(8):
                code[p + steps[k]] &= ~(1 << ((k + 4) & 7)) & 255
        idle = idle + 1 if n_gone == n_before else 0
        if first:  # the second sub-iteration has tested nothing yet
            first = False
            gone[: n_gone - n_before] = gone[n_before:n_gone]
            n_before = n_gone - n_before
            half = 1
            continue
        n_todo = 0
        for i in range(n_gone):
            p = gone[i]
            for k in range(8):
                q = p + steps[k]
                if alive[q] and not listed[q]:
                    listed[q] = 1
                    todo[n_todo] = q
                    n_todo += 1
        for i in range(n_todo):
            listed[todo[i]] = 0
        gone[: n_gone - n_before] = gone[n_before:n_gone]
        n_before = n_gone - n_before
        half = 1 - half


@njit(cache=True, nogil=True)
def _flip(bits, p):
    bits[p >> 6] ^= ONE << np.uint64(p & 63)


@njit(cache=True, nogil=True)
def _between(word, low, high):
    """Return the bits of pixels low … high that belong to the given word."""
    first, last = max(low - (word << 6), 0), min(high - (word << 6), 63)
    return (FULL << np.uint64(first)) & (FULL >> np.uint64(63 - last))


@njit(cache=True, nogil=True)
def _lowest(bits):
    """Return the position of the lowest set bit."""
    return BIT[((bits & (~bits + ONE)) * SPREAD) >> TOP]


@njit(cache=True, nogil=True)
def _find(bits, p, chord, width):
    """Return the first pixel of the set, in reading order, within the disc around p; -1 if there is none."""
    reach = len(chord) - 1
    for dy in range(-reach, reach + 1):
        centre, half = p + dy * width, chord[abs(dy)]
        for word in range((centre - half) >> 6, ((centre + half) >> 6) + 1):
            if bits[word]:
                near = bits[word] & _between(word, centre - half, centre + half)
                if near:
                    return (word << 6) + _lowest(near)
    return -1


@njit(cache=True, nogil=True)
def _list_unmatched(bits, mate, out):
    """List the pixels of the set that have no mate, in reading order; return how many."""
    n = 0
    for word in range(len(bits)):
        rest = bits[word]
        while rest:
            p = (word << 6) + _lowest(rest)
            rest &= rest - ONE
            if mate[p] < 0:
                out[n] = p
                n += 1
    return n


@njit(cache=True, nogil=True)
def _augment(roots, n_free, bits_b, mate_a, mate_b, free_b, unseen, chord, width, parent, queue, reached):
    """Make the matching of sides A and B a maximum one; return the number of matches gained.

    First the free vertices of A, roots[:n_free] in reading order, each take the first free partner in reading order;
    on lines that is within about 1 % of the maximum. From each that is left an alternating tree grows, breadth first,
    until it reaches a free vertex of B, which augments the matching. If it ends without reaching one, its vertices are
    of no use to any later tree and are not visited again: all failed searches together cost no more than one pass over
    the graph. When all roots are done, the matching is maximum (Berge).

    `bits_b` and `free_b` are the vertices of B and those without partner; mates are by pixel, -1 for none; `chord` is
    as for `sweep`. `unseen` is scratch like bits_b, `parent` by pixel, the last two like roots.
    """
    won = kept = 0
    for i in range(n_free):
        a = roots[i]
        b = _find(free_b, a, chord, width)
        if b >= 0:
            mate_a[a], mate_b[b] = b, a
            _flip(free_b, b)
            won += 1
        else:
            roots[kept] = a
            kept += 1
    reach = len(chord) - 1
    unseen[:] = bits_b
    for r in range(kept):
        queue[0] = roots[r]
        tail = 1
        i = 0
        while i < tail:
            a = queue[i]
            i += 1
            b = _find(free_b, a, chord, width)
            if b >= 0:
                _flip(free_b, b)
                parent[b] = a
                while b >= 0:
                    a = parent[b]
                    following = mate_a[a]
                    mate_a[a], mate_b[b] = b, a
                    b = following
                won += 1
                for k in range(1, tail):
                    _flip(unseen, reached[k])
                break
            for dy in range(-reach, reach + 1):
                centre, half = a + dy * width, chord[abs(dy)]
                for word in range((centre - half) >> 6, ((centre + half) >> 6) + 1):
                    if unseen[word]:
                        near = unseen[word] & _between(word, centre - half, centre + half)
                        unseen[word] ^= near
                        while near:
                            b = (word << 6) + _lowest(near)
                            near &= near - ONE
                            parent[b] = a
                            reached[tail] = b
                            queue[tail] = mate_b[b]
                            tail += 1
    return won


@njit(cache=True, nogil=True)
def sweep(strength, truth, levels, chord, thinning):
    """Return the (matched, predicted) pixels of one image for every threshold, int64 [T] each.

    Goes from the highest threshold down and keeps the matches of the previous one whose pixels still exist.

    Args:
        strength: [H, W] uint8 edge strength.
        truth: [H, W] uint8, thin label edges (non-zero).
        levels: [T] int32 ascending; threshold t keeps strength ≥ levels[t] (all ≥ 1).
        chord: [R+1] int32 half widths of the tolerance disc by |dy|.
        thinning: False takes the binary maps as they are (they are thin already).
    """
    rows, cols = strength.shape
    margin = len(chord)  # one more than the disc reaches
    width = (cols + margin + 63) & ~63
    size, n_thresholds = (rows + 2 * margin) * width, len(levels)
    matched, predicted = np.zeros(n_thresholds, np.int64), np.zeros(n_thresholds, np.int64)

    # candidate pixels by falling strength, so that each threshold keeps a prefix
    first = np.zeros(257, np.int32)
    count = n_label = 0
    for y in range(rows):
        for x in range(cols):
            count += strength[y, x] >= levels[0]
            n_label += truth[y, x] != 0
    raster, pixels, label = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(n_label, np.int32)
    mate_p, mate_g, parent = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    bits_g = np.zeros(size >> 6, np.uint64)
    i = g = 0
    for y in range(rows):
        for x in range(cols):
            p = (y + margin) * width + x
            if strength[y, x] >= levels[0]:
                raster[i] = p
                i += 1
                mate_p[p] = -1
                first[256 - strength[y, x]] += 1
            if truth[y, x]:
                label[g] = p
                g += 1
                mate_g[p] = -1
                _flip(bits_g, p)
    for v in range(1, 257):
        first[v] += first[v - 1]
    ends = np.empty(n_thresholds, np.int32)  # threshold t keeps pixels[: ends[t]]
    for t in range(n_thresholds):
        ends[t] = first[256 - levels[t]]
    for p in raster:
        slot = 255 - strength[p // width - margin, p % width]
        pixels[first[slot]] = p
        first[slot] += 1

    steps = neighbours(width)
    alive, code, listed = np.zeros(size, np.uint8), np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    room = max(count, n_label)
    roots, queue, reached = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    todo, gone = np.empty(count, np.int32), np.empty(count, np.int32)
    bits_p, free, unseen = np.empty_like(bits_g), np.empty_like(bits_g), np.empty_like(bits_g)
    before = total = 0
    for t in range(n_thresholds - 1, -1, -1):
        end = ends[t]
        if end == before:
            if t + 1 < n_thresholds:
                matched[t], predicted[t] = matched[t + 1], predicted[t + 1]
            continue
        draw(pixels, before, end, alive, code, steps)
        before = end
        lean = alive
        if thinning:
            lean = alive.copy()
            thin(lean, code.copy(), pixels, end, steps, listed, todo, gone)
        bits_p[:] = 0
        n_free = n_predicted = 0
        for i in range(end):
            p = pixels[i]
            if lean[p]:
                n_predicted += 1
                _flip(bits_p, p)
                n_free += mate_p[p] < 0
            elif mate_p[p] >= 0:  # thinned differently than at the threshold above, so this match no longer exists
                mate_g[mate_p[p]] = -1
                mate_p[p] = -1
                total -= 1
        # search from the side with fewer free vertices; `free` are those of the other side
        if n_free <= n_label - total:
            n_free = _list_unmatched(bits_p, mate_p, roots)
            free[:] = bits_g
            for g in range(n_label):
                if mate_g[label[g]] >= 0:
                    _flip(free, label[g])
            sides = bits_g, mate_p, mate_g
        else:
            n_free = _list_unmatched(bits_g, mate_g, roots)
            free[:] = bits_p
            for g in range(n_label):
                if mate_g[label[g]] >= 0:
                    _flip(free, mate_g[label[g]])
            sides = bits_p, mate_g, mate_p
        total += _augment(roots, n_free, *sides, free, unseen, chord, width, parent, queue, reached)
        matched[t], predicted[t] = total, n_predicted
    return matched, predicted
