"""Check what a checkpoint holds before a weighting takes it over."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def check_keys(name: str, state: dict[str, Any], expected: Collection[str]) -> None:
    """Raise ValueError unless the state of weighting `name` has exactly these keys."""
    if set(state) != set(expected):
        raise ValueError(f"{name} keeps {sorted(expected)}, but a checkpoint holds {sorted(state)}")


def check_tensor(name: str, key: str, value: Any, shape: tuple[int | None, ...]) -> Tensor:
    """Return `value` if it is a tensor of this shape, where None stands for any length; else raise ValueError."""
    found = getattr(value, "shape", None)
    if found is None or len(found) != len(shape) or any(want not in (None, n) for n, want in zip(found, shape)):
        expected = " × ".join("any" if want is None else str(want) for want in shape) or "a single number"
        got = type(value).__name__ if found is None else " × ".join(map(str, found)) or "a single number"
        raise ValueError(f"{name}: expected a tensor {expected} as {key!r}, a checkpoint holds {got}")
    return value


def check_numbers(name: str, key: str, value: Any, count: int) -> list[float]:
    """Return `value` if it is a list of so many numbers; else raise ValueError."""
    numbers = isinstance(value, (list, tuple)) and all(type(each) in (int, float) for each in value)
    if not numbers or len(value) != count:
        raise ValueError(f"{name}: expected {count} numbers as {key!r}, a checkpoint holds {value!r}")
    return [float(each) for each in value]


def check_count(name: str, key: str, value: Any) -> int:
    """Return `value` if it is a whole number from 0 on; else raise ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{name}: expected a count as {key!r}, a checkpoint holds {value!r}")
    return value
