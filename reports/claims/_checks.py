"""The kinds of checks on tables: each turns cells into comparisons that are positive where the claim is right.

Everywhere, two cells are compared if they agree in all that the check does not name: rows of one block, one column, one
table. Where the paper prints a word instead of a number, its claims are not about that cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, ClassVar, Literal

import numpy as np

from ...base.errors import UsageError
from ..published import Published
from ._cells import (
    COLUMN,
    SPREAD,
    Place,
    Pool,
    Selector,
    check_columns,
    check_selector,
    fits,
    listed,
    places_of,
    say_pair,
    say_place,
)
from ._decide import Leaf, Need, Value, check_share, join, need

WORDS = {"better": "over", "worse": "below", "higher": "above", "lower": "below"}


@dataclass(frozen=True, kw_only=True)
class TableCheck:
    """What all checks on tables have: which cells they look at, and how many comparisons must be as claimed."""

    selectors: ClassVar[tuple[str, ...]] = ("among",)
    kind: str
    columns: tuple[str, ...]  # names, `scores` or `deltas`
    among: dict[str, Any] = field(default_factory=dict)  # only these cells
    need: Any = "all"  # all, most, any, or how many

    def verify(self, tables: Sequence[Published], where: str) -> None:
        """Refuse what the tables do not have."""
        check_columns(self.columns, tables, f"{where}.columns")
        for name in self.selectors:
            check_selector(getattr(self, name) or {}, tables, f"{where}.{name}")
        check_share(self.need, f"{where}.need")

    def places(self, tables: Sequence[Published]) -> list[Place]:
        """Return the cells to look at."""
        return [place for table in tables for place in places_of(table, self.columns) if fits(place, self.among)]

    def tree(self, pool: Pool) -> Need:
        """Return the comparisons, and how many of them the claim takes."""
        raise NotImplementedError


def _better(place: Place) -> int:
    """Return 1 for a column where higher is better, -1 where lower is."""
    if place.higher_is_better is None:
        raise UsageError(f"{place.table.name}: {place.column} has no direction; compare it by higher or lower")
    return 1 if place.higher_is_better else -1


def _pairs(pool: Pool, rows: Selector, than: Selector | None) -> Iterator[tuple[Place, Place]]:
    """Return the cells of `rows`, each beside those of `than` (or all others) that agree in what neither names."""
    ours = pool.select(rows)
    theirs = [place for place in pool.places if not fits(place, rows)] if than is None else pool.select(than)
    free = {*rows, *(than or ())}
    for place in ours:
        for other in pool.partners(place, theirs, free):
            yield place, other


# -- one cell against another ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Compare(TableCheck):
    """Rows are better (worse, higher, lower) than others, by at least and at most so much."""

    selectors: ClassVar[tuple[str, ...]] = ("among", "rows", "than")
    kind: Literal["better", "worse", "higher", "lower"]
    rows: dict[str, Any]
    than: dict[str, Any] | None = None  # None: all others
    at_least: float = 0.0  # in the columns' unit
    at_most: float | None = None
    ties: bool = False  # equal printed numbers count
    per: tuple[str, ...] = ()  # comparisons that agree in these form a group
    each: Any = "all"  # how many comparisons of a group; `need` then counts groups

    def verify(self, tables: Sequence[Published], where: str) -> None:
        """Refuse what the tables do not have."""
        super().verify(tables, where)
        check_share(self.each, f"{where}.each")
        check_selector(dict.fromkeys(self.per, ()), tables, f"{where}.per")

    def tree(self, pool: Pool) -> Need:
        """Return a comparison for each pair of cells."""
        groups: dict[tuple, list[Leaf]] = {}
        for place, other in _pairs(pool, self.rows, self.than):
            group = tuple(place.coordinates.get(key) for key in self.per or place.coordinates)
            groups.setdefault(group, []).extend(self._leaves(pool, place, other))
        if self.per:
            return need([need(leaves, self.each) for leaves in groups.values()], self.need)
        return need([leaf for leaves in groups.values() for leaf in leaves], self.need)

    def _leaves(self, pool: Pool, place: Place, other: Place) -> list[Leaf]:
        sign = {"higher": 1, "lower": -1}.get(self.kind) or _better(place) * {"better": 1, "worse": -1}[self.kind]
        apart = join(lambda a, b: sign * (a - b), [pool.value(place), pool.value(other)])
        what, at_least, at_most = say_pair(place, other, WORDS[self.kind], pool.has_tables), self.at_least, self.at_most
        beyond = f"{what}, beyond {at_least:g}" if at_least else what
        leaves = [Leaf(beyond, join(lambda d: d - at_least, [apart]), self.ties)]
        if at_most is not None:
            leaves.append(Leaf(f"{what}, up to {at_most:g}", join(lambda d: at_most - d, [apart]), self.ties))
        return leaves


# -- changes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GainsMore(TableCheck):
    """From `start` to `end`, rows gain more (or lose less) than others do."""

    selectors: ClassVar[tuple[str, ...]] = ("among", "rows", "than", "start", "end")
    kind: Literal["gains_more"]
    rows: dict[str, Any]
    start: dict[str, Any]
    end: dict[str, Any]
    than: dict[str, Any] | None = None

    def tree(self, pool: Pool) -> Need:
        """Return the difference of two differences for each pair of rows."""
        began, leaves = pool.select(self.start), []
        ends = Pool(pool.select(self.end), pool.evidence, pool.alike)
        change = {*self.start, *self.end}
        for ours, theirs in _pairs(ends, self.rows, self.than):
            starts = (pool.partners(place, began, change) for place in (ours, theirs))
            for first, second in product(*starts):
                sign, cells = _better(ours), (ours, first, theirs, second)
                value = join(lambda a, b, c, d, s=sign: s * ((a - b) - (c - d)), [pool.value(cell) for cell in cells])
                leaves.append(Leaf(f"gain of {say_pair(ours, theirs)}", value))
        return need(leaves, self.need)


@dataclass(frozen=True, kw_only=True)
class Along(TableCheck):
    """Numbers improve (or decline) along ordered rows: at every step, or as a trend (the slope over places)."""

    kind: Literal["improves", "declines"]
    along: dict[str, Any]  # one coordinate, its values in order
    by: Literal["steps", "trend"] = "steps"
    selectors: ClassVar[tuple[str, ...]] = ("among", "along")

    def verify(self, tables: Sequence[Published], where: str) -> None:
        """Refuse what the tables do not have."""
        super().verify(tables, where)
        if len(self.along) != 1 or len(listed(*self.along.values())) < 2:
            raise UsageError(f"{where}.along: expected one head with at least two values in order, got {self.along}")

    def tree(self, pool: Pool) -> Need:
        """Return a comparison per step, or one per series."""
        ((head, order),) = self.along.items()
        series: dict[tuple, list[Place]] = {}
        for place in sorted(pool.select(self.along), key=lambda place: order.index(place.coordinates[head])):
            series.setdefault(tuple(pool.identity(place, [head]).items()), []).append(place)
        leaves = []
        for members in series.values():
            sign = _better(members[0]) * {"improves": 1, "declines": -1}[self.kind]
            if self.by == "steps":
                for before, after in pairwise(members):
                    value = join(lambda a, b, s=sign: s * (b - a), [pool.value(before), pool.value(after)])
                    leaves.append(Leaf(say_pair(after, before), value))
            elif len(members) > 1:
                at = [order.index(place.coordinates[head]) for place in members]
                value = join(lambda *y, x=at, s=sign: s * np.polyfit(x, y, 1)[0], list(map(pool.value, members)))
                leaves.append(Leaf(f"slope of {say_place(members[0], [head])}", value))
        return need(leaves, self.need)


# -- several cells at once ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Outlier(TableCheck):
    """One row lies higher above all others than those lie apart."""

    selectors: ClassVar[tuple[str, ...]] = ("among", "rows")
    kind: Literal["outlier"]
    rows: dict[str, Any]

    def tree(self, pool: Pool) -> Need:
        """Return, per column, by how much the distance to the next row exceeds the others' range."""
        groups: dict[int, tuple[Place, list[Place]]] = {}
        for place, other in _pairs(pool, self.rows, None):
            groups.setdefault(id(place), (place, []))[1].append(other)
        leaves = []
        for place, others in groups.values():
            value = join(lambda x, *y: (x - max(y)) - (max(y) - min(y)), [pool.value(p) for p in (place, *others)])
            leaves.append(Leaf(f"{say_place(place)}: distance beyond the others' range", value))
        return need(leaves, self.need)


