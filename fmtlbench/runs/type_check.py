"""Check that values read from JSON are of a type: scalars, lists, mappings and typed dictionaries.

The question is asked of many values at once, column by column, because thousands of summaries are read for a table;
only when the answer is no does a second, slow look find the first value that is wrong.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, Union

Fits = Callable[[Sequence[Any]], bool]
# Of a column of dictionaries: how many keys each has, all keys, the types of all values.
Signature = tuple[tuple[int, ...], tuple[str, ...], tuple[type, ...]]
MOST_KNOWN = 256  # signatures that are remembered of a type
NEW = {""}  # stands for a signature that was not seen before
_SCALARS: dict[Any, set[type]] = {
    str: {str},
    int: {int},
    float: {float, int},
    bool: {bool},
    types.NoneType: {types.NoneType},
}
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", types.NoneType: "null"}


def find_misfit(kind: Any, values: Sequence[Any]) -> tuple[int, str] | None:
    """Find the first of `values` that is no `kind`: (its place, what is wrong with it, beginning with the field)."""
    if _fits(kind)(values):
        return None
    return next((place, wrong) for place, value in enumerate(values) if (wrong := _explain(kind, value, "")))


@cache
def _fits(kind: Any) -> Fits:
    """Make the quick test of a type: whether all values of a column are of it."""
    if kind is Any:
        return lambda values: True
    allowed = _scalar_types(kind)
    if allowed is not None:
        return lambda values: set(map(type, values)) <= allowed
    options, is_optional = _options(kind)
    if len(options) > 1:
        raise TypeError(f"{kind}: a union of more than one container and null is not supported")
    inner = _container(options[0])
    if is_optional:
        return lambda values: inner([value for value in values if value is not None])
    return inner


def _container(kind: Any) -> Fits:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        fits = _fits(args[0])
        return lambda values: set(map(type, values)) <= {list} and fits(list(chain.from_iterable(values)))
    if kind is dict or origin is dict:
        fits = _fits(args[1] if args else Any)
        return lambda values: (
            set(map(type, values)) <= {dict} and fits(list(chain.from_iterable(map(dict.values, values))))
        )
    return _record_fits(kind)


def _record_fits(kind: Any) -> Fits:
    """Make the quick test of a typed dictionary: by the keys of all values and their types.

    Runs of one scenario have the same ones throughout, so that most of the work is to find them among those seen.
    """
    required, optional = _fields(kind)
    hints = {**required, **optional}
    outer = {key: _outer_types(hint) for key, hint in hints.items() if hint is not Any}
    inner = {key: _fits(hint) for key, hint in hints.items() if _has_inside(hint)}
    known: dict[
        Signature, set[str] | None
    ] = {}  # keys and types → which of the keys to look into; None: they do not fit

    def judge(values: Sequence[dict[str, Any]]) -> set[str] | None:
        inside: set[str] = set()
        for value in values:
            if not required.keys() <= value.keys():
                return None
            for key, member in value.items():
                if key in outer and type(member) not in outer[key]:
                    return None
                if key in inner and member is not None:
                    inside.add(key)
        return inside

    def fits(values: Sequence[Any]) -> bool:
        if not set(map(type, values)) <= {dict}:
            return False
        found = tuple(map(type, chain.from_iterable(map(dict.values, values))))
        signature = (tuple(map(len, values)), tuple(chain.from_iterable(values)), found)
        inside = known.get(signature, NEW)
        if inside is NEW:
            if len(known) == MOST_KNOWN:
                known.clear()
            inside = known[signature] = judge(values)
        return inside is not None and all(inner[key]([v[key] for v in values if key in v]) for key in inside)

    return fits


def _has_inside(kind: Any) -> bool:
    """Say whether a type asks for more than a value's own type tells."""
    (first, *_), _ = _options(kind)
    return kind is not Any and first not in _SCALARS and typing.get_args(first)[1:] != (Any,)


def _explain(kind: Any, value: Any, path: str) -> str:
    """Say what is wrong with one value; "" if nothing is."""
    if kind is Any or type(value) in (_scalar_types(kind) or ()):
        return ""
    options, is_optional = _options(kind)
    if value is None and is_optional:
        return ""
    if type(value) not in _outer_types(kind):
        return _expected(" or ".join(map(_word, options)) + " or null" * is_optional, value, path)
    (kind,) = options
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        inside = ((args[0], member, str(place)) for place, member in enumerate(value))
    elif kind is dict or origin is dict:
        inside = ((args[1] if args else Any, member, key) for key, member in value.items())
    else:
        required, optional = _fields(kind)
        missing = [key for key in required if key not in value]
        if missing:
            return ": ".join(filter(None, (path, f"lacks {', '.join(missing)}")))
        inside = ((hint, value[key], key) for key, hint in {**required, **optional}.items() if key in value)
    wrong = (_explain(hint, member, f"{path}.{key}" if path else key) for hint, member, key in inside)
    return next(filter(None, wrong), "")


def _expected(words: str, value: Any, path: str) -> str:
    text = repr(value)
    text = text if len(text) <= 60 else text[:59] + "…"
    return ": ".join(filter(None, (path, f"expected {words}, got {text}")))


def _word(kind: Any) -> str:
    return _WORDS.get(kind) or ("a list" if typing.get_origin(kind) is list else "an object")


def _options(kind: Any) -> tuple[list[Any], bool]:
    """Split `X | None` into ([X], True); any other type is ([it], False)."""
    if typing.get_origin(kind) not in (Union, types.UnionType):
        return [kind], False
    args = typing.get_args(kind)
    return [arg for arg in args if arg is not types.NoneType], types.NoneType in args


def _scalar_types(kind: Any) -> set[type] | None:
    """Return the Python types that a scalar, or a union of scalars, may have; None for anything else."""
    return _outer_types(kind) if all(option in _SCALARS for option in _options(kind)[0]) else None


def _outer_types(kind: Any) -> set[type]:
    """Return the Python types that a value may have, whatever it holds inside."""
    options, is_optional = _options(kind)
    found: list[set[type]] = [
        _SCALARS.get(option) or {list if typing.get_origin(option) is list else dict} for option in options
    ]
    null: set[type] = {types.NoneType} if is_optional else set()
    return null.union(*found)


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keys that a typed dictionary must have and those it may have, with their types."""
    hints = typing.get_type_hints(kind)
    required = {key: hint for key, hint in hints.items() if key in kind.__required_keys__}
    return required, {key: hint for key, hint in hints.items() if key not in required}
