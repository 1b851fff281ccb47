"""What to run: algorithms (and variants of them), scenarios, seeds, presets; from the command line, a file, or both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..algorithms import ALGORITHMS, Algorithm
from ..base.errors import UsageError, short_repr, unknown
from ..base.schema import build, limits, locate
from ..base.yamlfile import load_yaml
from ..config.presets import find_preset, name_preset
from ..config.request import place_beside, place_files
from ..config.resolve import check_scenario_name, parse_overrides, read_method
from ..config.setting import WEIGHTING, WEIGHTING_OPTIONS, is_below
from ..scenarios import probe_names, read_scenario, scenario_files
from .ranges import MOST_TRIALS, split
from .trials import Trials, read_trials

BASELINE = "local"  # every report compares with it
MOST_SEEDS = 10_000  # more is a typing mistake


@dataclass(frozen=True)
class Variant:
    """One row of the grid: a method and the overrides that are its own."""

    label: str
    algo: str
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """Return what the variant may be called where ranges are given: its label or its method."""
        return {self.label, label_of(self.algo, {}), self.method.name}

    @property
    def method(self) -> type[Algorithm]:
        """Return the class of the method."""
        return ALGORITHMS.resolve(self.algo, "--algos")

    def with_trial(self, overrides: Mapping[str, Any]) -> Variant:
        """Return the variant with the values of a trial, which its label tells."""
        return Variant(extend_label(self.label, overrides), self.algo, {**self.overrides, **overrides})


@dataclass(frozen=True)
class Grid:
    """The whole request, names checked."""

    variants: tuple[Variant, ...]
    scenarios: tuple[str, ...]
    seeds: tuple[int, ...]
    presets: tuple[str, ...]
    defaults: dict[str, Any]  # the file's overrides of every run
    flags: dict[str, Any]  # the command line's
    where: dict[tuple[str | None, str], str]  # (variant's label or None for all, key) → file:line of an override
    trials: Trials = field(default_factory=Trials)  # to tune with; a sweep's are variants already
    shortfalls: tuple[str, ...] = ()  # of which methods fewer trials were drawn than asked for

    def overrides(self, variant: Variant) -> dict[str, Any]:
        """Return the overrides of a variant: the command line's above its own, its own above the file's.

        The weighting of losses is a part of the variant: where it has one, that of others and its options are dropped.
        """
        own = variant.overrides.get(WEIGHTING)
        defaults, flags = (
            level if own is None or level.get(WEIGHTING, own) == own else without_weighting(level)
            for level in (self.defaults, self.flags)
        )
        return {**defaults, **variant.overrides, **flags}

    def origin(self, variant: Variant, key: str) -> str:
        """Return the line that set `key` for this variant; empty if the command line did."""
        if key in self.flags:
            return ""
        return self.where.get((variant.label if key in variant.overrides else None, key), "")


def without_weighting(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides without the weighting of losses and its options."""
    return {key: value for key, value in overrides.items() if not is_below(key, (WEIGHTING, WEIGHTING_OPTIONS))}


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
    tune: bool = False  # keep trials apart from the variants


def read_grid(file: str | Path | None, flags: Flags) -> Grid:
    """Read file and flags into one checked request; a flag takes the place of the file's entry."""
    path = Path(file) if file is not None else None
    data, origins = load_yaml(path) if path else ({}, {})
    entries = build(GridFile, data, origins)
    base = path.parent if path else Path()
    if entries.preset is not None and entries.presets is not None:
        raise UsageError(f"{origins['presets']}: presets: preset is given too; give one of them")
    named = _file_variants(entries, origins, base)
    presets_key = "preset" if entries.presets is None else "presets"

    def words(flag: str, text: str | None, key: str, value: Any) -> list[tuple[str, str]]:
        """Return (word, where it stands), from the flag if it was given."""
        if text is not None:
            return [(word, flag) for word in split(text)]
        return _file_words(value, key, origins, base)

    algos = words("--algos", flags.algos, "algos", entries.algos)
    scenarios = words("--scenarios", flags.scenarios, "scenarios", entries.scenarios)
    presets = words("--preset", flags.preset, presets_key, getattr(entries, presets_key))
    chosen = _variants(algos, named, flags.overrides)
    if flags.algos is None:
        chosen += [variant for variant in named.values() if variant not in chosen]
    if not chosen:
        raise UsageError("which algorithms? --algos fedavg,fedhca2 or --algos all (fmtlbench list algorithms)")
    if not scenarios:
        raise UsageError("which scenarios? --scenarios st_mt_1 or --scenarios all (fmtlbench list scenarios)")
    for variant in chosen:
        _refuse_two_weightings(variant.overrides, flags.overrides, variant.label)
    trials = read_trials(entries, flags, origins)
    _check_ranges(trials, chosen, flags)
    shortfalls = trials.shortfalls(chosen)
    of_all = place_files(entries.set, base)
    where = _override_lines(entries, origins, named)
    if not flags.tune:
        chosen, where = _expand(chosen, trials, where)
    return Grid(
        _unlike(chosen),
        tuple(_scenarios(scenarios)),
        _seeds(flags.seeds, entries.seeds, origins),
        tuple(_presets(presets or [("nano", "")])),
        _with_rounds(of_all, entries.rounds, f"{origins.get('rounds')}: rounds: {entries.rounds}"),
        _with_rounds(flags.overrides, flags.rounds, f"--rounds {flags.rounds}"),
        where,
        trials if flags.tune else Trials(),
        tuple(shortfalls),
    )


