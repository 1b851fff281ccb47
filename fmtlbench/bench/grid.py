"""What to run: algorithms (and variants of them), scenarios, seeds, presets; from the command line, a file, or both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ..algorithms import ALGORITHMS
from ..base.errors import UsageError, short_repr, unknown
from ..base.located import locate
from ..base.schema import build, limits
from ..base.yamlfile import load_yaml
from ..config.presets import find_preset, name_preset
from ..config.request import place_beside, place_files
from ..config.resolve import check_scenario_name, parse_overrides, read_method
from ..config.setting import WEIGHTING
from ..scenarios import probe_names, read_scenario, scenario_files
from .asked_runs import BASELINE, Asked, label_of, lay_above, parse_seeds
from .ranges import MOST_TRIALS, split
from .trials import Trials, read_trials


@dataclass(frozen=True)
class Grid:
    """The whole request, names checked: every method in every scenario and preset."""

    methods: tuple[Asked, ...]  # without a scenario
    scenarios: tuple[str, ...]
    presets: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: Trials = field(default_factory=Trials)  # to tune with; a sweep's are methods already
    shortfalls: tuple[str, ...] = ()  # of which methods fewer trials were drawn than asked for

    def asked(self) -> list[Asked]:
        """Return what is asked for, table by table."""
        tables = product(self.presets, self.scenarios)
        return [replace(one, scenario=where, preset=size) for size, where in tables for one in self.methods]


@dataclass(frozen=True)
class VariantEntry:
    """A variant as the file has it."""

    algo: str
    name: str | None = None
    set: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GridFile:
    """The file as it is; lists may be written as one word or a comma-separated text."""

    algos: Any = ()
    scenarios: Any = ()
    seeds: Any = None
    preset: Any = None
    presets: Any = None
    rounds: int | None = limits(None, low=1)
    set: dict[str, Any] = field(default_factory=dict)
    variants: tuple[VariantEntry, ...] = ()
    sweep: dict[str, Any] = field(default_factory=dict)
    search: dict[str, Any] = field(default_factory=dict)
    trials: int | None = limits(None, low=1, high=MOST_TRIALS)
    search_seed: int | None = limits(None, low=0)
    tune: dict[str, dict[str, Any]] = field(default_factory=dict)  # method → key → range


@dataclass(frozen=True)
class Flags:
    """What the command line says; None where it says nothing."""

    algos: str | None = None
    scenarios: str | None = None
    seeds: str | None = None
    preset: str | None = None
    rounds: int | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    sweep: Sequence[str] = ()  # key=range each
    search: Sequence[str] = ()
    trials: int | None = None
    search_seed: int | None = None
    tune: bool = False  # keep trials apart from the methods
    tune_on: str | None = None
    validation: float | None = None
    tune_seeds: str | None = None


def read_grid(file: str | Path | None, flags: Flags) -> Grid:
    """Read file and flags into one checked request; a flag takes the place of the file's entry."""
    path = Path(file) if file is not None else None
    said = load_yaml(path) if path else {}
    entries = build(GridFile, said)
    base = path.parent if path else Path()
    if entries.preset is not None and entries.presets is not None:
        raise UsageError(f"{locate(said, 'presets')}: presets: preset is given too; give one of them")
    named = _file_variants(entries, said, base)
    presets_key = "preset" if entries.presets is None else "presets"

    def words(flag: str, text: str | None, key: str, value: Any) -> list[tuple[str, str]]:
        """Return (word, where it stands), from the flag if it was given."""
        if text is not None:
            return [(word, flag) for word in split(text)]
        return _file_words(value, key, said, base)

    algos = words("--algos", flags.algos, "algos", entries.algos)
    scenarios = words("--scenarios", flags.scenarios, "scenarios", entries.scenarios)
    presets = words("--preset", flags.preset, presets_key, getattr(entries, presets_key))
    chosen = _methods(algos, named, flags.overrides)
    if flags.algos is None:
        chosen += [one for one in named.values() if one not in chosen]
    if not chosen:
        raise UsageError("which algorithms? --algos fedavg,fedhca2 or --algos all (fmtlbench list algorithms)")
    if not scenarios:
        raise UsageError("which scenarios? --scenarios st_mt_1 or --scenarios all (fmtlbench list scenarios)")
    for one in chosen:
        _refuse_two_weightings(one.overrides, flags.overrides, one.label)
    trials = read_trials(entries, flags, said)
    _check_ranges(trials, chosen, flags)
    shortfalls = trials.shortfalls(chosen)
    seeds = _seeds(flags.seeds, entries.seeds, said)
    of_file = place_files(entries.set, base)
    of_file = _with_rounds(of_file, entries.rounds, f"{locate(said, 'rounds')}: rounds: {entries.rounds}")
    of_flags = _with_rounds(flags.overrides, flags.rounds, f"--rounds {flags.rounds}")
    lines = {key: locate(said, f"set.{key}") for key in entries.set}
    lines |= {"federation.rounds": locate(said, "rounds")} if entries.rounds is not None else {}
    methods = [replace(_lay_between(of_file, lines, one, of_flags), seeds=seeds) for one in chosen]
    if not flags.tune:
        methods = [trial for one in methods for trial in trials.tried(one) or [one]]
    return Grid(
        _unlike(methods),
        tuple(_scenarios(scenarios)),
        tuple(_presets(presets or [("nano", "")])),
        seeds,
        trials if flags.tune else Trials(),
        tuple(shortfalls),
    )


