"""Claims and numbers → verdicts, and verdicts as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...base.words import say_count
from ..published import load_published, published_names
from ..table import Cell, Column, Row, Table
from ._cells import Evidence, PrintedEvidence
from ._decide import ANSWERS, FAILS, NO_NUMBERS, decide, need
from ._load import Claim, load_claims
from ._runs import EvidenceOfRuns


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
    tables = {name: PrintedEvidence(load_published(name)) for name in published_names()}
    claims = load_claims().values()
    if names is not None:
        wanted = set(names)
        claims = [claim for claim in claims if wanted & set(claim.tables)]
    return [judge(claim, tables) for claim in claims]


def claims_table(verdicts: Sequence[Verdict], on: str = "the papers' printed numbers") -> Table:
    """Make a table of verdicts; `on` says which numbers they are on."""
    rows = []
    for v in verdicts:
        answer = Cell(word=v.answer, note=_audit(v))
        rows.append(Row((v.claim.name, v.claim.where, v.claim.says), (answer, Cell(word=v.statistic))))
    return Table(
        "claims",
        "The papers' claims",
        f"{say_count(len(verdicts), 'claim')} on {on}: {_tally(verdicts)}",
        ("Claim", "Where", "Says"),
        (Column("answer", "answer"), Column("statistic", "statistic")),
        tuple(rows),
        ("says: in our words, the weakest reading that still says it",),
    )


def compare_verdicts(pairs: Sequence[tuple[Verdict, Verdict]], on: str) -> Table:
    """Make a table of verdicts on the printed numbers beside those on measured ones; `on` says which these are."""
    rows = []
    for printed, measured in pairs:
        claim = printed.claim
        cells = (Cell(word=printed.answer), Cell(word=measured.answer), Cell(word=measured.statistic))
        rows.append(Row((claim.name, claim.where, claim.says), cells))
    titles = ("in print", "measured", "statistic of the measured")
    return Table(
        "claims",
        "The papers' claims, in print and measured",
        f"{say_count(len(pairs), 'claim')} · printed: {_tally(pair[0] for pair in pairs)} · measured on {on}: "
        f"{_tally(pair[1] for pair in pairs)}",
        ("Claim", "Where", "Says"),
        tuple(Column(title.replace(" ", "_"), title) for title in titles),
        tuple(rows),
        ("says: in our words, the weakest reading that still says it",),
    )


def _tally(verdicts: Iterable[Verdict]) -> str:
    """Count the answers."""
    count = Counter(verdict.answer for verdict in verdicts)
    return ", ".join(f"{answer} {count[answer]}" for answer in ANSWERS if count[answer]) or "none"


def _audit(verdict: Verdict) -> str:
    audit = verdict.claim.entry.audit
    return f"in print: {audit}" if audit and verdict.answer == FAILS else ""
