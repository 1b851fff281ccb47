"""What is asked for, before it is runs of a plan: a method in a scenario, a preset and some seeds.

Grids, probes, recipes and tuning make these; `plan.make_plan` makes runs of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..algorithms import ALGORITHMS, Algorithm
from ..base.errors import UsageError, short_repr
from ..config.presets import read_preset
from ..config.setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS, is_below

BASELINE = "local"  # every report compares with it
MOST_SEEDS = 10_000  # more is a typing mistake


@dataclass(frozen=True, eq=False)
class Asked:
    """Runs of one method in one setting, for every seed; two that ask for the same are equal."""

    label: str  # what tables call it
    algo: str  # the method, by name or path
    scenario: str = ""  # by name or path; a grid's methods have none yet
    preset: str = "nano"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    own: tuple[str, ...] = ()  # keys of overrides that set it apart from others of its table
    lines: Mapping[str, str] = field(default_factory=dict)  # key → where it was written, for messages

    @cached_property
    def key(self) -> str:
        named = [self.label, self.algo, self.scenario, self.preset, dict(self.overrides), self.seeds]
        return json.dumps(named, sort_keys=True, default=str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asked) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def method(self) -> type[Algorithm]:
        """Return the class of the method."""
        return ALGORITHMS.resolve(self.algo, "--algos")

    @property
    def names(self) -> set[str]:
        """Return what it may be called where ranges are given: its label or its method."""
        return {self.label, label_of(self.algo, {}), self.method.name}

    @property
    def is_baseline(self) -> bool:
        """Say whether others are compared with it: a local one that weighs its losses equally."""
        return self.algo == BASELINE and self.overrides.get(WEIGHTING, EQUAL) == EQUAL

    def with_values(self, values: Mapping[str, Any], lines: Mapping[str, str] | None = None) -> Asked:
        """Return the same with other values, which its label does not tell; `lines` say where they were written."""
        return replace(self, overrides=lay_above(self.overrides, values), lines={**self.lines, **(lines or {})})

    def with_trial(self, values: Mapping[str, Any], lines: Mapping[str, str] | None = None) -> Asked:
        """Return the same with the values of a trial, which its label tells."""
        told = replace(self, label=extend_label(self.label, values), own=(*self.own, *values))
        return told.with_values(values, lines)


def lay_above(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides with others above them; where these name a weighting, another one goes with its options."""
    named = above.get(WEIGHTING)
    if named is not None and below.get(WEIGHTING, named) != named:
        below = without_weighting(below)
    return {**below, **above}


def without_weighting(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides without the weighting of losses and its options."""
    return {key: value for key, value in overrides.items() if not is_below(key, (WEIGHTING, WEIGHTING_OPTIONS))}


def without_options(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides without the options of the method."""
    return {key: value for key, value in overrides.items() if not key.startswith("algo.")}


# -- labels ------------------------------------------------------------------------------------------------------------


def label_of(algo: str, overrides: Mapping[str, Any]) -> str:
    """Return what tables call a method with values of its own: files without their folders."""
    return extend_label(_short(algo), {key: _short(value) for key, value in overrides.items()})


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


def _short(value: Any) -> Any:
    return Path(value).stem if isinstance(value, str) and value.endswith(".py") else value


# -- what others are compared with -------------------------------------------------------------------------------------


def by_table(asked: Iterable[Asked]) -> list[list[Asked]]:
    """Return those of one preset and scenario together, in the order in which these come."""
    tables: dict[tuple[str, str], list[Asked]] = {}
    for one in asked:
        tables.setdefault((one.preset, one.scenario), []).append(one)
    return list(tables.values())


def with_baselines(asked: Iterable[Asked]) -> list[Asked]:
    """Return all that is asked for, with the local runs that they are compared with behind those of their table."""
    whole = list(asked)
    plainly = weigh_by_themselves(whole)
    return [one for group in by_table(whole) for one in (*group, *list_baselines(group, group, plainly))]


def list_baselines(asked: Iterable[Asked], there: Iterable[Asked], plainly: bool) -> list[Asked]:
    """Return the local runs that others are compared with, unless they are `there`.

    A method with a weighting is compared with the plain local run too; `plainly` says that it must name its own.
    """
    known = [dict(one.overrides) for one in there if one.algo == BASELINE]
    plain = {WEIGHTING: EQUAL} if plainly else {}
    needed: dict[Asked, None] = {}
    for one in asked:
        overrides = {**without_weighting(without_options(one.overrides)), **plain}
        own = {key: overrides[key] for key in one.own if key in overrides} | plain
        needed[replace(one, label=label_of(BASELINE, own), algo=BASELINE, overrides=overrides, own=tuple(own))] = None
    return [one for one in needed if dict(one.overrides) not in known]


def weigh_by_themselves(asked: Iterable[Asked]) -> bool:
    """Return whether some run has a weighting of losses that is not its own: of all, or of the preset."""
    whole = list(asked)
    of_presets = [
        (read_preset(name).get("train") or {}).get("weighting", EQUAL)
        for name in dict.fromkeys(one.preset for one in whole)
    ]
    of_all = [one.overrides.get(WEIGHTING, EQUAL) for one in whole if WEIGHTING not in one.own]
    return any(name != EQUAL for name in (*of_presets, *of_all))


# -- seeds -------------------------------------------------------------------------------------------------------------


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
