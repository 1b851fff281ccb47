"""Server steps on a few float32 rows in main memory, compiled; imported where they are used, so numba loads only then.

With few rows a step takes as long as memory needs to deliver them, if one loop reads all rows side by side and fetches
each value once. Numba does not unroll loops over rows into registers, so the loop is written out as text for the
number of rows at hand. Sums are in double and over fixed chunks of columns: neither the number of threads nor the
processor's vector width shows beyond the last bits of a double. Combinations are single precision from left to right,
the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..base.jit import entry

Kernel = Callable[..., None]

CHUNK = 1 << 18  # columns that a thread takes at once; sums of chunks are added in order
NOTHING = np.empty(0, dtype=np.float32)
# Sums of doubles may be taken in any order, so that they fit vector registers; NaN and infinity stay what they are.
FREE_ORDER = {"reassoc", "contract"}


def inner_products(after: Tensor, before: Tensor | None, probe: Tensor | None, centred: bool) -> np.ndarray:
    """Return the products of all pairs of rows: `after`, less `before` or less their mean, and the probe. [R', R']."""
    rows, width = after.shape
    kernel = _gram_kernel(rows, before is not None, probe is not None, centred)
    arrays = [*_flat(after), *_flat(before), *_flat(None if probe is None else probe[None])]
    size = rows + (probe is not None)
    sums = np.zeros((-(-width // CHUNK), size, size))
    _for_chunks(width, lambda k, start, stop: kernel(*arrays, start, stop, sums[k]))
    upper = sums.sum(0)
    return np.triu(upper) + np.triu(upper, 1).T


def combine(
    matrix: np.ndarray, after: Tensor, before: Tensor | None, own: str | None, new: Tensor, extra: Tensor | None
) -> None:
    """Write what `row_algebra.combine` returns to `new` and `extra`."""
    rows, width = after.shape
    kernel = _combination_kernel(rows, matrix.shape, before is not None, own, len(new), extra is not None)
    arrays = [*_flat(after), *_flat(before), *_flat(new), *_flat(None if extra is None else extra[None])]
    matrix = np.ascontiguousarray(matrix, dtype=np.float32)
    _for_chunks(width, lambda k, start, stop: kernel(matrix, *arrays, start, stop))


def mean(after: Tensor, new: Tensor) -> None:
    """Write the mean of the rows to `new`, [d]: their sum in order, divided."""
    rows, width = after.shape
    kernel, count = _mean_kernel(rows), np.float32(rows)
    arrays = [*_flat(after), *_flat(new[None])]
    _for_chunks(width, lambda k, start, stop: kernel(*arrays, count, start, stop))


def _flat(rows: Tensor | None) -> tuple[np.ndarray, int]:
    """Return (the memory from the first to the last value, the distance of two rows): one type for any cut of rows."""
    if rows is None:
        return NOTHING, 0
    count, width = rows.shape
    step = rows.stride(0) if count > 1 else 0
    size = (count - 1) * step + width if width else 0
    return rows.detach().as_strided((size,), (1,)).numpy(), step


def _for_chunks(width: int, work: Callable[[int, int, int], None]) -> None:
    """Call work(number, start, stop) for each chunk of columns, on as many threads as torch uses."""
    chunks = [(k, start, min(start + CHUNK, width)) for k, start in enumerate(range(0, width, CHUNK))]
    threads = min(torch.get_num_threads(), len(chunks))
    if threads <= 1:
        for chunk in chunks:
            work(*chunk)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda chunk: work(*chunk), chunks):
            pass


@cache
def _gram_kernel(rows: int, differences: bool, probe: bool, centred: bool) -> Kernel:
    name = f"gram_{rows}" + "_differences" * differences + "_probe" * probe + "_centred" * centred
    size = rows + probe
    pairs = [(i, j) for i in range(size) for j in range(i, size)]
    body = [*_views("a", "after", rows), *_views("b", "before", rows * differences), *_views("p", "probe", probe)]
    body += [f"s{i}_{j} = 0.0" for i, j in pairs]
    body += ["for c in range(stop - start):"]
    loop = [f"x{i} = float64(a{i}[c])" + f" - float64(b{i}[c])" * differences for i in range(rows)]
    loop += [f"x{rows} = float64(p0[c])"] * probe
    if centred:
        loop += [f"mean = ({_sum(f'x{i}' for i in range(rows))}) / {rows}"]
        loop += [f"x{i} -= mean" for i in range(rows)]
    loop += [f"s{i}_{j} += x{i} * x{j}" for i, j in pairs]
    body += [f"    {line}" for line in loop]
    body += [f"total[{i}, {j}] = s{i}_{j}" for i, j in pairs]
    arguments = "after, after_step, before, before_step, probe, probe_step, start, stop, total"
    return _compile(name, arguments, body, fastmath=FREE_ORDER)


@cache
def _combination_kernel(
    rows: int, shape: tuple[int, int], differences: bool, own: str | None, outputs: int, extra: bool
) -> Kernel:
    name = f"combine_{rows}_{shape[0]}x{shape[1]}_{own}_{outputs}" + "_differences" * differences + "_extra" * extra
    body = [*_views("a", "after", rows), *_views("b", "before", rows * differences)]
    body += [*_views("n", "new", outputs), *_views("e", "extra", extra)]
    body += [f"m{i}_{j} = matrix[{i}, {j}]" for i in range(shape[0]) for j in range(shape[1])]
    body += ["for c in range(stop - start):"]
    loop = [f"after{i} = a{i}[c]" for i in range(rows)]
    loop += [f"before{i} = b{i}[c]" for i in range(rows * differences)]
    loop += [f"x{i} = after{i}" + f" - before{i}" * differences for i in range(rows)]
    sources = [f"x{i}" for i in range(rows)] + [f"before{i}" for i in range(shape[1] - rows)]
    loop += [f"y{i} = {_sum(f'm{i}_{j} * {x}' for j, x in enumerate(sources))}" for i in range(shape[0])]
    alike = shape[0] - extra == 1
    loop += [f"n{i}[c] = " + (f"{own}{i} + " if own else "") + f"y{0 if alike else i}" for i in range(outputs)]
    loop += [f"e0[c] = y{shape[0] - 1}"] * extra
    body += [f"    {line}" for line in loop]
    arguments = "matrix, after, after_step, before, before_step, new, new_step, extra, extra_step, start, stop"
    return _compile(name, arguments, body)


@cache
def _mean_kernel(rows: int) -> Kernel:
    body = [*_views("a", "after", rows), *_views("n", "new", 1), "for c in range(stop - start):"]
    body += [f"    n0[c] = ({_sum(f'a{i}[c]' for i in range(rows))}) / count"]
    return _compile(f"mean_{rows}", "after, after_step, new, new_step, count, start, stop", body)


def _views(prefix: str, array: str, count: int) -> Iterator[str]:
    """Name the columns start:stop of each row."""
    for i in range(count):
        yield f"{prefix}{i} = {array}[{i} * {array}_step + start : {i} * {array}_step + stop]"


def _sum(terms: Iterator[str]) -> str:
    return " + ".join(terms)


def _compile(name: str, arguments: str, body: list[str], **options: Any) -> Kernel:
    """Compile a function of this name, arguments and lines."""
    text = "\n    ".join([f"def {name}({arguments}):", *body]) + "\n"
    known = {"float32": np.float32, "float64": np.float64, "sqrt": np.sqrt}
    space: dict[str, Any] = {**known, "__name__": __name__}
    # Under this file's name, beside which numba keeps the compiled code; the text is part of what it compares.
    exec(compile(text, __file__, "exec"), space)
    return entry(space[name], nogil=True, **options)
