"""Ask other people's classes: what goes wrong in a hook is one line that names its owner and the hook."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, describe_error, short_repr
from ..base.schema import build, plain


class MethodError(FmtlbenchError):
    """A method's own mistake, or a network's."""


class ScheduleRefused(FmtlbenchError):
    """A method's word that so many local epochs make no sense for it."""


def build_options(owner: Any, given: Any, path: str = "algo") -> Any:
    """Build the Params of a method's or network's class from plain data; values that no config can hold are refused.

    Args:
        owner: The class, with `name` and `Params`.
        given: A mapping, as the config has it at `path`; it may know where its values were said.
        path: Of the options in the config.
    """
    try:
        options = build(owner.Params, given, path)
    except FmtlbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{owner.name}.Params: {describe_error(error)}") from error
    for name, value in plain(options).items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise UsageError(
                f"{owner.name}.Params.{name}: {short_repr(value)} cannot be an option; expected finite numbers, text, "
                "true, false, null, and lists or mappings of these"
            ) from None
    return options


def refusal_of(owner: Any, *given: Any) -> str | None:
    """Ask a class why it has no meaning for what is given, its options first; None where it has."""
    reason = call_hook(owner.name, "refuses", owner.refuses, *given)
    if reason is not None and not isinstance(reason, str):
        raise MethodError(f"{owner.name}.refuses returned {short_repr(reason)}, expected a text or None")
    return reason


def call_hook(owner: str, hook: str, call: Callable[..., Any], *given: Any) -> Any:
    """Call a hook; what goes wrong in it is told in one line with the names of owner and hook."""
    try:
        return call(*given)
    except (FmtlbenchError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise MethodError(f"{owner}.{hook} failed: {describe_error(error)}") from error


def kind_of(value: Any) -> str:
    """Return what a value is, for a message."""
    return "None" if value is None else f"a {type(value).__name__}"
