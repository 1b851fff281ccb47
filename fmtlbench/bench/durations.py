"""Times as people write and read them."""

from __future__ import annotations

import re

from ..errors import UsageError

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>\d+(?:\.\d+)?){unit})?" for unit in _UNITS))


def parse_duration(text: str, where: str) -> float:
    """`2h`, `90m`, `30s`, `1h30m` → seconds."""
    match = _DURATION.fullmatch(text.replace(" ", "").lower())
    seconds = sum(float(n) * _UNITS[unit] for unit, n in match.groupdict().items() if n) if match else 0
    if seconds <= 0:
        raise UsageError(f"{where} {text}: expected a time such as 2h, 90m, 30s or 1h30m")
    return seconds


def duration(seconds: float) -> str:
    """3725 → `1 h 02 min`: two units at most, because nobody plans by the second."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
