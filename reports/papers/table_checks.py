"""The kinds of checks on tables: each turns cells into comparisons that are positive where the claim is right.

Everywhere, two cells are compared if they agree in all that the check does not name: rows of one block, one column, one
table. Where the paper prints a word instead of a number, its claims are not about that cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from ...base.errors import UsageError, unknown
from .decide import Leaf, Need, Value, check_share, join, need
from .published import Published, as_list, fits, number

TABLE, COLUMN = "table", "column"  # coordinates of every cell beside the heads of its row
SCORES, DELTAS = "scores", "deltas"  # in place of columns: all of a table
SPREAD = "_std"  # behind the name of a column: the spread over clients
WORDS = {"better": "over", "worse": "below", "higher": "above", "lower": "below"}

Selector = Mapping[str, Any]  # coordinate → a value, or a list of them
Alike = Mapping[str, Mapping[str, str]]  # head → name → the name that counts


# -- the cells of published tables -------------------------------------------------------------------------------------


class Evidence(Protocol):
    """The numbers of one published table: printed ones, or measured ones by seed."""

    def values(self, row: Mapping[str, str], column: str) -> Value:
        """Return the numbers of a cell of the table's rows, in the paper's unit and scale (`Meaning.times`).

        By seed if they were measured; one number if it is printed; None if there is none. Columns are those of the
        table: scores, Δ, costs, and `…_std`, the spread over clients.
        """


@dataclass(frozen=True, eq=False)
class TableCell:
    """One cell of one published table, and what tells its numbers."""

    table: Published
    row: Mapping[str, str]
    column: str
    evidence: Evidence | None = None
    alike: Alike = field(default_factory=dict)

    @property
    def coordinates(self) -> dict[str, str]:
        return {TABLE: self.table.name, **{head: self.row[head] for head in self.table.heads}, COLUMN: self.column}

    @property
    def better(self) -> int:
        """Return 1 where higher is better, -1 where lower is; refuse a column in which neither is."""
        if self.column in self.table.scores:
            return 1 if self.table.scores[self.column].higher_is_better else -1
        if self.column in self.table.deltas:
            return 1
        raise UsageError(f"{self.table.name}: {self.column} has no direction; compare it by higher or lower")

    def value(self, suffix: str = "") -> Value:
        """Return the cell's numbers; None for a table without evidence."""
        return None if self.evidence is None else self.evidence.values(self.row, self.column + suffix)

    def identity(self, free: Iterable[str] = ()) -> dict[str, Any]:
        """Return what a cell must share with another to be compared: coordinates by meaning, without `free` ones."""
        found: dict[str, Any] = {}
        for key, text in self.coordinates.items():
            if key not in free:
                found[key] = self.alike.get(key, {}).get(text, text)
        if COLUMN in found:
            found[COLUMN] = self.table.scores.get(self.column, self.column)
        return found

    def partners(self, others: Iterable[TableCell], free: Iterable[str]) -> list[TableCell]:
        """Return those of the others that agree with the cell in everything that both have, apart from `free`."""
        mine = self.identity(free)
        found = []
        for other in others:
            theirs = other.identity(free)
            if other is not self and all(mine[key] == theirs[key] for key in mine.keys() & theirs.keys()):
                found.append(other)
        return found

    def words(self, without: Iterable[str] = ()) -> str:
        """Name the cell by its coordinates."""
        return " ".join(text for key, text in self.coordinates.items() if key != TABLE and key not in without)


Cells = Sequence[TableCell]


def select(cells: Iterable[TableCell], selector: Selector) -> list[TableCell]:
    """Return the cells that a selector names; one without the coordinate is not meant."""
    return [cell for cell in cells if fits(cell.coordinates, selector)]


def say_pair(ours: TableCell, theirs: TableCell, word: str = "over", tables: bool = False) -> str:
    """Name two cells by what they differ in, then by what they share; with the table if there are several."""
    mine, other = ({**cell.coordinates, TABLE: cell.table.entry["table"]} for cell in (ours, theirs))
    keys = [key for key in {**mine, **other} if mine.get(key) != other.get(key)]
    left, right = (" ".join(side[key] for key in keys if key in side) for side in (mine, other))
    shared = [text for key, text in mine.items() if key not in keys and (tables or key != TABLE)]
    return f"{left} {word} {right}" + (f" ({', '.join(shared)})" if shared else "")


