"""The papers' tables as data: what every column means, the tables themselves, and whether their Δ follow from them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

from ...base.errors import unknown
from ...base.words import dataset_title
from ...base.yamlfile import load_yaml
from ...metrics import delta_m
from ...tasks import title_of
from ..table import Cell, Column, Row, Table

FOLDER = Path(__file__).parent / "published"
TOLERANCE = 0.02  # cells are printed with two decimals


@dataclass(frozen=True)
class Meaning:
    """What a column of scores holds: the printed number is the score times `times`."""

    dataset: str
    task: str
    metric: str
    split: str
    times: float
    higher_is_better: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.dataset, self.task, self.metric)


@dataclass(frozen=True)
class Published:
    """One table of a paper. Its rows are the file's, column by column, as text; empty where no values are at hand."""

    name: str
    entry: Mapping[str, Any]  # from tables.yml
    index: Mapping[str, Any]

    @property
    def is_printed(self) -> bool:
        """Whether the paper's values are at hand."""
        return "unprinted" not in self.entry

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        if not self.is_printed:
            form = self.entry["unprinted"]
            blank = dict.fromkeys(form["columns"], "")
            return [{**dict(zip(form["rows"], words)), **blank} for words in product(*form["rows"].values())]
        with (FOLDER / f"{self.name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    @property
    def title(self) -> str:
        return self.entry["title"]

    @property
    def source(self) -> str:
        return f"{papers()[self.entry['paper']]}, {self.entry['table']}"

    @property
    def setting(self) -> dict[str, Any]:
        """Return preset, data and rounds of the paper, in our names."""
        return paper_setting(self.entry["paper"])

    @property
    def heads(self) -> list[str]:
        return self.entry["heads"]

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns with values, in the file's order, without those of their spread."""
        return [c for c in self.rows[0] if c not in self.heads and not c.endswith("_std")]

    @property
    def deltas(self) -> dict[str, str]:
        return self.entry.get("deltas", {})

    @property
    def scenarios(self) -> list[str]:
        return list(dict.fromkeys(self.scenario(row) for row in self.rows))

    def scenario(self, row: Mapping[str, str]) -> str:
        named = self.entry["scenario"]
        return named if isinstance(named, str) else named[row[named["by"]]]

    def label(self, row: Mapping[str, str]) -> str:
        """Return the method of a row as our runs are labelled."""
        for special in self.entry.get("row_labels", ()):
            if fits(row, special["rows"]):
                return special["label"]
        return self.name_label(row["method"] if "method" in self.heads else row[self.heads[0]])

    def name_label(self, printed: str) -> str:
        """Return our label of a method by the name that the table prints."""
        return {**self.index["labels"], **self.entry.get("labels", {})}.get(printed, printed)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the entry's own notes, and for every label that the paper does not print: of which rows, and why."""
        notes = list(self.entry.get("notes", ()))
        for special in self.entry.get("row_labels", ()):
            names = ", ".join(self.row_name(row) for row in self.rows if fits(row, special["rows"]))
            notes.append(f"inferred: {names} as {special['label']}: {special['why']}")
        return tuple(notes)

    def model(self, row: Mapping[str, str]) -> dict[str, str]:
        """Return what the row says about the network, by the names of a summary's `setting_text`."""
        return {**self.index["networks"].get(self.entry["paper"].removesuffix("_supp"), {}), **self.row_model(row)}

    def row_model(self, row: Mapping[str, str]) -> dict[str, str]:
        """Return what the heads of the row say about the network, by which rows differ."""
        said: dict[str, str] = {}
        for head, meanings in self.entry.get("model", {}).items():
            said |= meanings[row[head]]
        return said

    @cached_property
    def scores(self) -> dict[str, Meaning]:
        """Return the columns that hold scores, in the file's order."""
        directions, known = self.index["directions"], self.index["columns"]
        found = {}
        for column in self.columns:
            if column in known:
                c = known[column]
                times = self.entry.get("times", c.get("times", 1))
                up = directions[c["metric"]] == "up"
                found[column] = Meaning(c["dataset"], c["task"], c["metric"], c.get("split", "global"), times, up)
        return found

    @property
    def has_splits(self) -> bool:
        """Whether there are scores on several test splits."""
        return len({meaning.split for meaning in self.scores.values()}) > 1

    def column(self, name: str, heading: str = "", digits: int = 2, mark: str = "") -> Column:
        """Return a column of scores, of Δ beside scores, or of other numbers; `mark` stands behind its title."""
        mark = f" {mark}" if mark else ""
        if meaning := self.scores.get(name):
            metric = meaning.metric + (f" ×{meaning.times:g}" if meaning.times != 1 else "")
            return Column(name, title_of(meaning.task) + mark, metric, heading, digits, meaning.higher_is_better)
        if name in self.deltas and self.scores:
            return Column(name, f"Δm %{mark}", "", heading, 2, True)
        return Column(name, name.replace("_", " ") + mark)

    def values(self, row: Mapping[str, str], column: str) -> float | None:
        """Return the number that a cell prints; None for an empty cell or a word."""
        return number(row[column])

    def row_name(self, row: Mapping[str, str]) -> str:
        return " ".join(row[head] for head in self.heads)

    def reference(self, row: Mapping[str, str]) -> tuple[Mapping[str, str] | None, str]:
        """Return the row Δ is against and how it is known; (None, why) where the paper at hand does not print it."""
        entry = self.entry.get("reference")
        if entry is None:
            return None, "the reference of its Δ (local MD ResNet-18 of IID-1) and the scores are not printed"
        if "derived" in entry:
            return {column: str(number) for column, number in entry["derived"].items()}, entry["why"]
        table, base = self.reference_row(row)
        return base, f"{table.name}, {table.row_name(base)}"

    def reference_row(self, row: Mapping[str, str]) -> tuple[Published, Mapping[str, str]]:
        """Return the row Δ is against and the table it is in, where the entry names one by its heads."""
        entry = self.entry["reference"]
        table = load_published(entry["table"]) if "table" in entry else self
        wanted = {head: row[head] for head in self.heads[: self.entry.get("blocks", 0)]} | entry["row"]
        return table, next(other for other in table.rows if fits(other, wanted))


def fits(told: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    """Whether each thing that is wanted is told: by one value, or by one of a list of them."""
    return all(told.get(key) in as_list(values) for key, values in wanted.items())


def as_list(wanted: Any) -> list[Any]:
    """Return one value, or several, as a list."""
    return list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]


@cache
def _index() -> dict[str, Any]:
    return load_yaml(FOLDER / "tables.yml")


def papers() -> dict[str, str]:
    """Return what papers are called, by their short names."""
    return _index()["papers"]


def paper_setting(paper: str) -> dict[str, Any]:
    """Return preset, data and rounds of a paper, in our names."""
    return _index()["settings"][paper.removesuffix("_supp")]


def published_names() -> list[str]:
    """List the tables whose values are at hand, in the order of the papers."""
    return [name for name in table_names() if load_published(name).is_printed]


def table_names() -> list[str]:
    """List all tables, in the order of the papers."""
    return list(_index()["tables"])


def list_published() -> list[dict[str, Any]]:
    """Return a record for every published table: what it is, and of how many rows."""
    return [
        {
            "name": table.name,
            "source": table.source,
            "title": table.title,
            "scenario": ", ".join(table.scenarios),
            "rows": len(table.rows),
        }
        for table in map(load_published, published_names())
    ]


@cache
def load_published(name: str) -> Published:
    """Load one table; an unknown name raises with the nearest ones."""
    tables = _index()["tables"]
    if name not in tables:
        raise unknown("published table", name, tables)
    return Published(name, tables[name], _index())


def number(text: str) -> float | None:
    """Read a printed number; None for an empty cell or a word."""
    try:
        return float(text)
    except ValueError:
        return None


# -- printing ----------------------------------------------------------------------------------------------------------


def as_table(published: Published) -> Table:
    """Return the table as the paper prints it, with best and second marked by us, in each block of its own."""
    names, rows = published.columns, []
    for row in published.rows:
        cells = tuple(printed_cell(row[name], row.get(f"{name}_std") or "") for name in names)
        rows.append(Row(tuple(row[head] for head in published.heads), cells))
    s = published.setting
    caption = (
        f"{published.source} · scenario {', '.join(published.scenarios)} · the paper's setting: preset {s['preset']}, "
        f"{s['data']} data, {s['rounds']} rounds · as printed"
    )
    table = Table(
        published.name,
        published.title,
        caption,
        tuple(head.capitalize() for head in published.heads),
        tuple(_column(published, name) for name in names),
        tuple(rows),
        published.notes,
    )
    return table.marked(published.entry.get("blocks", 0))


def printed_cell(text: str, spread: str = "") -> Cell:
    """Return a cell as the paper prints it."""
    value = number(text)
    return Cell(word=text) if value is None else Cell(value, number(spread), printed=text)


def _column(published: Published, name: str) -> Column:
    short = {"global": "G-FL", "personal": "P-FL"}
    if name in published.deltas:
        return published.column(name, short.get(published.deltas[name], "") if len(published.deltas) > 1 else "")
    if name not in published.scores:
        return published.column(name)
    meaning = published.scores[name]
    return published.column(name, short[meaning.split] if published.has_splits else dataset_title(meaning.dataset))


# -- audit -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One printed Δ: recomputed, or the reason why it cannot be."""

    table: str
    row: str
    column: str
    printed: str
    recomputed: float | None = None
    reason: str = ""  # why not; "" where it was recomputed
    derived: bool = False  # against a reference that we derived

    @property
    def follows(self) -> bool:
        return self.recomputed is None or abs(self.recomputed - float(self.printed)) <= TOLERANCE + 1e-9


def audit(names: Iterable[str] | None = None) -> list[Check]:
    """Recompute every printed Δ of the named tables, or of all, from the table's own cells."""
    checks = []
    for published in map(load_published, names or published_names()):
        if not published.deltas:
            checks.append(Check(published.name, "", "", "", reason="prints no Δ"))
        for row in published.rows:
            for column, split in published.deltas.items():
                checks.append(_check(published, row, column, split))
    return checks


def _check(published: Published, row: dict[str, str], column: str, split: str) -> Check:
    at = (published.name, published.row_name(row), column, row[column])
    if number(row[column]) is None:
        return Check(*at, reason=f"printed as {row[column]}")
    base, how = published.reference(row)
    if base is None:
        return Check(*at, reason=how)
    columns = {name: m for name, m in published.scores.items() if m.split == split}
    ours, theirs = ({name: float(r[name]) for name in columns} for r in (row, base))
    up = {name: m.higher_is_better for name, m in columns.items()}
    return Check(*at, delta_m(ours, theirs, up), derived="derived" in published.entry["reference"])


def audit_table(checks: list[Check]) -> Table:
    """Make a table of the rows whose Δ does not follow; the rest is counted in the notes."""
    wrong = [check for check in checks if not check.follows]
    done = [check for check in checks if check.recomputed is not None]
    rows = []
    for check in wrong:
        printed = float(check.printed)
        cells = (Cell(printed, printed=check.printed), Cell(check.recomputed), Cell(check.recomputed - printed))
        rows.append(Row((check.table, check.row, check.column), cells))
    notes = []
    for table in dict.fromkeys(check.table for check in done if check.derived):
        entry = load_published(table).entry["reference"]
        notes.append(f"{table}: checked against a {entry['why']}")
    reasons: dict[tuple[str, str], list[str]] = {}
    for check in checks:
        if check.reason:
            reasons.setdefault((check.table, check.reason), []).append(check.row)
    for (table, reason), skipped in reasons.items():
        which = "" if skipped == [""] else f" ({', '.join(dict.fromkeys(skipped))})" if len(skipped) < 5 else ""
        count = "" if skipped == [""] else f"{len(skipped)} not checked{which}: "
        notes.append(f"{table}: {count}{reason}")
    columns = (Column("printed", "printed"), Column("recomputed", "recomputed"), Column("gap", "gap", signed=True))
    caption = (
        f"{len(done)} printed Δ recomputed from the cells beside them: {len(done) - len(wrong)} follow within "
        f"{TOLERANCE}, {len(wrong)} do not"
    )
    return Table(
        "audit",
        "Published Δ that do not follow from their own table",
        caption,
        ("Table", "Row", "Column"),
        columns,
        tuple(rows),
        tuple(notes),
    )
