"""Server steps as linear algebra on rows: a Gram matrix decides the coefficients, one product applies them.

Columns are visited in blocks that fit a cache, so nothing of the size of the rows exists besides the result. Torch
is imported where it is used: listing the methods does not load it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..exchange import Round, Rows

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 1 << 20  # elements visited at once, over all rows
SLICE = 1 << 11  # columns summed in single precision; beyond, in double
NEGLIGIBLE = 1e-12  # a row this much shorter than the longest has no direction worth following


def parts(rnd: Round) -> Iterator[tuple[str, Rows]]:
    """The kinds that came, each with its rows."""
    for kind, rows in (("encoder", rnd.encoder), ("decoder", rnd.decoder)):
        if rows is not None:
            yield kind, rows


def gram(after: Tensor, before: Tensor | None = None) -> np.ndarray:
    """Inner products of the rows of `after` (minus `before`), summed in double precision. [R, R] float64."""
    total = np.zeros((len(after), len(after)))
    scratch = _scratch(after)
    for a, b in blocks(after):
        x = after[:, a:b] if before is None else _difference(after, before, a, b, scratch)
        total += inner(x)
    return total


def centred_gram(after: Tensor) -> np.ndarray:
    """Inner products of the rows minus their mean, in double precision: differences of near rows survive. [R, R]."""
    total = np.zeros((len(after), len(after)))
    scratch = _scratch(after, wide=after.device.type != "mps")  # which has no double precision
    for a, b in blocks(after):
        x = scratch[:, : b - a].copy_(after[:, a:b])
        x -= x.mean(0)
        total += inner(x)
    return total


def mix(coefficients: np.ndarray, after: Tensor) -> Tensor:
    """`coefficients` @ `after`: every row a combination of all rows. [R, d]."""
    coefficients = after.new_tensor(coefficients)
    new = empty_like(after)
    for a, b in blocks(after):
        new[:, a:b].addmm_(coefficients, after[:, a:b], beta=0)
    return new


def move(rows: Rows, coefficients: np.ndarray, base: np.ndarray | None = None) -> Tensor:
    """`base` @ before + `coefficients` @ Δ, where no base means each row's own. [R, d].

    Coefficients are a matrix [R, R], or a vector [R] where all rows move alike.
    """
    import torch

    after, before = rows.after, rows.before
    coefficients = after.new_tensor(coefficients)
    base = None if base is None else after.new_tensor(base)
    new = empty_like(after)
    scratch = _scratch(after)
    for a, b in blocks(after):
        delta = _difference(after, before, a, b, scratch)
        start = before[:, a:b] if base is None else base @ before[:, a:b]
        if coefficients.ndim == 1:
            torch.add(start, coefficients @ delta, out=new[:, a:b])
        else:
            torch.addmm(start, coefficients, delta, out=new[:, a:b])
    return new


def empty_like(rows: Tensor) -> Tensor:
    """Memory for a result. Numpy asks the system for huge pages, which makes the first write much cheaper."""
    import torch

    if rows.device.type != "cpu" or rows.dtype != torch.float32:
        return torch.empty_like(rows)
    return torch.from_numpy(np.empty(rows.shape, dtype=np.float32))


def directed(gram: np.ndarray) -> np.ndarray:
    """Which rows are long enough to have a direction. [R] bool."""
    lengths = np.sqrt(np.diag(gram).clip(0))
    return lengths > max(NEGLIGIBLE * lengths.max(), 1e-36)  # 1 / length must fit a float32


def cosines(gram: np.ndarray) -> np.ndarray:
    """Of every pair of rows; 0 with a row that has no direction, 1 of each row with itself. [R, R]."""
    alive = directed(gram)
    inverse = np.zeros(len(gram))
    inverse[alive] = 1 / np.sqrt(np.diag(gram)[alive])
    cosine = np.clip(gram * inverse * inverse[:, None], -1, 1)
    np.fill_diagonal(cosine, 1)
    return cosine


def squared_distances(centred: np.ndarray) -> np.ndarray:
    """‖row_i − row_j‖² from a (centred) Gram matrix. [R, R]."""
    squares = np.diag(centred)
    distances = np.maximum(squares[:, None] + squares - 2 * centred, 0)
    np.fill_diagonal(distances, 0)
    return distances


def blocks(rows: Tensor) -> Iterator[tuple[int, int]]:
    width, step = rows.shape[1], _columns(rows)
    for start in range(0, width, step):
        yield start, min(start + step, width)


def _columns(rows: Tensor) -> int:
    return max(min(BLOCK // len(rows), rows.shape[1]), 1)


def _scratch(rows: Tensor, wide: bool = False) -> Tensor:
    scratch = rows.new_empty(len(rows), _columns(rows))
    return scratch.double() if wide else scratch


def inner(x: Tensor) -> np.ndarray:
    """X xᵀ as a batch of slim products: a single one would neither use all cores nor sum as exactly. [R, R]."""
    count = x.shape[1] // SLICE
    rest = x[:, count * SLICE :]
    total = (rest @ rest.T).cpu().numpy().astype(np.float64)
    if count:
        slices = x[:, : count * SLICE].unflatten(1, (count, SLICE)).transpose(0, 1)
        total += slices.bmm(slices.transpose(1, 2)).cpu().numpy().sum(0, dtype=np.float64)
    return total


def _difference(after: Tensor, before: Tensor, a: int, b: int, scratch: Tensor) -> Tensor:
    import torch

    return torch.sub(after[:, a:b], before[:, a:b], out=scratch[:, : b - a])
