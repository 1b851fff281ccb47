"""One common row from many: the mean of where they started, moved by a combination of their updates.

Up to `COMPILED_ROWS` rows this is one compiled pass over memory; else torch does it in blocks of columns. Equal starts
are their own mean to the last bit, whether they are one row in memory or several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .algebra import _is_for_kernels, _sources, empty_like

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Rule:
    """How a server's optimiser makes a step of the mean update.

    Momentum: m ← β₁ m + u, step η m. Adam: m ← β₁ m + (1 − β₁) u, v ← β₂ v + (1 − β₂) u², step η m / (√v + τ). Yogi
    has v ← v − (1 − β₂) u² sign(v − u²) instead. Drift: m ← m + η u, step u + m. m starts at 0, v at τ².
    """

    name: Literal["momentum", "adam", "yogi", "drift"]
    lr: float
    beta1: float = 0.0
    beta2: float = 0.0
    tau: float = 0.0

    @property
    def starts(self) -> tuple[float, ...]:
        """Return the first value of each moment."""
        return (0.0, self.tau**2) if self.name in ("adam", "yogi") else (0.0,)

    @property
    def constants(self) -> tuple[float, ...]:
        """Return the numbers that the compiled rule takes."""
        return (self.lr, self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2, self.tau)


def move_mean(after: Tensor, before: Tensor, shares: np.ndarray, coefficients: np.ndarray) -> Tensor:
    """Return `shares` @ before + `coefficients` @ Δ; the shares add up to one. [d]."""
    new = empty_like(after[0])
    if _is_for_kernels(after, before):
        from .step_passes import move_mean as compiled

        compiled(after, before, shares, coefficients, new)
        return new
    for columns, start, update in _starts_and_updates(after, before, shares, coefficients):
        new[columns] = start + update
    return new


def weighted_mean(after: Tensor, shares: np.ndarray) -> Tensor:
    """Return `shares` @ after; the shares add up to one. [d]."""
    return move_mean(after, after, shares, np.zeros(len(shares)))


def optimize_mean(
    after: Tensor, before: Tensor, shares: np.ndarray, rule: Rule, moments: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return `shares` @ before, moved by the rule's step for `shares` @ Δ, [d], and the rule's new moments, [S, d].

    Args:
        after: The rows at the end of the round. [R, d].
        before: The rows at its start. [R, d].
        shares: What each row counts; they add up to one. [R].
        rule: How the step is made.
        moments: As returned in the last round; None in the first.
    """
    if moments is None:
        moments = after.new_tensor(rule.starts)[:, None].repeat(1, after.shape[1])
    new, renewed = empty_like(after[0]), empty_like(moments)
    if _is_for_kernels(after, before, moments):
        from .step_passes import move_mean as compiled

        compiled(after, before, shares, shares, new, rule.name, rule.constants, moments, renewed)
        return new, renewed
    for columns, start, update in _starts_and_updates(after, before, shares, shares):
        new[columns] = start + _make_step(rule, update, moments[:, columns], renewed[:, columns])
    return new, renewed


def _make_step(rule: Rule, update: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Write the new moments to `new`; return the step."""
    if rule.name == "momentum":
        new[0] = rule.beta1 * old[0] + update
        return rule.lr * new[0]
    if rule.name == "drift":
        new[0] = old[0] + rule.lr * update
        return update + new[0]
    square = update * update
    new[0] = rule.beta1 * old[0] + (1 - rule.beta1) * update
    if rule.name == "adam":
        new[1] = rule.beta2 * old[1] + (1 - rule.beta2) * square
    else:
        new[1] = old[1] - (1 - rule.beta2) * square * (old[1] - square).sign()
    return rule.lr * new[0] / (new[1].sqrt() + rule.tau)


def _starts_and_updates(
    after: Tensor, before: Tensor, shares: np.ndarray, coefficients: np.ndarray
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield `shares` @ before and `coefficients` @ Δ by blocks of columns."""
    first = before[:1].expand_as(before)
    weights, factors = before.new_tensor(shares), after.new_tensor(coefficients)
    for (columns, updates), (_, distances) in zip(_sources(after, before), _sources(before, first)):
        yield columns, first[0, columns] + weights @ distances, factors @ updates