def check_selector(selector: Selector, tables: Sequence[Published], where: str) -> None:
    """Refuse coordinates, and values of them, that no table has."""
    known: dict[str, set[str]] = {TABLE: {table.name for table in tables}}
    for table in tables:
        known.setdefault(COLUMN, set()).update(table.columns)
        for head in table.heads:
            known.setdefault(head, set()).update(row[head] for row in table.rows)
    for key, wanted in selector.items():
        if key not in known:
            raise unknown("head of rows", key, known, where)
        for value in as_list(wanted):
            if value not in known[key]:
                raise unknown(key, str(value), known[key], where)


# -- what all checks have ----------------------------------------------------------------------------------------------


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
        known = {SCORES, DELTAS, *(name for table in tables for name in table.columns)}
        for column in self.columns:
            if column not in known:
                raise unknown("column", column, known, f"{where}.columns")
        for name in self.selectors:
            check_selector(getattr(self, name) or {}, tables, f"{where}.{name}")
        check_share(self.need, f"{where}.need")

    def cells(
        self, tables: Sequence[Published], evidence: Mapping[str, Evidence] | None = None, alike: Alike | None = None
    ) -> list[TableCell]:
        """Return the cells to look at: those that the paper does not fill with a word."""
        found = []
        for table in tables:
            groups = {SCORES: table.scores, DELTAS: table.deltas}
            chosen = [c for c in table.columns if any(c == name or c in groups.get(name, ()) for name in self.columns)]
            here = (evidence or {}).get(table.name)
            found += [TableCell(table, row, c, here, alike or {}) for row in table.rows for c in chosen]
        return [cell for cell in select(found, self.among) if not _is_word(cell.row[cell.column])]

    def tree(self, cells: Cells) -> Need:
        """Return the comparisons, and how many of them the claim takes."""
        raise NotImplementedError


def _is_word(text: str) -> bool:
    return bool(text) and number(text) is None


def _pairs(cells: Cells, rows: Selector, than: Selector | None) -> Iterator[tuple[TableCell, TableCell]]:
    """Return the cells of `rows`, each beside those of `than` (or all others) that agree in what neither names."""
    ours = select(cells, rows)
    theirs = [c for c in cells if not fits(c.coordinates, rows)] if than is None else select(cells, than)
    free = {*rows, *(than or ())}
    for cell in ours:
        for other in cell.partners(theirs, free):
            yield cell, other


