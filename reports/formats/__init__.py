"""Tables as text: one file per format, each with `render(tables) -> str`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ..table import Table

_FILES = {"table": "terminal", "csv": "csv_format", "md": "markdown", "latex": "latex", "json": "json_format"}
FORMATS = tuple(_FILES)


def render(tables: Sequence[Table], style: str, **options: Any) -> str:
    """Return `tables` in one of `FORMATS`; `options` belong to the format."""
    return importlib.import_module(f".{_FILES[style]}", __name__).render(tables, **options)
