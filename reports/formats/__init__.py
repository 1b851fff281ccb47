"""Tables as text: one file per format, by the format's name, each with `render(tables) -> str`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...base.names import public_modules

if TYPE_CHECKING:
    from ..table import Table

ORDER = ("table", "csv", "md", "latex", "json")  # in which they are listed; a format that is not here comes last


def find_formats() -> tuple[str, ...]:
    """Return the names of the formats that there are."""
    return tuple(public_modules(__path__, ORDER))


def render(tables: Sequence[Table], style: str, **options: Any) -> str:
    """Return `tables` in a format, by its name; `options` belong to the format."""
    return importlib.import_module(f".{style}", __name__).render(tables, **options)
