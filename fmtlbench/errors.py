"""The exceptions a user can cause. The command line prints them in one line; anything else is a bug."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class FmtlbenchError(Exception):
    """A run that could not be done: exit code 1."""


class UsageError(FmtlbenchError):
    """A request that makes no sense as given: exit code 2."""


class RefusedError(UsageError):
    """Values that are fine one by one and do not go together, such as a method and a scenario."""


class UnknownNameError(UsageError, LookupError):
    """A name that no registry, schema or dataset knows."""


def one_line(text: object) -> str:
    """Return text for one line of a terminal: line breaks become blanks, other control characters are escaped."""
    joined = " ".join(str(text).splitlines())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def shorten(value: object, write: Callable[[object], str] = str, longest: int = 80) -> str:
    """Return a value for a message, as `write` gives it; the middle is left out if that is long."""
    try:
        text = write(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a very large number"
    return text if len(text) <= longest else f"{text[: longest // 2]} … {text[-longest // 4 :]}"


def short_repr(value: object) -> str:
    """Return the `repr` of a value, shortened for a message."""
    return shorten(value, repr)


def nearest(given: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the closest valid names, or all of them if none is close."""
    known = sorted(known)
    close = difflib.get_close_matches(given, known, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "valid: " + (", ".join(known) or "none")


def unknown(kind: str, given: str, known: Iterable[str], where: str = "") -> UnknownNameError:
    """Return the error for an unknown name, with the nearest valid choice; `where` is the file or flag it is from."""
    prefix = f"{where}: " if where else ""
    return UnknownNameError(f"{prefix}no {kind} {given!r}; {nearest(given, known)}")