def _check_ranges(trials: Trials, variants: Iterable[Variant], flags: Flags) -> None:
    """Refuse ranges for methods that are not in the grid, and of values that are set as well."""
    variants = list(variants)
    names = {name for variant in variants for name in variant.names} | ({BASELINE} if flags.tune else set())
    for name, one in trials.ranges.items():
        if one.algo is not None and one.algo not in names:
            raise unknown("method of this bench", one.algo, names, trials.lines[name])
        if one.key in flags.overrides or (one.key == "federation.rounds" and flags.rounds is not None):
            raise UsageError(f"{trials.lines[name]}: {one.key} is set by a flag too; give one of them")
        for variant in variants:
            if one.key in variant.overrides and (one.algo is None or one.algo in variant.names):
                raise UsageError(f"{trials.lines[name]}: {one.key} is set by {variant.label} too; give one of them")


def _expand(
    variants: Iterable[Variant], trials: Trials, where: Mapping[tuple[str | None, str], str]
) -> tuple[list[Variant], dict[tuple[str | None, str], str]]:
    """Return a variant for each trial, and the lines of overrides with those of the trials' ranges."""
    expanded, places = [], dict(where)
    for variant in variants:
        tried = trials.of(variant) or [{}]
        expanded += [variant.with_trial(trial) for trial in tried]
        places |= place_trials(variant, tried, trials, where)
    return expanded, places


def place_trials(
    variant: Variant, tried: Iterable[Mapping[str, Any]], trials: Trials, where: Mapping[tuple[str | None, str], str]
) -> dict[tuple[str | None, str], str]:
    """Return the lines of a variant's overrides and those of the ranges that its trials are from, for every trial."""
    own = {key: line for (label, key), line in where.items() if label == variant.label}
    lines = trials.lines_of(variant)
    return {
        (variant.with_trial(trial).label, key): line
        for trial in tried
        for key, line in {**own, **{key: lines[key] for key in trial}}.items()
    }


def parse_seeds(text: str, where: str) -> tuple[int, ...]:
    """Return the seeds of `0-4,7`: (0, 1, 2, 3, 4, 7)."""
    seeds: dict[int, None] = {}
    for word in text.split(","):
        first, dash, last = (part.strip() for part in word.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(
                f"{where}: {short_repr(text)}: expected whole numbers and ranges such as 0-4,7, got {word.strip()!r}"
            )
        if max(len(first), len(last)) > 18:
            raise UsageError(f"{where}: {short_repr(text)}: expected seeds of at most 18 digits")
        low, high = int(first), int(last or first)
        if high < low:
            raise UsageError(f"{where}: {text!r}: the range {word.strip()} runs backwards; {high}-{low}?")
        if high - low >= MOST_SEEDS:
            raise UsageError(f"{where}: {text!r}: {high - low + 1} seeds, expected at most {MOST_SEEDS}")
        seeds |= dict.fromkeys(range(low, high + 1))
    return tuple(seeds)


def _seeds(flag: str | None, entry: Any, origins: Mapping[str, str]) -> tuple[int, ...]:
    if flag is not None:
        return parse_seeds(flag, "--seeds")
    if entry is None:
        return (0,)
    listed = entry if isinstance(entry, list) else [entry]
    if not listed or any(isinstance(s, bool) or not isinstance(s, (int, str)) for s in listed):
        raise UsageError(f"{origins['seeds']}: seeds: expected numbers or ranges such as 0-4, got {short_repr(entry)}")
    return parse_seeds(",".join(map(str, listed)), f"{origins['seeds']}: seeds")


def _file_words(value: Any, key: str, origins: Mapping[str, str], base: Path) -> list[tuple[str, str]]:
    if value is None:
        return []
    listed = split(value) if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)):
        raise UsageError(f"{locate(key, origins)}: {key}: expected a name or a list of names, got {short_repr(value)}")
    found = []
    for i, word in enumerate(listed):
        where = f"{locate(f'{key}.{i}', origins)}: {key}"
        if not isinstance(word, str):
            raise UsageError(f"{where}: expected a name, got {short_repr(word)}")
        found.append((place_beside(word, base), where))
    return found


