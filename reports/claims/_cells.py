"""The numbers of published tables as cells that know their table, row and column, and which of them may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ...base.errors import unknown
from ..published import Published, number
from ._decide import Value

TABLE, COLUMN = "table", "column"  # coordinates of every cell beside the heads of its row
SCORES, DELTAS = "scores", "deltas"  # in place of columns: all of a table
SPREAD = "_std"  # behind the name of a column: the spread over clients

Selector = Mapping[str, Any]  # coordinate → a value, or a list of them


class Evidence(Protocol):
    """The numbers of one published table: printed ones, or measured ones by seed."""

    table: Published

    def values(self, row: Mapping[str, str], column: str) -> Value:
        """Return the numbers of a cell of `table.rows`, in the paper's unit and scale (`Meaning.times`).

        By seed if they were measured; one number if it is printed; None if there is none. Columns are those of the
        table: scores, Δ, costs, and `…_std`, the spread over clients.
        """


@dataclass(frozen=True)
class PrintedEvidence:
    """The numbers that the paper prints."""

    table: Published

    def values(self, row: Mapping[str, str], column: str) -> float | None:
        """Return the printed number; None for an empty cell or a word."""
        return number(row[column])


@dataclass(frozen=True)
class Place:
    """One cell of one table."""

    table: Published
    row: Mapping[str, str]
    column: str

    @property
    def coordinates(self) -> dict[str, str]:
        return {TABLE: self.table.name, **{head: self.row[head] for head in self.table.heads}, COLUMN: self.column}

    @property
    def higher_is_better(self) -> bool | None:
        """Return the column's direction; None where more is neither better nor worse."""
        if self.column in self.table.scores:
            return self.table.scores[self.column].higher_is_better
        return True if self.column in self.table.deltas else None

    @property
    def has_word(self) -> bool:
        """Whether the paper prints a word (NULL, OOM): then its claims are not about this cell."""
        text = self.row[self.column]
        return bool(text) and number(text) is None


@dataclass(frozen=True)
class Pool:
    """The cells that a check looks at, and what is known of their numbers."""

    places: Sequence[Place]
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    alike: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # head → name → the name that counts

    @property
    def has_tables(self) -> bool:
        """Whether there are cells of several tables."""
        return len({place.table.name for place in self.places}) > 1

    def value(self, place: Place, suffix: str = "") -> Value:
        """Return a cell's numbers; None for a table without evidence."""
        found = self.evidence.get(place.table.name)
        return None if found is None else found.values(place.row, place.column + suffix)

    def identity(self, place: Place, free: Iterable[str] = ()) -> dict[str, Any]:
        """Return what a cell must share with another to be compared: coordinates by meaning, without `free` ones."""
        found: dict[str, Any] = {}
        for key, text in place.coordinates.items():
            if key not in free:
                found[key] = self.alike.get(key, {}).get(text, text)
        if COLUMN in found:
            found[COLUMN] = place.table.scores.get(place.column, place.column)
        return found

    def select(self, selector: Selector) -> list[Place]:
        """Return the cells that a selector names."""
        return [place for place in self.places if fits(place, selector)]

    def partners(self, place: Place, others: Iterable[Place], free: Iterable[str]) -> list[Place]:
        """Return those of the others that agree with a cell in everything that both have, apart from `free`."""
        mine = self.identity(place, free)
        found = []
        for other in others:
            theirs = self.identity(other, free)
            if other is not place and all(mine[key] == theirs[key] for key in mine.keys() & theirs.keys()):
                found.append(other)
        return found


def fits(place: Place, selector: Selector) -> bool:
    """Whether a selector names a cell; one without the coordinate is not meant."""
    here = place.coordinates
    return all(here.get(key) in listed(wanted) for key, wanted in selector.items())


def listed(wanted: Any) -> list[Any]:
    """Return the values of one coordinate of a selector as a list."""
    return list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]


def places_of(table: Published, columns: Sequence[str]) -> list[Place]:
    """Return the cells of a table in the named columns that the paper does not fill with a word."""
    chosen = [name for name in table.columns if any(_named(table, name, column) for column in columns)]
    places = [Place(table, row, column) for row in table.rows for column in chosen]
    return [place for place in places if not place.has_word]


def _named(table: Published, name: str, column: str) -> bool:
    return name == column or name in {SCORES: table.scores, DELTAS: table.deltas}.get(column, ())


def check_columns(columns: Sequence[str], tables: Sequence[Published], where: str) -> None:
    """Refuse columns that no table has."""
    known = {SCORES, DELTAS, *(name for table in tables for name in table.columns)}
    for column in columns:
        if column not in known:
            raise unknown("column", column, known, where)


def check_selector(selector: Selector, tables: Sequence[Published], where: str) -> None:
    """Refuse coordinates, and values of them, that no table has."""
    known: dict[str, set[str]] = {}
    for table in tables:
        known.setdefault(TABLE, set()).add(table.name)
        known.setdefault(COLUMN, set()).update(table.columns)
        for head in table.heads:
            known.setdefault(head, set()).update(row[head] for row in table.rows)
    for key, wanted in selector.items():
        if key not in known:
            raise unknown("head of rows", key, known, where)
        for value in listed(wanted):
            if value not in known[key]:
                raise unknown(key, str(value), known[key], where)


def say_pair(ours: Place, theirs: Place, word: str = "over", tables: bool = False) -> str:
    """Name two cells by what they differ in, then by what they share; with the table if there are several."""
    mine, other = _printed(ours), _printed(theirs)
    keys = [key for key in {**mine, **other} if mine.get(key) != other.get(key)]
    left, right = (" ".join(side[key] for key in keys if key in side) for side in (mine, other))
    shared = [text for key, text in mine.items() if key not in keys and (tables or key != TABLE)]
    return f"{left} {word} {right}" + (f" ({', '.join(shared)})" if shared else "")


def say_place(place: Place, without: Iterable[str] = ()) -> str:
    """Name a cell by its coordinates."""
    return " ".join(text for key, text in place.coordinates.items() if key != TABLE and key not in without)


def _printed(place: Place) -> dict[str, str]:
    """Return a cell's coordinates with the table's number in place of its name."""
    return {**place.coordinates, TABLE: place.table.entry["table"]}
