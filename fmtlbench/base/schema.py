"""Build frozen dataclasses from plain data; errors name the key, where it came from and the nearest valid key."""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union

from .errors import UsageError, nearest, short_repr
from .located import Located, locate

T = TypeVar("T")
MISSING = dataclasses.MISSING


def limits(
    default: Any = MISSING,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
    doc: str = "",
    role: Literal["neutral", "own", "incidental"] | None = None,
    since: Any = MISSING,
    moved: Mapping[str, Any] | None = None,
) -> Any:
    """Make a dataclass field with bounds: low ≤ value ≤ high or above < value < below.

    In a list or mapping, the bounds are for each value.

    Args:
        default: Of the field; a class makes a new one for each record.
        low: The least value.
        above: All values are above it.
        high: The greatest value.
        below: All values are below it.
        doc: What it means, for those who choose it.
        role: What a field of a config is for, if it does not decide numbers (`config/roles.py`).
        since: What held before the field was there: with this value a config is what it was without it.
        moved: Names of values below the field → the places that they had in earlier versions.
    """
    bounds = {"low": low, "above": above, "high": high, "below": below}
    metadata = {**bounds, "doc": doc, "role": role, "since": since, "moved": moved or {}}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def build(cls: type[T], data: Any, path: str = "") -> T:
    """Build dataclass `cls` from a mapping. Errors say where it was said, if it knows, and `path`: where it belongs."""
    return _build(cls, data, locate(data), path)


def _build(cls: type[T], data: Any, place: str, path: str) -> T:
    values = _build_given(cls, data, place, path)
    for field in dataclasses.fields(cls):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.init and needed and field.name not in values:
            raise _make_error(place, path, f"missing key {field.name!r}")
    return cls(**values)


def build_given(cls: type, data: Any, path: str = "") -> dict[str, Any]:
    """Return the checked fields of dataclass `cls` that a mapping gives; others may be missing."""
    return _build_given(cls, data, locate(data), path)


def _build_given(cls: type, data: Any, place: str, path: str) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise _make_error(place, path, f"expected a mapping with keys {_names(cls)}, got {short_repr(data)}")
    hints = typing.get_type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for key in data:
        if key not in known:
            there = _place_of(data, key, place)
            raise _make_error(there, _join(path, key), f"unknown key {short_repr(key)}; {nearest(str(key), known)}")
    values = {}
    for name, field in known.items():
        if name in data:
            here, there = _join(path, name), _place_of(data, name, place)
            values[name] = _convert(hints[name], data[name], there, here)
            _check_limits(field, values[name], data[name], there, here)
    return values


def build_mapping(data: Any, path: str) -> dict[str, Any]:
    """Return a mapping of any values; if `data` is none, the error says where it was said and expected."""
    return _convert(dict[str, Any], data, locate(data), path)


def number_type(hint: Any, path: str) -> type | None:
    """Return int or float for the numbers that a dataclass or other hint takes at a dotted path; None for others."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        found = {number_type(each, path) for each in args}
        return float if float in found else int if int in found else None
    if not path:
        return hint if hint in (int, float) else None
    first, _, rest = path.partition(".")
    if dataclasses.is_dataclass(hint):
        inner = typing.get_type_hints(hint).get(first)
        return None if inner is None else number_type(inner, rest)
    if origin is dict:
        return number_type(args[1], rest)
    if origin is tuple and first.isdecimal():
        kinds = [args[0]] * (int(first) + 1) if args[-1] is Ellipsis else list(args)
        return number_type(kinds[int(first)], rest) if int(first) < len(kinds) else None
    return None


def _convert(hint: Any, value: Any, place: str, path: str) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        kinds = [a for a in args if a is not type(None)]
        if len(kinds) > 1:  # one value, or one by name
            kinds = [a for a in kinds if (typing.get_origin(a) is dict) == isinstance(value, Mapping)]
        return _convert(kinds[0], value, place, path)
    if origin is Literal:
        if value in args and not (isinstance(value, bool) and True not in args):
            return value
        raise _make_error(place, path, f"expected one of {', '.join(map(str, args))}, got {short_repr(value)}")
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, place, path)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise _make_error(place, path, f"expected a list, got {short_repr(value)}")
        if args[-1] is Ellipsis:
            kinds = [args[0]] * len(value)
        elif len(args) == len(value):
            kinds = list(args)
        else:
            raise _make_error(place, path, f"expected {len(args)} values, got {short_repr(value)}")
        return tuple(
            _convert(k, v, _place_of(value, i, place), f"{path}.{i}") for i, (k, v) in enumerate(zip(kinds, value))
        )
    if origin is dict:
        if not isinstance(value, Mapping):
            raise _make_error(place, path, f"expected a mapping, got {short_repr(value)}")
        return {str(k): _convert(args[1], v, _place_of(value, k, place), _join(path, k)) for k, v in value.items()}
    return _convert_scalar(hint, value, place, path)


def _convert_scalar(hint: type, value: Any, place: str, path: str) -> Any:
    if hint not in (bool, int, float, str):
        raise _make_error(place, path, f"{hint} is not a type that a config can hold")
    good = {
        bool: lambda v: isinstance(v, bool),
        int: lambda v: isinstance(v, numbers.Integral) and not isinstance(v, bool),
        float: lambda v: isinstance(v, numbers.Real) and not isinstance(v, bool) and _is_finite(v),
        str: lambda v: isinstance(v, str),
    }[hint]
    if not good(value):
        words = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text"}[hint]
        raise _make_error(place, path, f"expected {words}, got {short_repr(value)}")
    return hint(value)


def _is_finite(value: numbers.Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number no float can hold
        return False


def _check_limits(field: dataclasses.Field, value: Any, given: Any, place: str, path: str) -> None:
    """Refuse a number that is out of a field's bounds, or one inside the value; `given` is what it was made of."""
    if isinstance(value, (dict, tuple)):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            inner = given[key] if isinstance(given, Located) else None
            _check_limits(field, member, inner, _place_of(given, key, place), _join(path, key))
        return
    if not isinstance(value, (int, float)):
        return
    low, above, high, below = (field.metadata.get(k) for k in ("low", "above", "high", "below"))
    if low is not None and value < low:
        raise _make_error(place, path, f"expected at least {low:g}, got {short_repr(value)}")
    if above is not None and value <= above:
        raise _make_error(place, path, f"expected more than {above:g}, got {short_repr(value)}")
    if high is not None and value > high:
        raise _make_error(place, path, f"expected at most {high:g}, got {short_repr(value)}")
    if below is not None and value >= below:
        raise _make_error(place, path, f"expected less than {below:g}, got {short_repr(value)}")


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _names(cls: type) -> str:
    return ", ".join(f.name for f in dataclasses.fields(cls) if f.init)


def _place_of(data: Any, key: Any, place: str) -> str:
    """Return where a value of mapping or list was said; `place` is where the whole was."""
    return data.places.get(str(key), place) if isinstance(data, Located) else place


def _make_error(place: str, path: str, message: str) -> UsageError:
    return UsageError(": ".join(part for part in (place, path, message) if part))


def plain(value: Any) -> Any:
    """Return a tree of dataclasses as dicts, lists and scalars."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
