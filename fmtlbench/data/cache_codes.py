"""Floating-point numbers that came from few codes, such as normals from 8-bit pictures, stored as codes again."""

from __future__ import annotations

import numpy as np

from ..jit import entry


def encoded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Codes of 8 or 16 bits and their table; the array itself and None if it has too many different values."""
    bits = np.ascontiguousarray(array).reshape(-1).view(np.uint32)  # bits: -0.0 and 0.0 are told apart
    codes, table = np.empty(bits.shape, np.uint16), np.empty(1 << 16, np.uint32)
    count = number_values(bits, codes, table)
    if count < 0:
        return array, None
    codes = codes.astype(np.uint8) if count <= 256 else codes
    return codes.reshape(array.shape), table[:count].view(np.float32)


def decoded(codes: np.ndarray, table: np.ndarray) -> np.ndarray:
    values = np.empty(codes.shape, table.dtype)
    look_up(codes.reshape(-1), table, values.reshape(-1))
    return values


@entry
def look_up(codes, table, out):
    for i in range(len(codes)):
        out[i] = table[codes[i]]


@entry
def number_values(bits, codes, table):
    """Number the different values in order of appearance; how many there are, or -1 if `table` is too short.

    A hash table with open addressing: sorting a million numbers would take longer than decoding the image.
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
