"""Did methods answer as they must where the answer is known? One verdict per method and expectation of a probe.

The unit is a seed: a method's gain over `local` of the same seed, less that of the method it is compared with. The
interval of the mean over seeds lies on the expected side of the bound (pass), on the other (fail), or has it inside
(undecided).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..metrics import MetricError
from .code_notes import Made, tell_code
from .delta import Delta, primary_scores
from .intervals import mean_interval
from .table import Cell, Column, Row, Table

if TYPE_CHECKING:
    from ..scenarios import Expectation, Scenario

PASS, FAIL, UNDECIDED, ABSENT = "pass", "fail", "undecided", "–"
LOCAL = "local"


@dataclass(frozen=True)
class Finished:
    """A finished run as far as probes look at it."""

    summary: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]  # of its rounds


@dataclass(frozen=True)
class Answers:
    """The runs of one probe: (method's label, value of the family's parameter or None) → seed → run."""

    scenario: Scenario
    runs: Mapping[tuple[str, float | None], Mapping[int, Finished]]
    refused: Mapping[str, str]  # label → why


@dataclass(frozen=True)
class Candidate:
    """A method that is probed."""

    label: str
    title: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """Which methods are judged by which probes, and how surely."""

    probes: Sequence[Answers]
    candidates: Sequence[Candidate]
    confidence: float  # of each side of an interval
    titles: Mapping[str, str]  # of methods that candidates are compared with, by name

    def all_titles(self) -> dict[str, str]:
        """Return what methods are called, those that are probed among them."""
        return {**self.titles, **{candidate.label: candidate.title for candidate in self.candidates}}

    def expectations(self) -> list[tuple[Answers, int, Expectation]]:
        """Return what every probe expects, numbered within it from 1."""
        return [
            (answers, i, e) for answers in self.probes for i, e in enumerate(answers.scenario.probe.expect, start=1)
        ]

    def verdicts(self) -> dict[tuple[Candidate, int], Verdict]:
        """Return the verdict on each candidate and expectation (its place in `expectations`) that concerns it."""
        found = {}
        for place, (answers, _, expectation) in enumerate(self.expectations()):
            for candidate in self.candidates:
                if (verdict := judge(answers, expectation, candidate, self.confidence)) is not None:
                    found[candidate, place] = verdict
        return found

    def has_failure(self) -> bool:
        """Whether a method does the opposite of what is expected of it."""
        return any(verdict.word == FAIL for verdict in self.verdicts().values())


@dataclass(frozen=True)
class Verdict:
    """What is to be said of one method and one expectation."""

    word: str
    values: Mapping[int, float]  # by seed
    interval: tuple[float, float] | None = None
    note: str = ""

    @property
    def mean(self) -> float | None:
        return math.fsum(self.values.values()) / len(self.values) if self.values else None


def judge(answers: Answers, expectation: Expectation, candidate: Candidate, confidence: float) -> Verdict | None:
    """Judge one method; None where nothing is expected of it. `confidence` is that of each side of the interval."""
    if not set(expectation.who) & set(candidate.roles) or candidate.label == expectation.than:
        return None
    if candidate.label in answers.refused:
        return Verdict(ABSENT, {}, note=f"refused: {answers.refused[candidate.label]}")
    try:
        values = measure(answers, expectation, candidate.label)
    except MetricError as error:
        return Verdict(ABSENT, {}, note=f"no {error}")
    if not values:
        missing = "reports no groups" if expectation.measure == "groups" else "not run"
        return Verdict(ABSENT, {}, note=missing)
    interval = mean_interval(list(values.values()), 2 * confidence - 1)
    if interval is None:
        return Verdict(UNDECIDED, values, note="one seed has no spread")
    above = expectation.above is not None
    if (interval[0] > expectation.bound) if above else (interval[1] < expectation.bound):
        return Verdict(PASS, values, interval)
    if (interval[1] < expectation.bound) if above else (interval[0] > expectation.bound):
        return Verdict(FAIL, values, interval)
    return Verdict(UNDECIDED, values, interval)


def measure(answers: Answers, expectation: Expectation, label: str) -> dict[int, float]:
    """Return what the expectation is about, for every seed that has all the runs it needs."""
    probe = answers.scenario.probe
    if expectation.measure == "groups":
        planted = planted_groups(answers.scenario)
        runs = answers.runs.get((label, None), {})
        found = {seed: groups_found(run.rows, planted) for seed, run in runs.items()}
        return {seed: value for seed, value in found.items() if value is not None}
    if probe.parameter is None:
        ours, theirs = (_gains(answers, expectation, method, None) for method in (label, expectation.than))
        return {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}
    values = probe.family[probe.parameter]
    first, last = (_gains(answers, expectation, label, value) for value in (values[0], values[-1]))
    return {seed: last[seed] - first[seed] for seed in last if seed in first}


def _gains(answers: Answers, expectation: Expectation, label: str, value: float | None) -> dict[int, float]:
    """Return the method's gain over local by seed, as the expectation takes it over clients."""
    base = answers.runs.get((LOCAL, value), {})
    gains = {}
    for seed, run in answers.runs.get((label, value), {}).items():
        if seed in base:
            clients = client_gains(run.summary, base[seed].summary)
            chosen = [clients[client] for client in expectation.clients or clients]
            gains[seed] = min(chosen) if expectation.over == "worst" else math.fsum(chosen) / len(chosen)
    return gains