def _lay_between(
    of_file: Mapping[str, Any], lines: Mapping[str, str], one: Asked, of_flags: Mapping[str, Any]
) -> Asked:
    """Return a method with the values of all: the command line's above its own, its own above the file's."""
    overrides = {**lay_above(of_file, one.overrides), **of_flags}
    written = {**{key: line for key, line in lines.items() if key not in one.overrides}, **one.lines}
    lines = {key: line for key, line in written.items() if key not in of_flags}
    own = tuple(key for key in one.overrides if key not in of_flags)
    return replace(one, overrides=overrides, lines=lines, own=own)


def _check_ranges(trials: Trials, methods: Iterable[Asked], flags: Flags) -> None:
    """Refuse ranges for methods that are not in the grid, and of values that are set as well."""
    methods = list(methods)
    names = {name for one in methods for name in one.names} | ({BASELINE} if flags.tune else set())
    for one in trials.ranges.values():
        if one.algo is not None and one.algo not in names:
            raise unknown("method of this bench", one.algo, names, one.line)
        if one.key in flags.overrides or (one.key == "federation.rounds" and flags.rounds is not None):
            raise UsageError(f"{one.line}: {one.key} is set by a flag too; give one of them")
        for method in methods:
            if one.key in method.overrides and (one.algo is None or one.algo in method.names):
                raise UsageError(f"{one.line}: {one.key} is set by {method.label} too; give one of them")


def _seeds(flag: str | None, entry: Any, said: Any) -> tuple[int, ...]:
    if flag is not None:
        return parse_seeds(flag, "--seeds")
    if entry is None:
        return (0,)
    listed, where = entry if isinstance(entry, list) else [entry], f"{locate(said, 'seeds')}: seeds"
    if not listed or any(isinstance(s, bool) or not isinstance(s, (int, str)) for s in listed):
        raise UsageError(f"{where}: expected numbers or ranges such as 0-4, got {short_repr(entry)}")
    return parse_seeds(",".join(map(str, listed)), where)


def _file_words(value: Any, key: str, said: Any, base: Path) -> list[tuple[str, str]]:
    if value is None:
        return []
    listed = split(value) if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)):
        raise UsageError(f"{locate(said, key)}: {key}: expected a name or a list of names, got {short_repr(value)}")
    found = []
    for i, word in enumerate(listed):
        where = f"{locate(said, f'{key}.{i}')}: {key}"
        if not isinstance(word, str):
            raise UsageError(f"{where}: expected a name, got {short_repr(word)}")
        found.append((place_beside(word, base), where))
    return found