def _file_variants(entries: GridFile, origins: Mapping[str, str], base: Path) -> dict[str, Variant]:
    named: dict[str, Variant] = {}
    for i, entry in enumerate(entries.variants):
        line = f"{locate(f'variants.{i}.algo', origins)}: variants.{i}.algo"
        algo, weighting = read_method(place_beside(entry.algo, base), line)
        ALGORITHMS.resolve(algo, line)
        chosen = place_files(entry.set, base)
        _refuse_two_weightings(weighting, chosen, f"{line}: {entry.algo}")
        chosen |= weighting
        label = entry.name or label_of(algo, {**entry.set, **weighting})
        where = f"{locate(f'variants.{i}.name', origins)}: variants.{i}"
        if label in named:
            raise UsageError(f"{where}: a second variant called {label!r}; give it a name of its own")
        if entry.name in ALGORITHMS:
            raise UsageError(f"{where}: {label!r} is the name of a method; call the variant something else")
        named[label] = Variant(label, algo, chosen)
    return named


def _variants(
    words: Iterable[tuple[str, str]], named: Mapping[str, Variant], flags: Mapping[str, Any]
) -> list[Variant]:
    found = []
    for word, where in words:
        if word == "all":
            found += [Variant(name, name) for name in ALGORITHMS] + list(named.values())
        elif word in named:
            found.append(named[word])
        else:
            found.append(_inline(word, where, named, flags))
    return found


def _inline(word: str, where: str, named: Mapping[str, Variant], flags: Mapping[str, Any]) -> Variant:
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
    return Variant(label_of(algo, overrides), algo, overrides)


def _refuse_two_weightings(named: Mapping[str, Any], given: Mapping[str, Any], where: str) -> None:
    """Refuse `fedavg+uw` where another weighting is set as well."""
    if WEIGHTING in named and given.get(WEIGHTING, named[WEIGHTING]) != named[WEIGHTING]:
        raise UsageError(f"{where}: {WEIGHTING}={given[WEIGHTING]} is set too; give one of them")


def label_of(algo: str, overrides: Mapping[str, Any]) -> str:
    """Return what tables call a variant: files without their folders."""
    return extend_label(_short(algo), {key: _short(value) for key, value in overrides.items()})


def _short(value: Any) -> Any:
    return Path(value).stem if isinstance(value, str) and value.endswith(".py") else value


def extend_label(label: str, overrides: Mapping[str, Any]) -> str:
    """Return a label that also tells overrides: `fedavg[train.lr=0.1]`, and a weighting as in `fedavg+uw`."""
    told = dict(overrides)
    if (weighting := told.pop(WEIGHTING, None)) is not None:
        method, bracket, options = label.partition("[")
        label = f"{method}+{_short(weighting)}{bracket}{options}"
    if not told:
        return label
    words = ",".join(f"{key}={value}" for key, value in told.items())
    return f"{label[:-1]},{words}]" if label.endswith("]") else f"{label}[{words}]"


def _unlike(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Return each variant once; two different ones may not share a label."""
    kept: dict[str, Variant] = {}
    for variant in variants:
        if kept.setdefault(variant.label, variant) != variant:
            raise UsageError(f"two different methods are called {variant.label!r}; give one a name in a grid file")
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


def _override_lines(
    entries: GridFile, origins: Mapping[str, str], labels: Iterable[str]
) -> dict[tuple[str | None, str], str]:
    """Return the line of every override, by the label of its variant (None: all) and its key."""
    where = {(None, key): locate(f"set.{key}", origins) for key in entries.set}
    if entries.rounds is not None:
        where[None, "federation.rounds"] = origins["rounds"]
    for i, (label, entry) in enumerate(zip(labels, entries.variants, strict=True)):
        where |= {(label, key): locate(f"variants.{i}.set.{key}", origins) for key in entry.set}
    return where
