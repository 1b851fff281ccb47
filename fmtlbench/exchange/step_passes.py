"""Compiled server steps that are more than a combination of rows: an optimiser's step, and the election of signs.

Loops are written out for the number of rows at hand, as in `kernels`, for the same reason; and like these they are
imported where they are used, so numba loads only then.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from torch import Tensor

from .row_passes import CHUNK, FREE_ORDER, Kernel, _compile, _flat, _for_chunks, _sum, _views

CONSTANTS = 6
# From the mean start w and the update u: the new moments k0, k1 from the old ones o0[c], o1[c], and the new row y.
RULES = {
    "none": ["y = w + u"],
    "momentum": ["k0 = c1 * o0[c] + u", "y = w + c0 * k0"],
    "drift": ["k0 = o0[c] + c0 * u", "y = w + (u + k0)"],
    "adam": [
        "k0 = c1 * o0[c] + c2 * u",
        "k1 = c3 * o1[c] + c4 * (u * u)",
        "y = w + c0 * k0 / (sqrt(k1) + c5)",
    ],
    "yogi": [
        "k0 = c1 * o0[c] + c2 * u",
        "gap, square = o1[c] - u * u, c4 * (u * u)",
        "k1 = o1[c] - (square if gap > zero else (-square if gap < zero else zero))",
        "y = w + c0 * k0 / (sqrt(k1) + c5)",
    ],
}
# Whether a row points where the elected vector e does; where e is 0, no row points anywhere.
AGREES = "(t{i} > zero) == (e > zero) and t{i} != zero"


def move_mean(
    after: Tensor,
    before: Tensor,
    shares: np.ndarray,
    coefficients: np.ndarray,
    new: Tensor,
    rule: str = "none",
    constants: tuple[float, ...] = (0.0,) * CONSTANTS,
    old: Tensor | None = None,
    moments: Tensor | None = None,
) -> None:
    """Write what `common_rows` returns: the new row to `new`, [d], and new moments to `moments`, [S, d]."""
    kernel = _move_kernel(len(after), rule, 0 if moments is None else len(moments))
    arrays = [*_flat(after), *_flat(before), *_flat(old), *_flat(moments), *_flat(new[None])]
    numbers = [np.asarray(values, dtype=np.float32) for values in (shares, coefficients, constants)]
    _for_chunks(after.shape[1], lambda k, start, stop: kernel(*arrays, *numbers, start, stop))


def elect(after: Tensor, base: Tensor, elected: Tensor) -> np.ndarray:
    """Write the elected vector to `elected`, [d]; return the sums that `signs.elect` returns. [2, R]."""
    kernel = _election_kernel(len(after))
    arrays = [*_flat(after), *_flat(base[None]), *_flat(elected[None])]
    sums = np.zeros((-(-after.shape[1] // CHUNK), 2, len(after)))
    _for_chunks(after.shape[1], lambda k, start, stop: kernel(*arrays, start, stop, sums[k]))
    total: np.ndarray = sums.sum(0)
    return total


def rebuild(after: Tensor, base: Tensor, elected: Tensor, factors: np.ndarray, new: Tensor) -> None:
    """Write what `signs.rebuild` returns to `new`, [R, d]."""
    kernel = _rebuilding_kernel(len(after))
    arrays = [*_flat(after), *_flat(base[None]), *_flat(elected[None]), *_flat(new)]
    numbers = np.asarray(factors, dtype=np.float32)
    _for_chunks(after.shape[1], lambda k, start, stop: kernel(*arrays, numbers, start, stop))


@cache
def _move_kernel(rows: int, rule: str, kept: int) -> Kernel:
    body = [*_views("a", "after", rows), *_views("b", "before", rows), *_views("n", "new", 1)]
    body += [*_views("o", "old", kept), *_views("m", "moments", kept), "zero = float32(0)"]
    body += [f"s{i} = shares[{i}]" for i in range(rows)] + [f"f{i} = coefficients[{i}]" for i in range(rows)]
    body += [f"c{i} = constants[{i}]" for i in range(CONSTANTS)]
    loop = [f"x{i} = b{i}[c]" for i in range(rows)]
    # From the first row on, so that equal rows are their own mean to the last bit.
    loop += ["w = x0" + "".join(f" + s{i} * (x{i} - x0)" for i in range(1, rows))]
    loop += ["u = " + _sum(f"f{i} * (a{i}[c] - x{i})" for i in range(rows))]
    loop += [*RULES[rule], *(f"m{i}[c] = k{i}" for i in range(kept)), "n0[c] = y"]
    body += ["for c in range(stop - start):", *(f"    {line}" for line in loop)]
    arguments = "after, after_step, before, before_step, old, old_step, moments, moments_step, new, new_step"
    return _compile(f"move_mean_{rows}_{rule}", f"{arguments}, shares, coefficients, constants, start, stop", body)


@cache
def _election_kernel(rows: int) -> Kernel:
    body = [*_views("a", "after", rows), *_views("b", "base", 1), *_views("n", "elected", 1), "zero = float32(0)"]
    body += [f"own{i} = agreed{i} = 0.0" for i in range(rows)]
    loop = [f"t{i} = a{i}[c] - b0[c]" for i in range(rows)]
    loop += ["total = " + _sum(f"float64(t{i})" for i in range(rows)), "high = low = zero"]
    loop += [f"high, low = max(high, t{i}), min(low, t{i})" for i in range(rows)]
    loop += ["e = high if total > 0 else low", "n0[c] = e", "size = float64(abs(e))"]
    loop += [f"own{i} += float64(abs(t{i}))" for i in range(rows)]
    loop += [f"agreed{i} += size if {AGREES.format(i=i)} else 0.0" for i in range(rows)]
    body += ["for c in range(stop - start):", *(f"    {line}" for line in loop)]
    body += [f"sums[0, {i}], sums[1, {i}] = own{i}, agreed{i}" for i in range(rows)]
    arguments = "after, after_step, base, base_step, elected, elected_step, start, stop, sums"
    return _compile(f"elect_{rows}", arguments, body, fastmath=FREE_ORDER)


@cache
def _rebuilding_kernel(rows: int) -> Kernel:
    body = [*_views("a", "after", rows), *_views("b", "base", 1), *_views("u", "elected", 1), *_views("n", "new", rows)]
    body += ["zero = float32(0)", *(f"f{i} = factors[{i}]" for i in range(rows))]
    loop = ["x, e = b0[c], u0[c]", *(f"t{i} = a{i}[c] - x" for i in range(rows))]
    loop += [f"n{i}[c] = x + (f{i} * e if {AGREES.format(i=i)} else zero)" for i in range(rows)]
    body += ["for c in range(stop - start):", *(f"    {line}" for line in loop)]
    arguments = "after, after_step, base, base_step, elected, elected_step, new, new_step, factors, start, stop"
    return _compile(f"rebuild_{rows}", arguments, body)
