"""Trials: the values that a bench tries of every method, from flags and a grid file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..base.errors import UsageError
from ..base.located import locate
from ..base.schema import number_type
from ..base.words import say_count
from ..config.run_config import RunConfig
from .ranges import MOST_TRIALS, Range, draw_trials, list_trials, parse_ranges, parse_search, parse_sweep, ranges_for

if TYPE_CHECKING:
    from .asked_runs import Asked
    from .grid import Flags, GridFile


@dataclass(frozen=True)
class Trials:
    """What is tried of every method: all combinations of ranges, or so many that are drawn by a seed."""

    ranges: dict[str, Range] = field(default_factory=dict)  # by key, with the method in front that they are for
    count: int | None = None  # None: all combinations
    seed: int = 0

    def of(self, asked: Asked) -> list[dict[str, Any]]:
        """Return the overrides of every trial of a method; none if no range is for it."""
        ranges = [one.for_numbers(_number_type(one.key, asked)) for one in self._ranges_for(asked)]
        if self.count is not None:
            return draw_trials(ranges, self.seed, self.count)
        return list_trials(ranges, f"--sweep of {asked.label}")

    def tried(self, asked: Asked) -> list[Asked]:
        """Return the trials of a method, each with the lines that its values are from."""
        lines = {one.key: one.line for one in self._ranges_for(asked)}
        return [asked.with_trial(values, {key: lines[key] for key in values}) for values in self.of(asked)]

    def shortfalls(self, methods: Iterable[Asked]) -> list[str]:
        """Say of which methods fewer trials are drawn than asked for, since there are no more different ones."""
        found = {one.label: len(self.of(one)) for one in methods} if self.count is not None else {}
        return [
            f"{label}: {count} of {self.count} trials: only {say_count(count, 'different value')}"
            for label, count in found.items()
            if 0 < count < (self.count or 0)
        ]

    def _ranges_for(self, asked: Asked) -> list[Range]:
        return ranges_for(self.ranges, asked.names)

    def keys(self) -> list[str]:
        """Return the config values that are tried, by dotted name."""
        return list(dict.fromkeys(one.key for one in self.ranges.values()))


def _number_type(key: str, asked: Asked) -> type | None:
    """Return int or float for an option that takes such numbers; None for others, a network's and a scenario's."""
    section, _, option = key.partition(".")
    return number_type(asked.method.Params, option) if section == "algo" else number_type(RunConfig, key)


def read_trials(entries: GridFile, flags: Flags, said: Any) -> Trials:
    """Read what is to be tried.

    Ranges of flags take the place of a file's `sweep` and `search`, those of its `tune` stay.
    """
    if flags.sweep and flags.search:
        raise UsageError("--sweep and --search: give one of them: all combinations, or --trials that are drawn")
    from_file = not (flags.sweep or flags.search)
    if from_file and entries.sweep and entries.search:
        raise UsageError(f"{locate(said, 'search')}: search: sweep is given too; give one of them")
    count, seed = flags.trials, flags.search_seed
    if not flags.sweep:
        count = entries.trials if count is None else count
        seed = entries.search_seed if seed is None else seed
    sweeping = bool(flags.sweep or (from_file and entries.sweep))
    searching = bool(flags.search or (from_file and entries.search)) or (not sweeping and count is not None)
    return _make_trials(_read_ranges(entries, flags, said, searching), searching, count, seed)


def _read_ranges(entries: GridFile, flags: Flags, said: Any, searching: bool) -> dict[str, Range]:
    parse, word = (parse_search, "search") if searching else (parse_sweep, "sweep")
    ranges = parse_ranges(getattr(flags, word), f"--{word}", parse)
    of_file: dict[str, tuple[Any, str]] = {}
    if not ranges:
        of_file = {key: (given, f"{word}.{key}") for key, given in getattr(entries, word).items()}
    if entries.tune and not flags.tune:
        line = f"{locate(said, 'tune')}: tune"
        raise UsageError(f"{line}: says what to try for --tune; give --tune, or use sweep and search")
    for method, of_method in entries.tune.items():
        of_file |= {f"{method}:{key}": (given, f"tune.{method}.{key}") for key, given in of_method.items()}
    for key, (given, path) in of_file.items():
        line = f"{locate(said, path)}: {path}"
        one = parse(key, given, line)
        ranges.setdefault(one.name, replace(one, line=line))
    return ranges


def _make_trials(ranges: dict[str, Range], searching: bool, count: int | None, seed: int | None) -> Trials:
    if not searching:
        for flag, value in (("--trials", count), ("--search-seed", seed)):
            if value is not None:
                raise UsageError(f"{flag} {value}: is for --search; --sweep tries all combinations")
        return Trials(ranges)
    if not ranges:
        raise UsageError(f"--trials {count}: of what? For example --search train.lr=1e-4..1e-2:log")
    if count is None:
        raise UsageError("--search: how many trials? For example --trials 12")
    if not 1 <= count <= MOST_TRIALS:
        raise UsageError(f"--trials {count}: expected a whole number from 1 to {MOST_TRIALS}")
    if (seed or 0) < 0:
        raise UsageError(f"--search-seed {seed}: expected a whole number, 0 or more")
    return Trials(ranges, count, seed or 0)
