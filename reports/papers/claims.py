"""What the papers say of their results, as named checks on numbers: printed ones, or those of runs.

`load_claims` reads published/claims.yml, `judge` decides one claim, `claims_table` makes a table of verdicts. Numbers
come as anything with `values`, by the name of a published table: as it is printed, or as it was made of runs.

    tables = {name: load_published(name) for name in published_names()}
    verdicts = [judge(claim, tables) for claim in load_claims().values()]

Claims about figures take stored runs, as `EvidenceOfRuns`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...base.errors import UsageError, unknown
from ...base.located import locate, look_up
from ...base.schema import build, build_mapping
from ...base.words import say_count
from ...base.yamlfile import load_yaml
from ..table import Cell, Column, Row, Table
from .decide import ANSWERS, FAILS, NO_NUMBERS, Need, decide, need
from .published import FOLDER, Published, load_published, papers, published_names, table_names
from .run_checks import RUN_KINDS, EvidenceOfRuns, RunCheck
from .table_checks import KINDS, Alike, Evidence, TableCheck

FILE = FOLDER / "claims.yml"


@dataclass(frozen=True)
class Entry:
    """One claim as the file has it."""

    paper: str
    where: str  # the section
    says: str  # in our words
    table: str | None = None
    tables: tuple[str, ...] = ()  # in place of `table`
    figure: str | None = None  # what no table holds: it takes stored runs
    scenario: str | None = None  # of those runs
    check: dict[str, Any] | None = None
    checks: tuple[dict[str, Any], ...] = ()  # in place of `check`: all must hold
    unchecked: str = ""  # why there is no check
    audit: str = ""  # what the paper's own numbers say instead, where they do not say so


@dataclass(frozen=True)
class Claim:
    """One finding of a paper: what it says, and the checks that say whether it holds."""

    name: str
    entry: Entry
    checks: tuple[TableCheck, ...] = ()
    run_checks: tuple[RunCheck, ...] = ()
    alike: Alike = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, str, str]:
        """Return what heads its row: its name, paper and section with what the finding is read from, what it says."""
        figure = f", {self.entry.figure}" if self.entry.figure else ""
        return self.name, f"{self.entry.paper} {self.entry.where}{figure}", self.entry.says

    @property
    def figure(self) -> str:
        """Return the figure that it is read from, as recipes call it: Figure 4; "" for a claim about tables."""
        return re.sub(r"^Fig\. (\d+)[a-z]?$", r"Figure \1", self.entry.figure or "")

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.entry.table,) if self.entry.table else self.entry.tables

    @cached_property
    def published(self) -> list[Published]:
        """Return the claim's tables."""
        return [load_published(name) for name in self.tables]

    def tree(self, evidence: Mapping[str, Evidence]) -> Need:
        """Return the comparisons of all checks on tables; a table without evidence is one without numbers."""
        trees = [check.tree(check.cells(self.published, evidence, self.alike)) for check in self.checks]
        return trees[0] if len(trees) == 1 else need(trees)


# -- reading the file --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    claims: dict[str, Any]
    alike: dict[str, Any] = field(default_factory=dict)  # head → printed name → the name that counts between tables


def load_claims(file: Path = FILE) -> dict[str, Claim]:
    """Read all claims, by name, in the order of the file.

    Raises:
        UsageError: A claim that names what does not exist; says which claim, where it stands and what is close.
    """
    whole = build(_File, load_yaml(file))
    return {name: _claim(name, entry, whole.alike) for name, entry in whole.claims.items()}


def _claim(name: str, given: Any, alike: Alike) -> Claim:
    path = f"claims.{name}"
    where = f"{locate(given)}: claim {name}"
    entry = build(Entry, given, path)
    checks = (entry.check,) if entry.check is not None else entry.checks
    _check_entry(Claim(name, entry), bool(checks), where)
    kinds = RUN_KINDS if entry.figure else KINDS
    made: list[Any] = []
    for key in ["check"] if entry.check is not None else [f"checks.{i}" for i in range(len(checks))]:
        check, here = look_up(given, key), f"{path}.{key}"
        kind = build_mapping(check, here).get("kind")
        if kind not in kinds:
            raise unknown("kind of check", str(kind), kinds, where)
        made.append(build(kinds[kind], check, here))
    if entry.figure:
        for check in made:
            check.verify(where)
        return Claim(name, entry, run_checks=tuple(made))
    claim = Claim(name, entry, tuple(made), alike=alike)
    for check in made:
        check.verify(claim.published, where)
        try:
            tree = check.tree(check.cells(claim.published, alike=alike))
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        if not tree.parts:
            raise UsageError(f"{where}: {check.kind}: no two cells to compare")
    return claim


