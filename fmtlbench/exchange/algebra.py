"""Server steps as linear algebra on rows: a Gram matrix decides the coefficients, one product applies them.

A few rows of float32 in main memory go to compiled loops (`kernels`), which are as fast as memory is. More rows are a
matter of arithmetic, which torch does, as it does everything on other devices: in blocks of columns that fit a cache,
so that nothing of the size of the rows exists besides the result. Both are imported where they are used: listing the
methods loads neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from . import Round, Rows

if TYPE_CHECKING:
    from torch import Tensor

Own = Literal["before", "after"]  # which of its own values a row is added to

COMPILED_ROWS = 8  # up to so many rows go to compiled loops; beyond, their sums do not fit registers
COMPILED_SIZE = 100  # and matrices of up to so many coefficients
BLOCK = 1 << 20  # elements that torch visits at once, over all rows
SLICE = 1 << 11  # columns that torch sums in single precision; beyond, in double
NEGLIGIBLE = 1e-12  # a row this much shorter than the longest has no direction worth following


def encoders_of(rnd: Round) -> Rows:
    """Return the encoders' rows, for methods whose encoders travel in every round."""
    if rnd.encoder is None:
        raise ValueError(f"encoders did not travel in round {rnd.index + 1}")
    return rnd.encoder


def rows_by_kind(rnd: Round) -> Iterator[tuple[str, Rows]]:
    """Yield the kinds that travelled, each with its rows."""
    for kind, rows in (("encoder", rnd.encoder), ("decoder", rnd.decoder)):
        if rows is not None:
            yield kind, rows


def gram(after: Tensor, before: Tensor | None = None) -> np.ndarray:
    """Return the inner products of the rows of `after` (minus `before`), summed in double precision. [R, R] float64."""
    return _inner_products(after, before)