def _in_series(cells: Cells, free: str) -> list[list[TableCell]]:
    """Group the cells that agree in everything but one coordinate."""
    series: dict[tuple, list[TableCell]] = {}
    for cell in cells:
        series.setdefault(tuple(cell.identity([free]).items()), []).append(cell)
    return list(series.values())


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

    def tree(self, cells: Cells) -> Need:
        """Return a comparison for each pair of cells."""
        groups: dict[tuple, list[Leaf]] = {}
        for cell, other in _pairs(cells, self.rows, self.than):
            group = tuple(cell.coordinates.get(key) for key in self.per or cell.coordinates)
            groups.setdefault(group, []).extend(self._leaves(cell, other, len({one.table.name for one in cells}) > 1))
        if self.per:
            return need([need(leaves, self.each) for leaves in groups.values()], self.need)
        return need([leaf for leaves in groups.values() for leaf in leaves], self.need)

    def _leaves(self, cell: TableCell, other: TableCell, tables: bool) -> list[Leaf]:
        sign = {"higher": 1, "lower": -1}.get(self.kind) or cell.better * {"better": 1, "worse": -1}[self.kind]
        apart = join(lambda a, b: sign * (a - b), [cell.value(), other.value()])
        what, at_least, at_most = say_pair(cell, other, WORDS[self.kind], tables), self.at_least, self.at_most
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

    def tree(self, cells: Cells) -> Need:
        """Return the difference of two differences for each pair of rows."""
        began, leaves = select(cells, self.start), []
        change = {*self.start, *self.end}
        for ours, theirs in _pairs(select(cells, self.end), self.rows, self.than):
            for first, second in product(ours.partners(began, change), theirs.partners(began, change)):
                values = [cell.value() for cell in (ours, first, theirs, second)]
                value = join(lambda a, b, c, d, s=ours.better: s * ((a - b) - (c - d)), values)
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
        if len(self.along) != 1 or len(as_list(*self.along.values())) < 2:
            raise UsageError(f"{where}.along: expected one head with at least two values in order, got {self.along}")

    def tree(self, cells: Cells) -> Need:
        """Return a comparison per step, or one per series."""
        ((head, order),) = self.along.items()
        ordered = sorted(select(cells, self.along), key=lambda cell: order.index(cell.coordinates[head]))
        leaves = []
        for members in _in_series(ordered, head):
            sign = members[0].better * {"improves": 1, "declines": -1}[self.kind]
            if self.by == "steps":
                for before, after in pairwise(members):
                    value = join(lambda a, b, s=sign: s * (b - a), [before.value(), after.value()])
                    leaves.append(Leaf(say_pair(after, before), value))
            elif len(members) > 1:
                at = [order.index(cell.coordinates[head]) for cell in members]
                values = [cell.value() for cell in members]
                value = join(lambda *y, x=at, s=sign: s * np.polyfit(x, y, 1)[0], values)
                leaves.append(Leaf(f"slope of {members[0].words([head])}", value))
        return need(leaves, self.need)


# -- several cells at once ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Outlier(TableCheck):
    """One row lies higher above all others than those lie apart."""

    selectors: ClassVar[tuple[str, ...]] = ("among", "rows")
    kind: Literal["outlier"]
    rows: dict[str, Any]

    def tree(self, cells: Cells) -> Need:
        """Return, per column, by how much the distance to the next row exceeds the others' range."""
        groups: dict[TableCell, list[TableCell]] = {}
        for cell, other in _pairs(cells, self.rows, None):
            groups.setdefault(cell, []).append(other)
        leaves = []
        for cell, others in groups.items():
            values = [one.value() for one in (cell, *others)]
            value = join(lambda x, *y: (x - max(y)) - (max(y) - min(y)), values)
            leaves.append(Leaf(f"{cell.words()}: distance beyond the others' range", value))
        return need(leaves, self.need)


@dataclass(frozen=True, kw_only=True)
class SpreadDiffers(TableCheck):
    """Within a row, the spread over clients in percent of the score differs between columns by a factor."""

    kind: Literal["spread_differs"]
    times: float = 2.0

    def tree(self, cells: Cells) -> Need:
        """Return a comparison per row: the largest relative spread beyond so many times the smallest."""
        leaves = []
        for members in _in_series([cell for cell in cells if cell.column + SPREAD in cell.row], COLUMN):
            shares = [join(lambda s, v: 100 * s / v, [cell.value(SPREAD), cell.value()]) for cell in members]
            value = join(lambda *shares: max(shares) - self.times * min(shares), shares)
            leaves.append(Leaf(f"{members[0].words([COLUMN])}: largest beyond {self.times:g} × smallest", value))
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

    def tree(self, cells: Cells) -> Need:
        """Return for each row that all tables have its comparisons with all others, one of which must beat it."""
        by_row: dict[tuple, list[TableCell]] = {}
        for cell in cells:
            here = cell.identity()
            by_row.setdefault(tuple(here[head] for head in self.rows_are), []).append(cell)
        tables, rows = {cell.table.name for cell in cells}, []
        for members in by_row.values():
            if {cell.table.name for cell in members} == tables:
                leaves = []
                for cell in members:
                    for other in cell.partners(cells, self.rows_are):
                        value = join(lambda a, b, s=cell.better: s * (a - b), [other.value(), cell.value()])
                        leaves.append(Leaf(say_pair(other, cell, tables=True), value))
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
