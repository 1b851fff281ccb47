"""Methods × (client group, task): one table per scenario and setting, never two settings in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..bench.absent import REFUSED, Absence
from ..errors import UsageError, unknown
from ..tasks import TASKS
from .collect import Collection, RunRecord
from .delta import RESAMPLED, Scores, delta_cell
from .labels import dataset_name, zoo_rank
from .settings import by_setting, describe, distinguishing, listed
from .table import Cell, Column, Row, Table, mean_cell

if TYPE_CHECKING:
    import pandas as pd

SORTS = ("zoo", "delta", "name")
# The papers' order: SemSeg, Parts, Sal, Normals, Edge on PASCAL-Context; SemSeg, Depth, Normals, Edge on NYUD-v2.
TASK_ORDER = ("semseg", "human_parts", "sal", "depth", "normals", "edge")
NULL = "NULL"  # the papers' word where a method makes no sense


def leaderboards(
    collection: Collection,
    scenario: str | None = None,
    split: str = "global",
    baseline: str = "local",
    sort: str = "zoo",
) -> list[Table]:
    """The tables of all settings, in the order of scenario, preset and rounds.

    Args:
        collection: What `collect` returned.
        scenario: Only this one.
        split: "global" or "personal" test images.
        baseline: The method Δm is taken against, by registry name or label.
        sort: "zoo" (the papers' order), "delta" (best Δm first), "name", or a column's key (best first).

    Raises:
        UsageError: A scenario, split, baseline or column that no run has.
        FmtlbenchError: Two runs that claim the same place in a table.
    """
    frame, runs = collection.frame, collection.runs
    known = sorted({run.summary["scenario"] for run in runs})
    if scenario is not None and scenario not in known:
        raise unknown("run of scenario", scenario, known)
    names = {run.summary["algorithm"] for run in runs} | {run.label for run in runs}
    if runs and baseline not in names and baseline != "local":
        raise unknown("run of the baseline", baseline, names)
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
        tables.append(_table(part, here, split, baseline, words, problems, absences))
    _check_sort(sort, tables)
    return [_sorted(table, sort).marked() for table in tables]


def _table(
    part: pd.DataFrame,
    runs: list[RunRecord],
    split: str,
    baseline: str,
    words: str,
    problems: list[str],
    absences: list[tuple[str, Absence]],
) -> Table:
    first = runs[0].summary
    scores, up = _scores(part)
    columns, keys = _columns(part, first)
    absent: dict[tuple[str, str], list[Absence]] = {}
    for label, absence in absences:
        absent.setdefault((absence.algorithm, label), []).append(absence)
    base = _baseline(sorted(scores, key=_zoo), baseline)
    rows = []
    for method in sorted(scores.keys() | absent.keys(), key=_zoo):
        if method not in scores:
            rows.append(_absent_row(method[1], absent[method], len(columns) + 1))
            continue
        seeds = scores[method]
        cells = [mean_cell([_mean(of_seed, group) for of_seed in seeds.values()]) for group in keys]
        if base is None:
            gain = Cell(note=f"no Δm: no {baseline} run in this setting")
        elif method == base:
            gain = Cell(0.0, n=len(seeds))
        else:
            gain = delta_cell(seeds, scores[base], up, base[1])
        rows.append(Row((method[1],), (*cells, gain, Cell(float(len(seeds))))))
    columns = (
        *columns, Column("delta_m", "Δm %", "", "", 2, True), Column("seeds", "seeds", digits=0)
    )  # fmt: skip
    notes = _notes(scores, base, any(row.cells[-2].interval for row in rows), absent)
    name = f"{first['scenario']}-{first['preset']}-{first['data']}-{split}-{runs[0].setting.removeprefix('older-')[:8]}"
    return Table(
        name, _title(first, split), describe(runs, words), ("Method",), columns,
        tuple(rows), (*notes, *problems),
    )  # fmt: skip


def _zoo(method: tuple[str, str]) -> tuple:
    return (zoo_rank(method[0]), method[1])


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


def _scores(part: pd.DataFrame) -> tuple[dict[tuple[str, str], Scores], dict[tuple, bool]]:
    """(algorithm, label) → seed → (client, task, metric) → value, every key in every seed; and the directions."""
    scores: dict[tuple[str, str], dict[int, dict[tuple, float]]] = {}
    up: dict[tuple, bool] = {}
    fields = ("algorithm", "label", "seed", "client", "task", "metric", "value", "higher_is_better")
    for algorithm, label, seed, client, task, metric, value, better in zip(*(part[f].tolist() for f in fields)):
        key = (client, task, metric)
        up[key] = bool(better)
        scores.setdefault((algorithm, label), {}).setdefault(seed, {})[key] = value
    for seeds in scores.values():
        for seed in sorted(seeds):
            of_seed = seeds.pop(seed)  # put back in the order of the seeds
            seeds[seed] = {key: of_seed.get(key, math.nan) for key in up}
    return scores, up


def _columns(part: pd.DataFrame, summary: dict[str, Any]) -> tuple[list[Column], list[list[tuple]]]:
    """The columns and, for each, the (client, task, metric) keys it averages; datasets in scenario order."""
    members: dict[tuple, list[tuple]] = {}
    facts: dict[tuple, tuple] = {}
    fields = ("dataset", "group", "task", "metric", "unit", "higher_is_better", "client")
    for dataset, group, task, metric, unit, better, client in zip(*(part[f].tolist() for f in fields)):
        at = (dataset, group, task, metric)
        facts[at] = (unit, bool(better))
        keys = members.setdefault(at, [])
        if (client, task, metric) not in keys:
            keys.append((client, task, metric))
    order = {client["id"]: i for i, client in enumerate(summary["clients"])}
    datasets = list(dict.fromkeys(client["dataset"] for client in summary["clients"]))
    single = {client["id"]: len(client["tasks"]) == 1 for client in summary["clients"]}

    def place(at: tuple) -> tuple:
        dataset, _, task, _ = at
        rank = TASK_ORDER.index(task) if task in TASK_ORDER else len(TASK_ORDER)
        clients = [client for client, _, _ in members[at]]
        alone = single[clients[0]]
        # Single-task clients stand in the order of their tasks, others in the scenario's.
        return (datasets.index(dataset), not alone, 0 if alone else min(order[c] for c in clients), rank, task)

    columns = []
    ordered = sorted(members, key=place)
    headings = {at: _heading(at[0], summary["data"], single[members[at][0][0]]) for at in ordered}
    for at in ordered:
        dataset, group, task, metric = at
        same = [other for other in ordered if headings[other] == headings[at]]
        clash = len({other[2:] for other in same}) < len(same)
        unit, better = facts[at]
        title = TASKS[task].title if task in TASKS else task
        heading = group if clash else headings[at]
        digits = 2 if unit in ("%", "deg") else 4  # metres and losses are small numbers
        columns.append(Column(f"{group}/{task}/{metric}", title, metric, heading, digits, better))
    return columns, [members[at] for at in ordered]


def _heading(dataset: str, source: str, single: bool) -> str:
    return f"{dataset_name(dataset, source)} ({'ST' if single else 'MT'})"


def _mean(of_seed: dict[tuple, float], keys: Sequence[tuple]) -> float:
    """Alike clients share a column: their mean, missing if one is."""
    return math.fsum(of_seed[key] for key in keys) / len(keys)


def _baseline(methods: Sequence[tuple[str, str]], name: str) -> tuple[str, str] | None:
    labelled = [m for m in methods if m[1] == name]
    named = labelled or [m for m in methods if m[0] == name]
    plain = [m for m in named if "(" not in m[1] and not m[1].endswith("-E")]
    if len(named) > 1 and len(plain) != 1:
        raise UsageError(f"--baseline {name}: several variants, name one by its label: {listed(m[1] for m in named)}")
    return (named if len(named) == 1 else plain or [None])[0]


# -- words -------------------------------------------------------------------------------------------------------------


def _title(s: dict[str, Any], split: str) -> str:
    version = f" version {s['scenario_version']}" if s.get("scenario_version") is not None else ""
    return f"{s['scenario']}{version}, {split} test split"


def _notes(scores: dict, base: tuple[str, str] | None, intervals: bool, absent: dict) -> list[str]:
    notes = []
    if base is not None:
        notes.append(f"Δm: mean relative change over (client, task) against {base[1]}, seed by seed; up is better")
    if intervals:
        notes.append(RESAMPLED)
    everyone = sorted({seed for seeds in scores.values() for seed in seeds})
    for method, seeds in scores.items():
        failed = [a for a in absent.get(method, ()) if a.why != REFUSED and a.seed not in seeds]
        if failed:
            notes.append(f"{method[1]} failed, {_failures(failed)}")
        missing = [seed for seed in everyone if seed not in seeds and seed not in {a.seed for a in failed}]
        if missing:
            notes.append(f"{method[1]}: no finished run of seed {listed(missing)}")
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