def gram_and_products(after: Tensor, before: Tensor, probe: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return the inner products of the rows of `after` − `before` with each other, [R, R], and with `probe`, [R]."""
    total = _inner_products(after, before, probe)
    return total[:-1, :-1], total[:-1, -1]


def centred_gram(after: Tensor) -> np.ndarray:
    """Return the inner products of the rows minus their mean, in double precision: near rows stay apart. [R, R]."""
    return _inner_products(after, centred=True)


def mean(after: Tensor) -> Tensor:
    """Return the mean of the rows. [d]."""
    import torch

    new = empty_like(after[0])
    if not _is_for_kernels(after):
        return torch.mean(after, 0, out=new)
    from .row_passes import mean as compiled

    compiled(after, new)
    return new


def mix(coefficients: np.ndarray, after: Tensor) -> Tensor:
    """Return `coefficients` @ `after`: every row a combination of all rows. [R, d]."""
    return combine(coefficients, after)


def move(rows: Rows, coefficients: np.ndarray, base: np.ndarray | None = None) -> Tensor:
    """Return `base` @ before + `coefficients` @ Δ, where no base means each row's own. [R, d].

    Coefficients are a matrix [R, R], or a vector [R] where all rows move alike.
    """
    if base is None:
        return combine(np.atleast_2d(coefficients), rows.after, rows.before, own="before")
    return combine(np.hstack([coefficients, base]), rows.after, rows.before)


def combine(
    matrix: np.ndarray,
    after: Tensor,
    before: Tensor | None = None,
    own: Own | None = None,
) -> Tensor:
    """Return `matrix` @ `after`, plus each row's own `before` or `after` if asked: [R, d], in one pass.

    With `before`, the matrix applies to Δ = after − before instead; [R, 2R] has coefficients of Δ, then of before.
    A matrix with a single row moves all rows alike.
    """
    new = empty_like(after)
    _combine(matrix, after, before, own, new, None)
    return new


def combine_with_extra(
    matrix: np.ndarray, after: Tensor, before: Tensor | None = None, own: Own | None = None
) -> tuple[Tensor, Tensor]:
    """Return what `combine` does with all but the last row of `matrix`, [R, d], and that row's own result, [d].

    Both come out of one pass; nothing of `own` is added to the extra row.
    """
    new, extra = empty_like(after), empty_like(after[0])
    _combine(matrix, after, before, own, new, extra)
    return new, extra


def _combine(
    matrix: np.ndarray, after: Tensor, before: Tensor | None, own: Own | None, new: Tensor, extra: Tensor | None
) -> None:
    """Write what `combine` and `combine_with_extra` return to `new` and `extra`."""
    if matrix.size <= COMPILED_SIZE and _is_for_kernels(after, before):
        from .row_passes import combine as compiled

        compiled(matrix, after, before, own, new, extra)
        return
    weights = after.new_tensor(matrix)
    base = {"before": before, "after": after, None: None}[own]
    for columns, x in _sources(after, before):
        y = weights[:, : len(x)] @ x
        if weights.shape[1] > len(x):
            assert before is not None, "a matrix of 2R columns has coefficients of `before`"
            y += weights[:, len(x) :] @ before[:, columns]
        if extra is not None:
            extra[columns] = y[-1]
            y = y[:-1]
        new[:, columns] = y if base is None else base[:, columns] + y


def empty_like(rows: Tensor) -> Tensor:
    """Return memory for a result. Numpy asks the system for huge pages, which makes the first write much cheaper."""
    import torch

    if rows.device.type != "cpu" or rows.dtype != torch.float32:
        return torch.empty_like(rows)
    return torch.from_numpy(np.empty(rows.shape, dtype=np.float32))


def has_direction(gram: np.ndarray) -> np.ndarray:
    """Say which rows are long enough to have a direction. [R] bool."""
    lengths = np.sqrt(np.diag(gram).clip(0))
    return lengths > max(NEGLIGIBLE * lengths.max(), 1e-36)  # 1 / length must fit a float32


def cosines(gram: np.ndarray) -> np.ndarray:
    """Return the cosine of every pair of rows; 0 with a row without direction, 1 of each row with itself. [R, R]."""
    alive = has_direction(gram)
    inverse = np.zeros(len(gram))
    inverse[alive] = 1 / np.sqrt(np.diag(gram)[alive])
    cosine = np.clip(gram * inverse * inverse[:, None], -1, 1)
    np.fill_diagonal(cosine, 1)
    return cosine


def squared_distances(centred: np.ndarray) -> np.ndarray:
    """Return ‖row_i − row_j‖² from a (centred) Gram matrix. [R, R]."""
    squares = np.diag(centred)
    distances = np.maximum(squares[:, None] + squares - 2 * centred, 0)
    np.fill_diagonal(distances, 0)
    return distances


def _is_for_kernels(after: Tensor, *others: Tensor | None) -> bool:
    import torch

    tensors = [after, *(t for t in others if t is not None)]
    return 1 <= len(after) <= COMPILED_ROWS and all(
        t.device.type == "cpu" and t.dtype == torch.float32 and (t.stride(-1) == 1 or t.shape[-1] == 1) for t in tensors
    )


def _inner_products(
    after: Tensor, before: Tensor | None = None, probe: Tensor | None = None, centred: bool = False
) -> np.ndarray:
    """Return the products of all pairs of rows of `after`, less `before` or their mean, and of `probe`. [R', R']."""
    if _is_for_kernels(after, before, probe):
        from .row_passes import inner_products

        return inner_products(after, before, probe, centred)
    size = len(after) + (probe is not None)
    total = np.zeros((size, size))
    for columns, x in _sources(after, before, spare=probe is not None, wide=centred):
        if centred:
            x -= x.mean(0)
        if probe is not None:
            x[-1] = probe[columns]
        total += _inner(x)
    return total


def _sources(
    after: Tensor, before: Tensor | None, spare: bool = False, wide: bool = False
) -> Iterator[tuple[slice, Tensor]]:
    """Yield `after`, or Δ, by blocks of columns: (the columns, [R (+ a spare row), width]); the memory is reused."""
    import torch

    rows, width = after.shape
    step = max(min(BLOCK // rows, width), 1)
    wide = wide and after.device.type != "mps"  # which has no double precision
    scratch = after.new_empty(rows + spare, step, dtype=torch.float64 if wide else after.dtype)
    for start in range(0, width, step):
        columns = slice(start, min(start + step, width))
        x = scratch[:, : columns.stop - start]
        if before is None:
            x[:rows] = after[:, columns]
        else:
            torch.sub(after[:, columns], before[:, columns], out=x[:rows])
        yield columns, x


def _inner(x: Tensor) -> np.ndarray:
    """Return x xᵀ as a batch of slim products: a single one would neither use all cores nor sum as exactly. [R, R]."""
    count = x.shape[1] // SLICE
    rest = x[:, count * SLICE :]
    total = (rest @ rest.T).cpu().numpy().astype(np.float64)
    if count:
        slices = x[:, : count * SLICE].unflatten(1, (count, SLICE)).transpose(0, 1)
        total += slices.bmm(slices.transpose(1, 2)).cpu().numpy().sum(0, dtype=np.float64)
    return total