@dataclass(frozen=True, kw_only=True)
class SpreadDiffers(TableCheck):
    """Within a row, the spread over clients in percent of the score differs between columns by a factor."""

    kind: Literal["spread_differs"]
    times: float = 2.0

    def places(self, tables: Sequence[Published]) -> list[Place]:
        """Return the cells to look at: those with a spread beside them."""
        return [place for place in super().places(tables) if place.column + SPREAD in place.row]

    def tree(self, pool: Pool) -> Need:
        """Return a comparison per row: the largest relative spread beyond so many times the smallest."""
        rows: dict[tuple, list[Place]] = {}
        for place in pool.places:
            rows.setdefault(tuple(pool.identity(place, [COLUMN]).items()), []).append(place)
        leaves = []
        for members in rows.values():
            shares: list[Value] = [
                join(lambda s, v: 100 * s / v, [pool.value(p, SPREAD), pool.value(p)]) for p in members
            ]
            value = join(lambda *shares: max(shares) - self.times * min(shares), shares)
            leaves.append(Leaf(f"{say_place(members[0], [COLUMN])}: largest beyond {self.times:g} × smallest", value))
        return need(leaves, self.need)


@dataclass(frozen=True, kw_only=True)
class NoWinner(TableCheck):
    """No row is the best in every column of every table: each is beaten somewhere."""

    kind: Literal["no_winner"]
    rows_are: tuple[str, ...]  # the heads that tell rows apart, in all tables

    def verify(self, tables: Sequence[Published], where: str) -> None:
        """Refuse what the tables do not have."""
        super().verify(tables, where)
        check_selector(dict.fromkeys(self.rows_are, ()), tables, f"{where}.rows_are")

    def tree(self, pool: Pool) -> Need:
        """Return for each row that all tables have its comparisons with all others, one of which must beat it."""
        cells: dict[tuple, list[Place]] = {}
        for place in pool.places:
            here = pool.identity(place)
            cells.setdefault(tuple(here[head] for head in self.rows_are), []).append(place)
        tables = {place.table.name for place in pool.places}
        rows = []
        for members in cells.values():
            if {place.table.name for place in members} == tables:
                leaves = []
                for place in members:
                    for other in pool.partners(place, pool.places, self.rows_are):
                        sign, both = _better(place), [pool.value(other), pool.value(place)]
                        leaves.append(
                            Leaf(say_pair(other, place, tables=True), join(lambda a, b, s=sign: s * (a - b), both))
                        )
                rows.append(need(leaves, "any"))
        return need(rows, self.need)


KINDS: dict[str, type[TableCheck]] = {
    **dict.fromkeys(("better", "worse", "higher", "lower"), Compare),
    "gains_more": GainsMore,
    **dict.fromkeys(("improves", "declines"), Along),
    "outlier": Outlier,
    "spread_differs": SpreadDiffers,
    "no_winner": NoWinner,
}
