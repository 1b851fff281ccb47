"""Methods × (client group, task): one table per scenario and setting, never two settings in one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..bench.absent import REFUSED, Absence
from ..errors import UsageError, unknown
from ..tasks import TASKS
from .collect import Collection, RunRecord
from .delta import Delta, Fairness, Gain, Score, Scores, Units, fairness, gain, mark_differences, primary_scores
from .labels import dataset_name, zoo_rank
from .runs import everybody
from .settings import by_setting, describe, distinguishing, listed
from .table import Cell, Column, Row, Table, mean_cell

if TYPE_CHECKING:
    import pandas as pd

SORTS = ("zoo", "delta", "name")
SPREADS = ("seeds", "clients")
# The papers' order: SemSeg, Parts, Sal, Normals, Edge on PASCAL-Context; SemSeg, Depth, Normals, Edge on NYUD-v2.
TASK_ORDER = ("semseg", "human_parts", "sal", "depth", "normals", "edge")
NULL = "NULL"  # the papers' word where a method makes no sense
FAIRNESS = (
    Column("worst_client", "worst client", higher_is_better=True),
    Column("bottom_decile", "bottom 10 %", higher_is_better=True),
    Column("client_spread", "spread"),  # not compared: that of the reference is 0 whatever it does
)


def leaderboards(
    collection: Collection,
    scenario: str | None = None,
    split: str = "global",
    delta: Delta | None = None,
    sort: str = "zoo",
    spread: str = "seeds",
    fair: bool = False,
) -> list[Table]:
    """The tables of all settings, in the order of scenario, preset and rounds.

    Args:
        collection: What `collect` returned, or `merge_settings` for rows of several settings in a table.
        scenario: Only this one.
        split: Which test images, such as "global" or "personal".
        delta: Which Δm; by default over columns, against the local runs of the same setting.
        sort: "zoo" (the papers' order), "delta" (best Δm first), "name", or a column's key (best first).
        spread: What ± is over: "seeds" or "clients".
        fair: With columns of the worst client, the worst tenth of clients and the spread over clients.

    Raises:
        UsageError: A scenario, split, baseline or column that no run has.
        FmtlbenchError: Two runs that claim the same place in a table.
    """
    delta = delta or Delta()
    frame, runs = collection.frame, collection.runs
    known = sorted({run.summary["scenario"] for run in runs})
    if scenario is not None and scenario not in known:
        raise unknown("run of scenario", scenario, known)
    names = {run.summary["algorithm"] for run in runs} | {run.row[0] for run in runs}
    if runs and delta.baseline not in names and delta.baseline != "local":
        raise unknown("run of the baseline", delta.baseline, names)
    if spread not in SPREADS:
        raise unknown("spread", spread, SPREADS, "--spread")
    rows = frame[frame["primary"].astype(bool)]
    if scenario is not None:
        rows = rows[rows["scenario"] == scenario]
    chosen = rows[rows["split"] == split]
    if chosen.empty:
        raise UsageError(f"no finished run has scores on the {split!r} split; splits: {listed(set(rows['split']))}")
    settings = by_setting(chosen, runs)
    told = distinguishing([here[0] for _, _, here in settings])
    tables = []
    for (name, part, here), words in zip(settings, told):
        problems = [str(p) for p in collection.problems if p.scenario == name and not p.absence]
        absences = [(label, a) for label, a in collection.absences if a.setting == here[0].setting]
        made = _Board(part, here, collection.heads, split, delta, spread, fair)
        tables.append(made.table(words, problems, absences))
    _check_sort(sort, tables)
    return [_sorted(table, sort).marked() for table in tables]


Method = tuple[str, tuple[str, ...]]  # registry name, what heads the row


class _Board:
    """One table in the making."""

    def __init__(
        self, part: pd.DataFrame, runs: list[RunRecord], heads: tuple[str, ...], split: str, delta: Delta, spread: str,
        fair: bool,
    ) -> None:  # fmt: skip
        self.runs, self.heads, self.split, self.delta, self.spread = runs, heads, split, delta, spread
        self.fair = FAIRNESS if fair else ()
        self.scores, self.up = _scores(part, runs)
        self.columns = _columns(part, runs)
        self.units = {
            method: {seed: delta.units(of_seed) for seed, of_seed in seeds.items()}
            for method, seeds in self.scores.items()
        }
        self.bases = self._find_bases()

    def table(self, words: str, problems: list[str], absences: list[tuple[str, Absence]]) -> Table:
        first = self.runs[0].summary
        absent: dict[Method, list[Absence]] = {}
        for label, absence in absences:
            absent.setdefault((absence.algorithm, (label,)), []).append(absence)
        gains, tests = self._gains()
        rows = []
        for method in sorted(self.scores.keys() | absent.keys(), key=_zoo):
            if method not in self.scores:
                rows.append(_absent_row(method[1][0], absent[method], len(self.columns) + 1 + len(self.fair)))
                continue
            cells = [self._cell(method, column) for column in self.columns]
            fair = self._fairness(method) if self.fair else ()
            rows.append(Row(method[1], (*cells, gains[method], *fair, Cell(float(len(self.scores[method]))))))
        delta_m, seeds = Column("delta_m", "Δm %", "", "", 2, True), Column("seeds", "seeds", digits=0)
        columns = (*self.columns, delta_m, *self.fair, seeds)
        notes = [*self._notes(), *tests, *_missing(self.scores, absent)]
        table_key = self.runs[0].table[-1].removeprefix("older-")[:8]
        name = f"{self.runs[0].table[0]}-{first['preset']}-{first['data']}-{self.split}-{table_key}"
        return Table(
            name.replace(" ", "-"), _title(self.runs, self.split), describe(self.runs, words, self.spread), self.heads,
            columns, tuple(rows), (*notes, *problems),
        )  # fmt: skip

    def _cell(self, method: Method, column: Column) -> Cell:
        """A column's mean over the clients that hold it and over seeds; ± over one of the two."""
        seeds = self.scores[method]
        by_client: dict[str, list[float]] = {}
        for of_seed in seeds.values():
            for at, value in of_seed.items():
                if _key(at) == column.key:
                    by_client.setdefault(at.client, []).append(value)
        if self.spread == "clients":
            means = [math.fsum(values) / len(values) for values in by_client.values()]
            return mean_cell(means, "clients")
        return mean_cell([math.fsum(values) / len(values) for values in zip(*by_client.values())])

    def _gains(self) -> tuple[dict[Method, Cell], list[str]]:
        """Δm of every method, marked where it differs from the reference or from the best, and what the marks mean."""
        gains = {}
        for method, seeds in self.units.items():
            base = self.bases[method]
            if base.units is None:
                gains[method] = Gain(Cell(note=f"no Δm: no {self.delta.baseline} run in this setting"))
            elif method == base.method:
                gains[method] = Gain(Cell(0.0, n=len(seeds)), dict.fromkeys(seeds, 0.0))
            else:
                gains[method] = gain(seeds, base.units, self.up, base.title, self.delta)
        own = {base.method for base in self.bases.values() if base.method is not None}
        return mark_differences(gains, own, "its reference" if len(own) > 1 else next(iter(self.bases.values())).title)

    def _fairness(self, method: Method) -> Fairness:
        base = self.bases[method]
        if base.scores is None:
            return Fairness(*[Cell(note=f"no Δm: no {self.delta.baseline} run in this setting")] * 3)
        if method == base.method:
            return Fairness(*[Cell(0.0, n=len(self.scores[method]))] * 3)
        return fairness(self.scores[method], base.scores, self.up, base.title, self.delta)

    def _find_bases(self) -> dict[Method, _Base]:
        """What each row is compared with: the named reference, or the baseline among the rows of its own setting."""
        reference = self.delta.reference
        if reference is not None:
            names = {run.name for run in reference.runs.values()}
            mine = next(((run.summary["algorithm"], run.row) for run in self.runs if run.name in names), None)
            scores = {
                seed: primary_scores(run.summary["scores"], self.split)[0] for seed, run in reference.runs.items()
            }
            units = {seed: self.delta.units(of_seed) for seed, of_seed in scores.items()}
            return dict.fromkeys(self.scores, _Base(mine, scores, units, reference.title))
        found = {}
        for method in self.scores:
            alike = [m for m in sorted(self.scores, key=_zoo) if m[1][1:] == method[1][1:]]
            base = _baseline(alike, self.delta.baseline)
            found[method] = _Base(None, None, None, self.delta.baseline)
            if base:
                found[method] = _Base(base, self.scores[base], self.units[base], base[1][0])
        return found

    def _notes(self) -> list[str]:
        clients = "± over clients: of their means over seeds (n - 1); a column of one client has none"
        notes = [clients] if self.spread == "clients" else []
        titles = {base.title for base in self.bases.values() if base.units is not None}
        if titles:
            same = " of the same setting" if len(self.heads) > 1 and self.delta.reference is None else ""
            notes.append(self.delta.words(f"{listed(titles)}{same}"))
            notes += [Fairness.words(listed(titles))] if self.fair else []
        return notes


class _Base(NamedTuple):
    """What a row's Δm is against; `scores` and `units` None: nothing."""

    method: Method | None  # its own row, where it has one in this table
    scores: Mapping[int, Scores] | None
    units: dict[int, Units] | None
    title: str


def _zoo(method: Method) -> tuple:
    return (method[1][1:], zoo_rank(method[0]), method[1])


def _absent_row(label: str, absences: list[Absence], width: int) -> Row:
    """A method without any finished run: a word in every cell, and the reason below the table."""
    refused = [absence.reason for absence in absences if absence.why == REFUSED]
    cell = Cell(word=NULL if refused else "failed")
    note = f"refused: {refused[0]}" if refused else f"failed: {_failures(absences)}"
    return Row((label,), (*[cell] * width, Cell(0.0)), note)


def _failures(absences: list[Absence]) -> str:
    """Each reason once, with the seeds it is about."""
    seeds: dict[str, list[int]] = {}
    for absence in absences:
        seeds.setdefault(absence.reason, []).append(absence.seed)
    return "; ".join(f"seed {listed(of)}: {reason}" for reason, of in seeds.items())


def _scores(part: pd.DataFrame, runs: list[RunRecord]) -> tuple[dict[Method, dict[int, dict[Score, float]]], dict]:
    """Method → seed → score → value, every score of its scenario in every seed; and directions by (task, metric)."""
    rows = {run.name: run.row for run in runs}
    scores: dict[Method, dict[int, dict[Score, float]]] = {}
    up: dict[tuple[str, str], bool] = {}
    everything: dict[str, dict[Score, float]] = {}  # by scenario
    fields = (
        "run",
        "algorithm",
        "scenario",
        "seed",
        "client",
        "dataset",
        "task",
        "metric",
        "value",
        "higher_is_better",
    )
    of: dict[Method, str] = {}
    for run, algorithm, scenario, seed, client, dataset, task, metric, value, better in zip(
        *(part[f].tolist() for f in fields)
    ):
        at = Score(client, dataset, task, metric)
        up[task, metric] = bool(better)
        method = (algorithm, rows[run])
        of[method] = scenario
        everything.setdefault(scenario, {})[at] = math.nan
        scores.setdefault(method, {}).setdefault(seed, {})[at] = value
    for method, seeds in scores.items():
        for seed in sorted(seeds):
            seeds[seed] = {**everything[of[method]], **seeds.pop(seed)}  # put back in the order of the seeds
    return scores, up


def _key(at: Score) -> str:
    return f"{at.dataset}/{at.task}/{at.metric}"


def _columns(part: pd.DataFrame, runs: list[RunRecord]) -> list[Column]:
    """A column per dataset and task, datasets in scenario order, single-task clients before the others."""
    members: dict[tuple, set[str]] = {}
    facts: dict[tuple, tuple] = {}
    fields = ("dataset", "task", "metric", "unit", "higher_is_better", "client")
    for dataset, task, metric, unit, better, client in zip(*(part[f].tolist() for f in fields)):
        facts[dataset, task, metric] = (unit, bool(better))
        members.setdefault((dataset, task, metric), set()).add(client)
    clients = {client["id"]: client for run in reversed(runs) for client in everybody(run.summary)}
    order = {name: i for i, name in enumerate(client["id"] for client in everybody(runs[0].summary))}
    datasets = list(dict.fromkeys(client["dataset"] for run in runs for client in everybody(run.summary)))

    def kind(at: tuple) -> str:
        """Whether its clients have one task, several, or some the one and some the other."""
        kinds = {len(clients[client]["tasks"]) == 1 for client in members[at]}
        return "mixed" if len(kinds) > 1 else "ST" if kinds.pop() else "MT"

    def place(at: tuple) -> tuple:
        dataset, task, _ = at
        rank = TASK_ORDER.index(task) if task in TASK_ORDER else len(TASK_ORDER)
        alone = kind(at) == "ST"
        # Single-task clients stand in the order of their tasks, others in the scenario's.
        first = 0 if alone else min(order.get(client, len(order)) for client in members[at])
        return (datasets.index(dataset), not alone, first, rank, task)

    columns = []
    for at in sorted(members, key=place):
        dataset, task, metric = at
        unit, better = facts[at]
        title = TASKS[task].title if task in TASKS else task
        heading = dataset_name(dataset, runs[0].summary["data"]) + ("" if kind(at) == "mixed" else f" ({kind(at)})")
        digits = 2 if unit in ("%", "deg") else 4  # metres and losses are small numbers
        columns.append(Column("/".join(at), title, metric, heading, digits, better))
    return columns


def _baseline(methods: Sequence[Method], name: str) -> Method | None:
    labelled = [m for m in methods if m[1][0] == name]
    named = labelled or [m for m in methods if m[0] == name]
    plain = [m for m in named if "(" not in m[1][0] and not m[1][0].endswith("-E")]
    if len(named) > 1 and len(plain) != 1:
        labels = listed(m[1][0] for m in named)
        raise UsageError(f"--baseline {name}: several variants, name one by its label: {labels}")
    return (named if len(named) == 1 else plain or [None])[0]


# -- words -------------------------------------------------------------------------------------------------------------


def _title(runs: Sequence[RunRecord], split: str) -> str:
    versions = {run.summary.get("scenario_version") for run in runs} - {None}
    version = f" version {versions.pop()}" if len(versions) == 1 else ""
    scenarios = listed({run.summary["scenario"] for run in runs})
    return f"{scenarios}{version}, {split} test split"


def _missing(scores: dict[Method, dict], absent: dict[Method, list[Absence]]) -> list[str]:
    """Which seeds a method lacks, and why."""
    notes = []
    everyone = sorted({seed for seeds in scores.values() for seed in seeds})
    for method, seeds in scores.items():
        name = ", ".join(method[1])
        failed = [a for a in absent.get(method, ()) if a.why != REFUSED and a.seed not in seeds]
        if failed:
            notes.append(f"{name} failed, {_failures(failed)}")
        missing = [seed for seed in everyone if seed not in seeds and seed not in {a.seed for a in failed}]
        if missing:
            notes.append(f"{name}: no finished run of seed {listed(missing)}")
    return notes


def _check_sort(sort: str, tables: Sequence[Table]) -> None:
    """A column that no table has is a mistake; one that only some have sorts those."""
    keys = dict.fromkeys(column.key for table in tables for column in table.columns)
    if sort not in (*SORTS, *keys):
        raise unknown("column to sort by", sort, [*SORTS, *keys])


def _sorted(table: Table, sort: str) -> Table:
    keys = [column.key for column in table.columns]
    wanted = "delta_m" if sort == "delta" else sort
    if sort == "name":
        return replace(table, rows=tuple(sorted(table.rows, key=lambda row: row.labels)))
    if wanted not in keys:  # the papers' order, in which they are
        return table
    at = keys.index(wanted)
    sign = 1 if table.columns[at].higher_is_better is False else -1

    def place(row: Row) -> tuple:
        value = row.cells[at].value
        return (value is None, 0 if value is None else sign * value)

    return replace(table, rows=tuple(sorted(table.rows, key=place)))