def _file_variants(entries: GridFile, said: Any, base: Path) -> dict[str, Asked]:
    named: dict[str, Asked] = {}
    for i, entry in enumerate(entries.variants):
        line = f"{locate(said, f'variants.{i}.algo')}: variants.{i}.algo"
        algo, weighting = read_method(place_beside(entry.algo, base), line)
        ALGORITHMS.resolve(algo, line)
        chosen = place_files(entry.set, base)
        _refuse_two_weightings(weighting, chosen, f"{line}: {entry.algo}")
        chosen |= weighting
        label = entry.name or label_of(algo, {**entry.set, **weighting})
        where = f"{locate(said, f'variants.{i}.name')}: variants.{i}"
        if label in named:
            raise UsageError(f"{where}: a second variant called {label!r}; give it a name of its own")
        if entry.name in ALGORITHMS:
            raise UsageError(f"{where}: {label!r} is the name of a method; call the variant something else")
        lines = {key: locate(said, f"variants.{i}.set.{key}") for key in entry.set}
        named[label] = Asked(label, algo, overrides=chosen, lines=lines)
    return named


def _methods(words: Iterable[tuple[str, str]], named: Mapping[str, Asked], flags: Mapping[str, Any]) -> list[Asked]:
    found = []
    for word, where in words:
        if word == "all":
            found += [Asked(name, name) for name in ALGORITHMS] + list(named.values())
        elif word in named:
            found.append(named[word])
        else:
            found.append(_inline(word, where, named, flags))
    return found


def _inline(word: str, where: str, named: Mapping[str, Asked], flags: Mapping[str, Any]) -> Asked:
    """Read `fedavg`, `fedavg+uw`, `./mine.py` or `fedhca2[algo.c=0.2]`."""
    method, bracket, options = word.partition("[")
    if bracket and not options.endswith("]"):
        raise UsageError(f"{where}: {word!r}: the bracket is not closed; expected for example fedhca2[algo.c=0.2]")
    algo, weighting = read_method(method, where, named)
    ALGORITHMS.resolve(algo, where)
    overrides = parse_overrides(split(options[:-1])) if bracket else {}
    _refuse_two_weightings(weighting, overrides, f"{where}: {word!r}")
    overrides |= weighting
    for key in overrides.keys() & flags.keys():
        raise UsageError(f"{where}: {word!r}: --set {key} is given too; give one of them")
    return Asked(label_of(algo, overrides), algo, overrides=overrides)


def _refuse_two_weightings(named: Mapping[str, Any], given: Mapping[str, Any], where: str) -> None:
    """Refuse `fedavg+uw` where another weighting is set as well."""
    if WEIGHTING in named and given.get(WEIGHTING, named[WEIGHTING]) != named[WEIGHTING]:
        raise UsageError(f"{where}: {WEIGHTING}={given[WEIGHTING]} is set too; give one of them")


def _unlike(methods: Iterable[Asked]) -> tuple[Asked, ...]:
    """Return each method once; two different ones may not share a label."""
    kept: dict[str, Asked] = {}
    for one in methods:
        if kept.setdefault(one.label, one) != one:
            raise UsageError(f"two different methods are called {one.label!r}; give one a name in a grid file")
    return tuple(kept.values())


def _scenarios(words: Iterable[tuple[str, str]]) -> list[str]:
    found: dict[str, None] = {}
    for word, where in words:
        if word == "all":
            probes = probe_names()
            found |= dict.fromkeys(name for name in scenario_files() if name not in probes)
            continue
        check_scenario_name(word, where)
        read_scenario(word)
        found[word] = None
    return list(found)


def _presets(words: Iterable[tuple[str, str]]) -> list[str]:
    """Return each preset once, by name or path; two files of one name are refused, since tables go by names."""
    found: dict[str, str] = {}
    for word, where in words:
        find_preset(word, where)
        if found.setdefault(name_preset(word), word) != word:
            raise UsageError(f"{where}: {found[name_preset(word)]} and {word} have one name; call one file differently")
    return list(found.values())


def _with_rounds(overrides: Mapping[str, Any], rounds: int | None, where: str) -> dict[str, Any]:
    if rounds is None:
        return dict(overrides)
    if rounds < 1:
        raise UsageError(f"{where}: expected a whole number, 1 or more")
    if "federation.rounds" in overrides:
        raise UsageError(f"{where}: federation.rounds is set too; give one of them")
    return {**overrides, "federation.rounds": rounds}
