"""Write and read times, quantities, counts and names of datasets in the same words everywhere."""

from __future__ import annotations

import json
import re

from .errors import UsageError

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>\d+(?:\.\d+)?){unit})?" for unit in _UNITS))
_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3))
_REAL_TITLES = {"pascal": "PASCAL-Context", "nyud": "NYUD-v2"}  # as the papers call them


def parse_duration(text: str, where: str) -> float:
    """Return the seconds that `2h`, `90m`, `30s` or `1h30m` stand for."""
    match = _DURATION.fullmatch(text.replace(" ", "").lower())
    seconds = sum(float(n) * _UNITS[unit] for unit, n in match.groupdict().items() if n) if match else 0
    if seconds <= 0:
        raise UsageError(f"{where} {text}: expected a time such as 2h, 90m, 30s or 1h30m")
    return seconds


def say_duration(seconds: float) -> str:
    """Return a time for planning: 3725 → `1 h 02 min` (two units at most)."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def say_measured_time(seconds: float) -> str:
    """Return a measured time: as for planning, but below a minute in tenths of a second or in milliseconds."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else say_duration(seconds)


def say_quantity(value: float, unit: str) -> str:
    """Return a value with three digits and the prefix that fits, in powers of 1000: `1.5 GB`."""
    value = float(f"{value:.3g}")
    for prefix, scale in _PREFIXES:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value * 1e6:.3g} µ{unit}" if value else f"0 {unit}"


def say_bytes(count: float) -> str:
    """Return a number of bytes: `1.5 GB`."""
    return say_quantity(count, "B")


def inflect(noun: str, number: int) -> str:
    """Return the noun as it stands beside a number of things: round, rounds."""
    return noun if number == 1 else f"{noun}s"


def say_count(number: int, noun: str) -> str:
    """Return a number of things: `1 round`, `2 rounds`."""
    return f"{number} {inflect(noun, number)}"


def dataset_title(dataset: str, source: str = "real") -> str:
    """Return what tables and figures call a dataset: the papers' name for real data only."""
    return _REAL_TITLES.get(dataset, dataset) if source == "real" else f"{source}-{dataset}"


def as_typed(value: object) -> str:
    """Write a value as --set takes it: null and true, not None and True."""
    return value if isinstance(value, str) else json.dumps(value)