def client_gains(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, float]:
    """Return each client's Δm in percent over its tasks against the same client of another run, on global images."""
    scores, up = primary_scores(ours["scores"], "global")
    return Delta().by_client(scores, primary_scores(theirs["scores"], "global")[0], up)


def planted_groups(scenario: Scenario) -> dict[str, tuple]:
    """Return each client's world: clients with the same labels are one."""
    return {spec.id: tuple(sorted(spec.relabel.items())) for spec in scenario.parties()}


def groups_found(rows: Sequence[Mapping[str, Any]], planted: Mapping[str, Any]) -> float | None:
    """Return the adjusted Rand index of the `groups` that a method reports, mean over the second half of the rounds.

    Reported are groups' names by client, or the clients that each one follows: then those with the same list are a
    group. None where nothing is reported.
    """
    found = []
    for row in rows[len(rows) // 2 :]:
        reported = (row.get("algorithm") or {}).get("groups") or {}
        clients = [client for client in planted if client in reported]
        if len(clients) > 1:
            labels = [str(reported[client]) for client in clients]
            found.append(adjusted_rand_index(labels, [planted[client] for client in clients]))
    return math.fsum(found) / len(found) if found else None


def adjusted_rand_index(one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return how far two groupings of the same things agree: 1 if they are the same, 0 as by chance.

    Of pairs in the same group of both, less what is expected of groups of these sizes, as a part of the most there
    could be.
    """

    def pairs(groups: Iterable) -> int:
        groups = list(groups)
        return sum(math.comb(groups.count(group), 2) for group in set(groups))

    both, a, b = pairs(zip(one, other)), pairs(one), pairs(other)
    expected = a * b / math.comb(len(one), 2)
    most = (a + b) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


# -- as tables ---------------------------------------------------------------------------------------------------------


def probe_tables(question: Question, caption: str) -> list[Table]:
    """Make the tables methods × expectations: the verdicts, and the numbers they rest on."""
    asked, verdicts, titles = question.expectations(), question.verdicts(), question.all_titles()
    shown = [c for c in question.candidates if any((c, place) in verdicts for place in range(len(asked)))]
    columns, notes = [], []
    for number, (answers, i, e) in enumerate(asked, start=1):
        scenario = answers.scenario
        name = scenario.name.removeprefix("probe_")
        columns.append(Column(f"{scenario.name}/{i}", f"({number})", heading=name, signed=e.measure == "gain"))
        if i == 1:
            notes.append(f"{name}: {scenario.probe.question}")
        who = " or ".join(e.who)
        notes.append(f"({number}) {who}: {e.words(titles, scenario.probe.family)}")
    sides = f"{100 * question.confidence:g} %"
    rule = (
        f"{PASS}, {FAIL}: the interval of the mean over seeds, {sides} on each side, lies on the right or wrong side "
        f"of the bound; {UNDECIDED}: the bound is inside; empty: not expected of the method"
    )
    unit = "in points of Δm of clients against the same clients of local, seed by seed"
    if any(answers.scenario.probe.parameter for answers in question.probes):
        unit += "; of a family: at the last value of its parameter less at the first"
    code = _code_notes(question.probes)

    def table(name: str, title: str, cell_of: Callable[[Verdict], Cell], *notes: str) -> Table:
        rows = []
        for c in shown:
            told = [verdicts.get((c, place)) for place in range(len(asked))]
            rows.append(Row((c.title,), tuple(Cell(word=" ") if v is None else cell_of(v) for v in told)))
        return Table(name, title, caption, ("Method",), tuple(columns), tuple(rows), (*notes, *code))

    return [
        table("probes", "Probes: the answer is known", _word, *notes, rule),
        table(
            "probe-differences",
            "Probes: the differences",
            _number,
            f"mean over seeds, [low, high]: {sides} on each side; {unit}",
        ),
    ]


def _code_notes(probes: Sequence[Answers]) -> list[str]:
    made = [
        Made(label, f"{answers.scenario.name} {value}", seed, run.summary.get("code"))
        for answers in probes
        for (label, value), runs in answers.runs.items()
        for seed, run in runs.items()
    ]
    return tell_code(made)


def _word(verdict: Verdict) -> Cell:
    return Cell(word=verdict.word, note=verdict.note)


def _number(verdict: Verdict) -> Cell:
    return Cell(verdict.mean, n=len(verdict.values), interval=verdict.interval, note=verdict.note)


def as_json(question: Question) -> list[dict[str, Any]]:
    """Return one record per method and expectation that concerns it."""
    titles, asked, code = question.all_titles(), question.expectations(), _code_notes(question.probes)
    records = []
    for (candidate, place), verdict in question.verdicts().items():
        answers, number, expectation = asked[place]
        probe = answers.scenario.probe
        records.append(
            {
                "probe": answers.scenario.name,
                "expectation": number,
                "question": probe.question,
                "expected": expectation.words(titles, probe.family),
                "method": candidate.label,
                "verdict": None if verdict.word == ABSENT else verdict.word,
                "mean": verdict.mean,
                "interval": verdict.interval,
                "confidence": question.confidence,
                "by_seed": {str(seed): value for seed, value in verdict.values.items()},
                "note": verdict.note,
                "code_notes": code,
            }
        )
    return records
