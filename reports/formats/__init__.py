"""Tables as text: one file per format, each with `render(tables) -> str`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ..table import Table

_FILES = {"table": "terminal", "csv": "csv_format", "md": "markdown", "latex": "latex", "json": "json_format"}


def render(tables: Sequence[Table], style: str, **options: Any) -> str:
    """Return `tables` in a format of `_FILES`, by its name; `options` belong to the format."""
    return importlib.import_module(f".{_FILES[style]}", __name__).render(tables, **options)
