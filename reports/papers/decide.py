"""Whether a claim holds: comparisons, how many of them it takes, and what is known of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ...base.errors import UsageError, nearest
from ...base.words import say_count
from ..intervals import LEVEL, corrected, mean_p

HOLDS, FAILS, UNDECIDED, NO_NUMBERS = "holds", "does not hold", "undecided", "no numbers"
ANSWERS = (HOLDS, FAILS, UNDECIDED, NO_NUMBERS)
SHARES = {"all": lambda n: n, "most": lambda n: n // 2 + 1, "any": lambda n: 1}
ROUNDING = 1e-9  # differences of printed decimals are off by less
NAMED = 3  # comparisons that a statistic names

Value = Mapping[int, float] | float | None  # by seed; one printed number; missing


@dataclass(frozen=True)
class Leaf:
    """One comparison: a number that is positive where the claim is right."""

    what: str
    value: Value
    tie_counts: bool = False  # printed numbers that are equal are as claimed too


@dataclass(frozen=True)
class Need:
    """Parts, and how many of them must come out as claimed."""

    parts: tuple[Leaf | Need, ...]
    count: int


def need(parts: Sequence[Leaf | Need], share: Any = "all") -> Need:
    """Ask for a share of the parts: all, most (more than half), any, or a number of them."""
    return Need(tuple(parts), SHARES[share](len(parts)) if share in SHARES else share)


def check_share(share: Any, where: str) -> None:
    """Refuse what `need` does not know."""
    if isinstance(share, bool) or not (share in SHARES or (isinstance(share, int) and share > 0)):
        raise UsageError(f"{where}: {share!r} is no share; {nearest(str(share), SHARES)}, or a whole number above 0")


def join(function: Callable[..., float], values: Sequence[Value]) -> Value:
    """Apply a function to values seed by seed, over the seeds that all have, or to printed numbers.

    None where a value is missing, no seed is common, or printed and measured numbers would meet.
    """
    if not values or any(value is None for value in values):
        return None
    if all(isinstance(value, Mapping) for value in values):
        seeds = sorted(set.intersection(*(set(value) for value in values)))
        made = {seed: float(function(*(value[seed] for value in values))) for seed in seeds}
        return {seed: number for seed, number in made.items() if math.isfinite(number)} or None
    if any(isinstance(value, Mapping) for value in values):
        return None
    return float(function(*values))


def decide(tree: Need) -> tuple[str, str]:
    """Return (answer, statistic) of a claim's comparisons.

    A printed number is compared as it stands. Numbers by seed: Student's t-test of the mean difference, one-sided, Holm
    over all comparisons, once in each direction; a comparison that is significant in neither, or has one seed, is open.
    The claim holds if enough comparisons are as claimed, fails if too many are the other way, and is undecided between.
    """
    leaves = list(_leaves(tree))
    known = [leaf for leaf in leaves if leaf.value is not None]
    if not known:
        return NO_NUMBERS, _missing(leaves)
    signs, p = _signs(leaves)
    answer = {1: HOLDS, -1: FAILS, 0: UNDECIDED}[_count(tree, iter(signs))]
    return answer, "; ".join(filter(None, (_told(leaves, signs, p), _groups(tree, signs), _missing(leaves))))


def _leaves(tree: Leaf | Need) -> Iterator[Leaf]:
    if isinstance(tree, Leaf):
        yield tree
    else:
        for part in tree.parts:
            yield from _leaves(part)


def _count(tree: Leaf | Need, signs: Iterator[int]) -> int:
    """Return 1, -1 or 0: as claimed, the other way, open. `signs` are those of the leaves, in order."""
    if isinstance(tree, Leaf):
        return next(signs)
    found = [_count(part, signs) for part in tree.parts]
    if found.count(1) >= tree.count:
        return 1
    return -1 if len(found) - found.count(-1) < tree.count else 0


def _signs(leaves: Sequence[Leaf]) -> tuple[list[int], dict[int, float]]:
    """Return the sign of every leaf, and the corrected p of those that were tested, in the direction they point."""
    signs = [_printed_sign(leaf) for leaf in leaves]
    upward = {i: _one_sided(leaf.value) for i, leaf in enumerate(leaves) if _seeds(leaf) > 1}
    up = dict(zip(upward, corrected(list(upward.values()))))
    down = dict(zip(upward, corrected([1 - p for p in upward.values()])))
    for i in upward:
        signs[i] = int(up[i] < 1 - LEVEL) - int(down[i] < 1 - LEVEL)
    return signs, {i: min(up[i], down[i]) for i in upward}


def _seeds(leaf: Leaf) -> int:
    return len(leaf.value) if isinstance(leaf.value, Mapping) else 0


def _printed_sign(leaf: Leaf) -> int:
    if leaf.value is None or isinstance(leaf.value, Mapping):
        return 0
    if abs(leaf.value) <= ROUNDING:
        return 1 if leaf.tie_counts else -1
    return 1 if leaf.value > 0 else -1


def _one_sided(values: Mapping[int, float]) -> float:
    """Compute the p that the mean is not above 0."""
    numbers = list(values.values())
    half = mean_p(numbers) / 2
    return half if fmean(numbers) > 0 else 1 - half


# -- in words ----------------------------------------------------------------------------------------------------------


def _told(leaves: Sequence[Leaf], signs: Sequence[int], p: Mapping[int, float]) -> str:
    known = [i for i, leaf in enumerate(leaves) if leaf.value is not None]
    seeds = sorted({_seeds(leaves[i]) for i in known} - {0})
    count = say_count(len(known), "comparison")
    if p:
        over = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
        how = f"t-tests over {over} seeds, Holm over {say_count(len(p), 'comparison')}"
    else:
        how = "one seed, no test" if seeds else "as printed, one number each, no test"
    sorts = {1: "as claimed", -1: "the other way", 0: "undecided"}
    members = {sign: [i for i in known if signs[i] == sign] for sign in sorts}
    tally = ", ".join(f"{len(of)} {sorts[sign]}" for sign, of in members.items() if of)
    named = members[-1] or members[0] or members[1]
    named = sorted(named, key=lambda i: _mean(leaves[i]))
    shown = [_one(leaves[i], p.get(i)) for i in named[:NAMED]]
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    head = (
        "" if len(known) == len(named) else {1: "closest: ", -1: "the other way: ", 0: "undecided: "}[signs[named[0]]]
    )
    return f"{how}: {tally} of {count}; {head}{', '.join(shown)}{more}"


def _groups(tree: Need, signs: Sequence[int]) -> str:
    """Say how many groups of comparisons are as claimed, where the claim counts groups."""
    groups = [part for part in tree.parts if isinstance(part, Need)]
    if len(groups) < 2 or len(groups) < len(tree.parts):
        return ""
    order = iter(signs)
    right = sum(_count(group, order) == 1 for group in groups)
    return f"{right} of {len(groups)} groups as claimed, {tree.count} needed"


def _mean(leaf: Leaf) -> float:
    return fmean(leaf.value.values()) if isinstance(leaf.value, Mapping) else leaf.value


def _one(leaf: Leaf, p: float | None) -> str:
    mean = _mean(leaf)
    number = "0" if abs(mean) <= ROUNDING else f"{mean:+.4g}".replace("-", "−")
    return f"{leaf.what} {number}" + (f" (p {p:.2g})" if p is not None else "")


def _missing(leaves: Sequence[Leaf]) -> str:
    lost = list(dict.fromkeys(leaf.what for leaf in leaves if leaf.value is None))
    more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
    return f"no numbers: {', '.join(lost[:NAMED])}{more}" if lost else ""
