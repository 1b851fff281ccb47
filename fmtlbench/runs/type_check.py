"""Decode JSON and check that it is of a type: scalars, lists, mappings and typed dictionaries. msgspec does both.

msgspec says of what does not fit where it stands, except for the keys of mappings, and not what it is: that is looked
up, so that a message names the file's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..base.errors import short_repr

if TYPE_CHECKING:
    import msgspec

_NAMES = {str: "str", int: "int", float: "float", bool: "bool", NoneType: "null", list: "array", dict: "object"}
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    import msgspec

    return msgspec.json.Decoder(kind)


def decode(content: bytes, kind: Any, whole: bool = False) -> tuple[Any, str]:
    """Decode JSON: (the value, what is wrong with it as a `kind`, beginning with the field; "" if nothing is).

    Keys that the kind does not name are left out, unless the `whole` is asked for, as it must be to write it again.

    Raises:
        ValueError: It is no JSON.
        RecursionError: It is nested too deeply.
    """
    import msgspec  # here: a start without it is quicker

    try:
        value, wrong = _decoder(kind).decode(content), None
    except msgspec.ValidationError as error:
        wrong = error
    if whole or wrong:
        value = msgspec.json.decode(content)
    return value, _explain(wrong, value) if wrong else ""


def find_misfit(kind: Any, value: Any) -> str:
    """Find what is wrong with a value as a `kind`, beginning with the field; "" if nothing is."""
    import msgspec

    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return _explain(error, value)
    return ""


def _explain(error: msgspec.ValidationError, value: Any) -> str:
    """Say in our words what msgspec found: "Expected `float`, got `str` - at `$.scores[0].value`"."""
    said, _, at = str(error).partition(" - at ")
    expected, *got = re.findall("`(.+?)`", said)  # without `got`: the key that is missing
    for path, member in _places(value, re.findall(r"[.\[](\w+|\.\.\.)", at)):
        if not got and isinstance(member, dict) and expected not in member:
            return f"{path}lacks {expected}"
        if got == [_NAMES.get(type(member), type(member).__name__)]:
            words = " or ".join(_WORDS.get(name, name) for name in expected.split(" | "))
            return f"{path}expected {words}, got {short_repr(member)}"
    return said


def _places(value: Any, steps: list[str], path: str = "") -> Iterator[tuple[str, Any]]:
    """List what lies at the end of these steps, as (path, value), in order; "..." stands for any key."""
    if not steps:
        yield path and f"{path}: ", value
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inside:
        if steps[0] in (str(key), "..."):
            yield from _places(member, steps[1:], f"{path}.{key}" if path else str(key))
