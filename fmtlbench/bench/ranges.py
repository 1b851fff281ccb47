"""Ranges of values to try: `1e-4..1e-2:log5`, `0.1..0.5:5`, `1..4` or `1,2,4`; all of them, or drawn at random."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ..base.errors import UsageError, short_repr, shorten
from ..base.seeds import stream
from ..base.yamlfile import parse_scalar

MOST_VALUES = 1000  # of one range; more is a typing mistake
MOST_TRIALS = 1000  # of one method
REDRAWS = 20  # for each trial, so that a draw that occurred before can be replaced
SWEEP_FORMS = "1e-4..1e-2:log5, 0.1..0.5:5, 1..4 or 1,2,4"
SEARCH_FORMS = "1e-4..1e-2:log, 0.1..0.8, 1..4 or adam,sgd"


@dataclass(frozen=True)
class Range:
    """What to try of one value: listed values, or an interval to draw from.

    `values` are empty for an interval to draw from, `low` and `high` are None for a list.
    """

    key: str
    text: str  # as it was written
    values: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    algo: str | None = None  # the method that it is for; None: all
    whole: bool = False  # draw whole numbers
    line: str = field(default="", compare=False)  # where it was written, for messages

    @property
    def name(self) -> str:
        """Return the key as a flag has it: with its method, if it is for one."""
        return f"{self.algo}:{self.key}" if self.algo else self.key

    def for_numbers(self, kind: type | None) -> Range:
        """Return the range for an option that takes int or float; None: nobody knows, so its ends tell.

        Between whole ends, an option that takes whole numbers has only those; equal ones are dropped.
        """
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            return self
        if kind is int:
            return replace(self, whole=True, values=tuple(dict.fromkeys(round(value) for value in self.values)))
        return replace(self, whole=kind is None and not self.log)

    def draw(self, seed: int, count: int) -> list[Any]:
        """Draw values at random; the first ones are the same however many are drawn."""
        rng = stream(seed, "search", self.name)
        if self.values:
            return [self.values[int(rng.integers(len(self.values)))] for _ in range(count)]
        assert self.low is not None and self.high is not None, self
        if self.whole and not self.log:
            return [int(rng.integers(self.low, self.high + 1)) for _ in range(count)]
        drawn = [self._at(float(rng.random())) for _ in range(count)]
        return [round(value) for value in drawn] if self.whole else drawn

    def _at(self, share: float) -> float:
        """Return the value at a share of the way from low to high."""
        assert self.low is not None and self.high is not None, self
        return _interpolate(self.low, self.high, share, self.log)


def parse_sweep(key: str, given: Any, where: str) -> Range:
    """Read what to sweep a value over; `given` is a text or a list of values, `where` the flag or line it stands in.

    Raises:
        UsageError: A range that is malformed, empty, runs backwards or has too many values.
    """
    algo, name = _split_key(key, where, SWEEP_FORMS)
    if not _is_interval(given):
        return Range(name, _write(given), _parse_values(given, where), algo=algo)
    low, high, count = _parse_bounds(str(given), where, SWEEP_FORMS)
    log = count.startswith("log")
    number = count.removeprefix("log")
    if not count:
        if not (isinstance(low, int) and isinstance(high, int)):
            raise UsageError(f"{where}: how many values? For example {given}:5, or {given}:log5")
        _check_count(high - low + 1, where)
        return Range(name, str(given), tuple(range(low, high + 1)), algo=algo)
    if not number.isdecimal() or len(number) > 18:
        raise UsageError(f"{where}: expected a number of values after the colon, such as 5 or log5, got {count!r}")
    _check_log(low, log, where)
    _check_count(int(number), where)
    if int(number) < 2:
        raise UsageError(f"{where}: {number} values; expected 2 or more, both ends are among them")
    steps = int(number) - 1
    values = tuple(_interpolate(low, high, step / steps, log) for step in range(steps + 1))
    if len(set(values)) < len(values):
        raise UsageError(f"{where}: {number} values so close to each other are equal in six digits; expected fewer")
    return Range(name, str(given), values, low, high, log, algo)


def parse_search(key: str, given: Any, where: str) -> Range:
    """Read what to draw a value from, likewise: an interval `low..high`, `low..high:log`, or values to choose from."""
    algo, name = _split_key(key, where, SEARCH_FORMS)
    if not _is_interval(given):
        return Range(name, _write(given), _parse_values(given, where), algo=algo)
    low, high, scale = _parse_bounds(str(given), where, SEARCH_FORMS)
    if scale not in ("", "log"):
        raise UsageError(f"{where}: expected log or nothing after the colon, got {scale!r}; --trials says how many")
    _check_log(low, scale == "log", where)
    return Range(name, str(given), low=low, high=high, log=scale == "log", algo=algo).for_numbers(None)


def parse_ranges(assignments: Sequence[str], flag: str, parse: Callable[[str, Any, str], Range]) -> dict[str, Range]:
    """Read the ranges of a flag that may be given several times, `key=range` each; by the key with its method."""
    found: dict[str, Range] = {}
    for text in assignments:
        key, equals, given = text.partition("=")
        if not equals or not key.strip() or not given.strip():
            example = (SWEEP_FORMS if parse is parse_sweep else SEARCH_FORMS).partition(",")[0]
            raise UsageError(f"{flag} {shorten(text)}: expected key=range, for example train.lr={example}")
        one = parse(key.strip(), given.strip(), f"{flag} {shorten(text)}")
        if one.name in found:
            raise UsageError(f"{flag} {shorten(text)}: {one.name} is given twice")
        found[one.name] = replace(one, line=f"{flag} {one.name}={one.text}")
    return found


def list_trials(ranges: Sequence[Range], where: str) -> list[dict[str, Any]]:
    """Return every combination of the ranges' values, as overrides; the first range varies slowest."""
    total = math.prod(len(one.values) for one in ranges)
    if total > MOST_TRIALS:
        raise UsageError(f"{where}: {total} combinations of values, expected at most {MOST_TRIALS}")
    keys = [one.key for one in ranges]
    return [dict(zip(keys, values)) for values in product(*(one.values for one in ranges))] if ranges else []


