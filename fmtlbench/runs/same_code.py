"""Codes of before that make the numbers of today's: names moved, and what else changed was shown to move no number.

The table, same_code.json, has the sha256 of each part of such a code → that of the code which took its place, and
where files were → where they are. `benchmarks/frozen.py --write-same-code` writes it after it has compared what both
codes make. A later change of the code makes another sha256, which the table does not name: nothing has to be removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("same_code.json")


@cache
def _table() -> dict[str, Any]:
    return json.loads(FILE.read_bytes())


def parts_as_today(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the parts of a recorded code, by name, as the code would have them that took its place."""
    later = _table()["parts"]
    return {part: later.get(part, {}).get(digest, digest) for part, digest in parts.items()}


def name_as_today(file: str) -> str:
    """Return what a file of a recorded code is called now."""
    return _table()["files"].get(file, file)
