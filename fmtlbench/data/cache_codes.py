"""Store floating-point arrays with few different values (such as normals from 8-bit pictures) as codes and a table."""

from __future__ import annotations

import numpy as np

from ..base.jit import entry


def encoded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return 8- or 16-bit codes and their table, or the array and None if it has too many different values."""
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint32)  # as bits, so that -0.0 and 0.0 stay different
    codes, table = np.empty(bits.shape, np.uint16), np.empty(1 << 16, np.uint32)
    count = number_values(bits, codes, table)
    if count < 0:
        return array, None
    codes = codes.astype(np.uint8) if count <= 256 else codes
    return codes.reshape(array.shape), table[:count].view(np.float32)


def decoded(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the values that the codes stand for."""
    return table.take(codes)


@entry
def number_values(bits, codes, table):
    """Number the different values in order of appearance; return their count, or -1 if `table` is too short.

    Uses a hash table with open addressing, because sorting a million numbers takes longer than decoding the image.
    """
    slots = np.full(4 * len(table), -1, np.int32)
    mask = np.uint32(len(slots) - 1)
    count = 0
    for i in range(len(bits)):
        slot = (bits[i] * np.uint32(2654435761) >> np.uint32(8)) & mask
        while slots[slot] >= 0 and table[slots[slot]] != bits[i]:
            slot = (slot + np.uint32(1)) & mask
        if slots[slot] < 0:
            if count == len(table):
                return -1
            table[count] = bits[i]
            slots[slot] = count
            count += 1
        codes[i] = slots[slot]
    return count