def draw_trials(ranges: Sequence[Range], seed: int, count: int) -> list[dict[str, Any]]:
    """Return up to `count` different trials as overrides, drawn by the seed; fewer if the ranges do not have so many.

    A key has the same draws whatever other keys there are, so methods that share a range try the same values of it.
    """
    draws = count * REDRAWS
    drawn = {one.key: one.draw(seed, draws) for one in ranges}
    found: dict[str, dict[str, Any]] = {}
    for i in range(draws if ranges else 0):
        trial = {key: values[i] for key, values in drawn.items()}
        found.setdefault(json.dumps(trial, sort_keys=True), trial)
        if len(found) == count:
            break
    return list(found.values())


def ranges_for(ranges: Mapping[str, Range], names: Collection[str]) -> list[Range]:
    """Return the ranges of all methods and those of one, by any of its names; its own comes before that of all."""
    own = {one.key: one for one in ranges.values() if one.algo in names}
    shared = {one.key: one for one in ranges.values() if one.algo is None}
    return list({**shared, **own}.values())


def _split_key(key: str, where: str, forms: str) -> tuple[str | None, str]:
    """Split `fedprox:algo.mu` into the method, None for all, and the key."""
    algo, colon, name = key.rpartition(":")
    if not name.strip() or (colon and not algo.strip()):
        raise UsageError(f"{where}: expected key=range or METHOD:key=range, with a range such as {forms}")
    return algo.strip() or None, name.strip()


def split(text: str) -> list[str]:
    """Split at commas, but not inside brackets: `fedavg,fedhca2[algo.c=0.2]` are two words."""
    words, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            words.append("")
        else:
            words[-1] += character
    return [word.strip() for word in words if word.strip()]


def _is_interval(given: Any) -> bool:
    """Return whether a range is written as two ends; a path such as ../net.py is a value."""
    return isinstance(given, str) and ".." in given and "/" not in given and "\\" not in given


def _parse_values(given: Any, where: str) -> tuple[Any, ...]:
    if isinstance(given, (list, tuple)):
        values = list(given)
    else:
        values = [_parse_value(word, where) for word in split(given)] if isinstance(given, str) else [given]
    if not values:
        raise UsageError(f"{where}: no value in it; expected for example {SWEEP_FORMS}")
    _check_count(len(values), where)
    for i, value in enumerate(values):
        if value in values[:i]:
            raise UsageError(f"{where}: {short_repr(value)} is given twice")
    return tuple(values)


def _parse_value(word: str, where: str) -> Any:
    try:
        return parse_scalar(word)
    except UsageError as error:
        raise UsageError(f"{where}: {short_repr(word)} is not a value: {error}") from None


def _parse_bounds(text: str, where: str, forms: str) -> tuple[Any, Any, str]:
    """Split `low..high:rest`; low is less than high, both finite numbers."""
    interval, _, rest = text.partition(":")
    words = [word.strip() for word in interval.split("..")]
    if len(words) != 2 or not all(words) or text.rstrip().endswith(":"):
        raise UsageError(f"{where}: expected a range such as {forms}")
    bounds = [_parse_value(word, where) for word in words]
    for word, bound in zip(words, bounds):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
            raise UsageError(f"{where}: expected numbers at both ends, got {short_repr(word)}")
    low, high = bounds
    if high == low:
        raise UsageError(f"{where}: both ends are {words[0]}; expected two different ones, or --set for one value")
    if high < low:
        raise UsageError(f"{where}: the range runs backwards; {words[1]}..{words[0]}?")
    return low, high, rest.strip()


def _check_log(low: float, log: bool, where: str) -> None:
    if log and low <= 0:
        raise UsageError(f"{where}: a logarithmic range must begin above 0, got {low}")


def _check_count(count: int, where: str) -> None:
    if count > MOST_VALUES:
        raise UsageError(f"{where}: {count} values, expected at most {MOST_VALUES}")


def _interpolate(low: float, high: float, share: float, log: bool) -> float:
    """Return the number at a share of the way, in six digits; the ends exactly, whole numbers between whole ends."""
    if share in (0, 1):
        return high if share else low
    value = math.exp(math.log(low) + share * (math.log(high) - math.log(low))) if log else low + share * (high - low)
    value = min(max(float(f"{value:.6g}"), low), high)
    whole = isinstance(low, int) and isinstance(high, int) and float(value).is_integer()
    return int(value) if whole else value


def _write(given: Any) -> str:
    return given if isinstance(given, str) else str(list(given) if isinstance(given, tuple) else given)