def _check_entry(claim: Claim, has_checks: bool, where: str) -> None:
    """Refuse names that do not exist, and keys that do not go together."""
    entry = claim.entry
    if entry.paper not in papers():
        raise unknown("paper", entry.paper, papers(), where)
    for table in claim.tables:
        if table not in table_names():
            raise unknown("published table", table, table_names(), where)
    if bool(claim.tables) == bool(entry.figure) or (entry.table and entry.tables):
        raise UsageError(f"{where}: expected one of table, tables and figure")
    if has_checks == bool(entry.unchecked) or (entry.check is not None and entry.checks):
        raise UsageError(f"{where}: expected one of check, checks and unchecked")
    if entry.figure and has_checks and not entry.scenario:
        raise UsageError(f"{where}: a check on runs needs the scenario that they are of")


# -- verdicts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What numbers say of a claim."""

    claim: Claim
    answer: str  # one of ANSWERS
    statistic: str  # the differences, and how they were tested


def judge(claim: Claim, tables: Mapping[str, Evidence], runs: EvidenceOfRuns | None = None) -> Verdict:
    """Decide a claim: on the numbers of published tables by name, or on stored runs if it is about a figure."""
    if claim.entry.unchecked:
        return Verdict(claim, NO_NUMBERS, f"no check: {claim.entry.unchecked}")
    if not claim.entry.figure:
        return Verdict(claim, *decide(claim.tree(tables)))
    if runs is None:
        return Verdict(claim, NO_NUMBERS, f"takes stored runs of {claim.entry.scenario}")
    return Verdict(claim, *decide(need([check.tree(runs, claim.entry.scenario) for check in claim.run_checks])))


def judge_printed(names: Iterable[str] | None = None) -> list[Verdict]:
    """Decide the claims about the named tables, or all claims, on the numbers that the papers print."""
    tables = {name: load_published(name) for name in published_names()}
    wanted = None if names is None else set(names)
    claims = [claim for claim in load_claims().values() if wanted is None or wanted & set(claim.tables)]
    return [judge(claim, tables) for claim in claims]


def claims_table(verdicts: Sequence[Verdict], on: str = "the papers' printed numbers") -> Table:
    """Make a table of verdicts; `on` says which numbers they are on."""
    rows = []
    for v in verdicts:
        audit = f"in print: {v.claim.entry.audit}" if v.claim.entry.audit and v.answer == FAILS else ""
        rows.append(Row(v.claim.labels, (Cell(word=v.answer, note=audit), Cell(word=v.statistic))))
    caption = f"{say_count(len(verdicts), 'claim')} on {on}: {_tally(verdicts)}"
    return _table("The papers' claims", caption, ("answer", "statistic"), rows)


def compare_verdicts(pairs: Sequence[tuple[Verdict, Verdict]], on: str) -> Table:
    """Make a table of verdicts on the printed numbers beside those on measured ones; `on` says which these are."""
    rows = []
    for printed, measured in pairs:
        words = (printed.answer, measured.answer, measured.statistic)
        rows.append(Row(printed.claim.labels, tuple(Cell(word=word) for word in words)))
    caption = (
        f"{say_count(len(pairs), 'claim')} · printed: {_tally(pair[0] for pair in pairs)} · measured on {on}: "
        f"{_tally(pair[1] for pair in pairs)}"
    )
    titles = ("in print", "measured", "statistic of the measured")
    return _table("The papers' claims, in print and measured", caption, titles, rows)


def _table(title: str, caption: str, titles: Sequence[str], rows: Sequence[Row]) -> Table:
    columns = tuple(Column(title.replace(" ", "_"), title) for title in titles)
    notes = ("says: in our words, the weakest reading that still says it",)
    return Table("claims", title, caption, ("Claim", "Where", "Says"), columns, tuple(rows), notes)


def _tally(verdicts: Iterable[Verdict]) -> str:
    """Count the answers."""
    count = Counter(verdict.answer for verdict in verdicts)
    return ", ".join(f"{answer} {count[answer]}" for answer in ANSWERS if count[answer]) or "none"
