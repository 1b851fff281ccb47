"""claims.yml → claims: every name in it is checked against the tables, and errors say which claim is meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...base.errors import UsageError, unknown
from ...base.located import locate, look_up
from ...base.schema import build, build_mapping
from ...base.yamlfile import load_yaml
from ..published import FOLDER, Published, load_published, table_names
from ._cells import Evidence, Pool
from ._checks import KINDS, TableCheck
from ._decide import Need, need
from ._runs import RUN_KINDS, RunCheck

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
    alike: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def says(self) -> str:
        return self.entry.says

    @property
    def where(self) -> str:
        """Return paper and section, and what the finding is read from."""
        return f"{self.entry.paper} {self.entry.where}" + (f", {self.entry.figure}" if self.entry.figure else "")

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
        pools = [Pool(check.places(self.published), evidence, self.alike) for check in self.checks]
        trees = [check.tree(pool) for check, pool in zip(self.checks, pools)]
        return trees[0] if len(trees) == 1 else need(trees)


def load_claims(file: Path = FILE) -> dict[str, Claim]:
    """Read all claims, by name, in the order of the file.

    Raises:
        UsageError: A claim that names what does not exist; says which claim, where it stands and what is close.
    """
    index = build(_Index, load_yaml(file))
    return {name: _claim(name, entry, index) for name, entry in index.claims.items()}


@dataclass(frozen=True)
class _Index:
    claims: dict[str, Any]
    alike: dict[str, Any] = field(default_factory=dict)  # head → printed name → the name that counts between tables


def _claim(name: str, given: Any, index: _Index) -> Claim:
    path = f"claims.{name}"
    where = f"{locate(given)}: claim {name}"
    entry = build(Entry, given, path)
    claim = Claim(name, entry, alike=index.alike)
    papers = load_published(table_names()[0]).index["papers"]
    if entry.paper not in papers:
        raise unknown("paper", entry.paper, papers, where)
    for table in claim.tables:
        if table not in table_names():
            raise unknown("published table", table, table_names(), where)
    if bool(claim.tables) == bool(entry.figure) or (entry.table and entry.tables):
        raise UsageError(f"{where}: expected one of table, tables and figure")
    given_checks = (entry.check,) if entry.check is not None else entry.checks
    if bool(given_checks) == bool(entry.unchecked) or (entry.check is not None and entry.checks):
        raise UsageError(f"{where}: expected one of check, checks and unchecked")
    if entry.figure and given_checks and not entry.scenario:
        raise UsageError(f"{where}: a check on runs needs the scenario that they are of")
    kinds = RUN_KINDS if entry.figure else KINDS
    made: list[Any] = []
    for key in ["check"] if entry.check is not None else [f"checks.{i}" for i in range(len(given_checks))]:
        check, here = look_up(given, key), f"{path}.{key}"
        kind = build_mapping(check, here).get("kind")
        if kind not in kinds:
            raise unknown("kind of check", str(kind), kinds, where)
        made.append(build(kinds[kind], check, here))
    if entry.figure:
        for check in made:
            check.verify(where)
        return Claim(name, entry, run_checks=tuple(made), alike=index.alike)
    claim = Claim(name, entry, tuple(made), alike=index.alike)
    for check in made:
        check.verify(claim.published, where)
        try:
            tree = check.tree(Pool(check.places(claim.published), alike=index.alike))
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        if not tree.parts:
            raise UsageError(f"{where}: {check.kind}: no two cells to compare")
    return claim
