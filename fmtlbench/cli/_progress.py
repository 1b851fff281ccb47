"""What happens in this process, on stderr: bars on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..listeners import Listener


@contextmanager
def show_progress() -> Iterator[Listener]:
    """Lend a listener that shows what it is told, and end it."""
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines

    progress = Bars() if sys.stderr.isatty() else JsonLines()
    try:
        yield progress
    finally:
        progress.end()
