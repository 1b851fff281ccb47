"""The exceptions a user can cause. The command line prints them in one line; anything else is a bug."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Callable, Iterable


class FmtlbenchError(Exception):
    """A run that could not be done: exit code 1."""

    advice = ""  # what the command line adds to the message: what can be done about it


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


def first_line(error: Exception) -> str:
    """Return the first line of a foreign exception's message, for a message of ours; its type if it has none."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def describe_error(error: BaseException) -> str:
    """Describe an exception of other people's code in one line, with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if "_sitebuiltins" not in frame.filename]  # where Python has its `exit`
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SystemExit):
        return f"sys.exit({one_line(error)}) is not for a hook{place}"
    return f"{type(error).__name__}: {one_line(error) or 'no reason given'}{place}"


def nearest(given: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return the end of an error message: the closest valid names; if none is close, `otherwise` or all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(given, known, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return otherwise or "valid: " + (", ".join(known) or "none")


def unknown(kind: str, given: str, known: Iterable[str], where: str = "") -> UnknownNameError:
    """Return the error for an unknown name, with the nearest valid choice; `where` is the file or flag it is from."""
    prefix = f"{where}: " if where else ""
    return UnknownNameError(f"{prefix}no {kind} {given!r}; {nearest(given, known)}")
