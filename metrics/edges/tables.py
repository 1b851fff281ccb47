"""Constants of the kernels: the deletion rules of Guo–Hall thinning (bwmorph 'thin'), and bit positions."""

from __future__ import annotations

import numpy as np


def _make_thinning_tables() -> np.ndarray:
    """Return [2, 256] uint8: which neighbourhoods lose their centre in the first and in the second sub-iteration.

    Bit i of the neighbourhood is x_{i+1} of Guo and Hall: E, NE, N, NW, W, SW, S, SE.
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
