"""Methods × (client group, task): one table per scenario and setting, never two settings in one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.errors import UsageError, unknown
from ..runs.absence import REFUSED, Absence
from ..runs.external import describe_external
from ..runs.summary import name_method
from ..tasks import title_of
from .code_notes import code_notes
from .collect import Collection, RunRecord
from .columns import MIXED, At, kinds_of_clients, names_of_datasets, order_columns
from .delta import Delta, Score, Scores
from .fairness import COLUMNS, Fairness, fairness
from .gains import Gains, Method, zoo_order
from .settings import by_setting, describe, distinguishing, listed, table_name, table_scenarios
from .table import Cell, Column, Row, Table, Tables, mean_cell
from .tuning import describe_tuning

if TYPE_CHECKING:
    import pandas as pd

SORTS = ("zoo", "delta", "name")
SPREADS = ("seeds", "clients")
# The papers' order: SemSeg, Parts, Sal, Normals, Edge on PASCAL-Context; SemSeg, Depth, Normals, Edge on NYUD-v2.
NULL = "NULL"  # the papers' word where a method makes no sense


def leaderboards(
    collection: Collection,
    scenario: str | None = None,
    split: str = "global",
    delta: Delta | None = None,
    sort: str = "zoo",
    spread: str = "seeds",
    fair: bool = False,
) -> Tables:
    """Make the tables of all settings, in the order of scenario, preset and rounds.

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
    if spread not in SPREADS:
        raise unknown("spread", spread, SPREADS, "--spread")
    found = boards(collection, scenario, split, delta or Delta())
    tables = [_table(board, collection, spread, fair) for board in found]
    _check_sort(sort, tables)
    return Tables(_sorted(table, sort).marked() for table in tables)


class Board(Gains):
    """The scores of one table, by method and seed, what they are compared with, and its columns."""

    def __init__(self, part: pd.DataFrame, runs: list[RunRecord], split: str, delta: Delta, words: str) -> None:
        super().__init__(runs, split, delta)
        self.words = words  # tell its setting from its neighbours
        self.members, self.columns = _columns(part, runs)

    @property
    def name(self) -> str:
        """Return the table's name for files and labels."""
        return table_name(self.runs, self.split)

    @property
    def title(self) -> str:
        """Return the table's scenarios and split."""
        validation = any((run.summary.get("setting_text") or {}).get("data.validation") for run in self.runs)
        images = "split, validation images" if validation else "test split"
        return f"{table_scenarios(self.runs)}, {self.split} {images}"


def boards(collection: Collection, scenario: str | None, split: str, delta: Delta) -> list[Board]:
    """Split the runs into tables, in the order of scenario, preset and rounds; see `leaderboards`."""
    frame, runs = collection.frame, collection.runs
    known = sorted({run.summary["scenario"] for run in runs})
    if scenario is not None and scenario not in known:
        raise unknown("run of scenario", scenario, known)
    names = {run.method for run in runs} | {run.row[0] for run in runs}
    if runs and delta.baseline not in names and delta.baseline != "local":
        raise unknown("run of the baseline", delta.baseline, names)
    rows = frame[frame["primary"].astype(bool)]
    if scenario is not None:
        rows = rows[rows["run"].isin({run.name for run in runs if run.summary["scenario"] == scenario})]
    chosen = rows[rows["split"] == split]
    if chosen.empty:
        raise UsageError(f"no finished run has scores on the {split!r} split; splits: {listed(set(rows['split']))}")
    settings = by_setting(chosen, runs)
    told = distinguishing([here[0] for _, _, here in settings], collection.axes)
    return [Board(part, here, split, delta, words) for (_, part, here), words in zip(settings, told)]


def _table(board: Board, collection: Collection, spread: str, fair: bool) -> Table:
    more = COLUMNS if fair else ()
    here = {run.setting: run for run in board.runs}
    scenarios = {run.summary["scenario"] for run in board.runs}
    absent: dict[Method, list[Absence]] = {}
    for label, absence in collection.absences:
        if absence.setting in here:
            row = (label, *here[absence.setting].row[1:])
            absent.setdefault((name_method(vars(absence)), row), []).append(absence)
    rows = []
    for method in sorted(board.scores.keys() | absent.keys(), key=zoo_order):
        if method not in board.scores:
            rows.append(_absent_row(method[1], absent[method], len(board.columns) + 1 + len(more)))
            continue
        seeds = board.scores[method]
        cells = [_cell(seeds, board.members[column.key], spread) for column in board.columns]
        over_clients = _fairness(board, method) if fair else ()
        rows.append(Row(method[1], (*cells, board.cells[method], *over_clients, Cell(float(len(seeds))))))
    columns = (*board.columns, Column("delta_m", "Δm %", "", "", 2, True), *more, Column("seeds", "seeds", digits=0))
    clients = "± over clients: of their means over seeds (n - 1); a column of one client has none"
    notes = [clients] if spread == "clients" else []
    notes += board.notes(len(collection.heads) > 1)
    titles = {base.title for base in board.bases.values() if base.units is not None}
    notes += [Fairness.words(listed(titles))] if fair and titles else []
    notes += code_notes(board.runs)
    notes += describe_tuning(board.runs)
    notes += _origins(board.runs)
    notes += _missing(board.scores, absent)
    notes += [str(p) for p in collection.problems if p.scenario in scenarios and not p.absence]
    caption = describe(board.runs, board.words, spread)
    return Table(board.name, board.title, caption, collection.heads, columns, tuple(rows), tuple(notes))


def _fairness(board: Board, method: Method) -> Fairness:
    base, seeds = board.bases[method], board.scores[method]
    if base.scores is None:
        return Fairness(*[Cell(note=f"no Δm: no {board.delta.baseline} run in this setting")] * 3)
    if method == base.method:
        return Fairness(*[Cell(0.0, n=len(seeds))] * 3)
    return fairness(seeds, base.scores, board.up, base.title, board.delta)


def _cell(seeds: Mapping[int, Scores], members: Sequence[Score], spread: str) -> Cell:
    """Return a column's mean over the clients that hold it and over seeds; ± over one of the two."""
    there = [at for at in members if any(at in of_seed for of_seed in seeds.values())]
    if not there:
        return Cell()
    cell = mean_cell([math.fsum(of_seed[at] for at in there) / len(there) for of_seed in seeds.values()])
    if spread == "seeds" or cell.value is None:
        return cell
    over = mean_cell([math.fsum(of_seed[at] for of_seed in seeds.values()) / len(seeds) for at in there], "clients")
    return replace(cell, std=over.std, n=over.n, note=cell.note or over.note)


def _absent_row(labels: tuple[str, ...], absences: list[Absence], width: int) -> Row:
    """Make the row of a method without any finished run: a word in every cell, the reason below the table."""
    refused = [absence.reason for absence in absences if absence.why == REFUSED]
    cell = Cell(word=NULL if refused else "failed")
    note = f"refused: {refused[0]}" if refused else f"failed: {_failures(absences)}"
    return Row(labels, (*[cell] * width, Cell(0.0)), note)


def _failures(absences: list[Absence]) -> str:
    """Name each reason once, with the seeds it is about."""
    seeds: dict[str, list[int]] = {}
    for absence in absences:
        seeds.setdefault(absence.reason, []).append(absence.seed)
    return "; ".join(f"seed {listed(of)}: {reason}" for reason, of in seeds.items())


def _columns(part: pd.DataFrame, runs: list[RunRecord]) -> tuple[dict[str, list[Score]], list[Column]]:
    """Return the scores that each column averages, and the columns: one per dataset and task, in the papers' order."""
    found: dict[At, dict[str, None]] = {}
    facts: dict[At, tuple] = {}
    fields = ("dataset", "task", "metric", "unit", "higher_is_better", "client")
    distinct = part[list(fields)].drop_duplicates()
    for dataset, task, metric, unit, better, client in zip(*(distinct[f].tolist() for f in fields)):
        facts[dataset, task, metric] = (unit, bool(better))
        found.setdefault((dataset, task, metric), {})[client] = None
    members = {at: list(clients) for at, clients in found.items()}
    kinds = kinds_of_clients(members, runs)
    names = names_of_datasets(runs)
    columns = []
    for at in order_columns(members, runs):
        dataset, task, metric = at
        unit, better = facts[at]
        title = title_of(task)
        heading = names[dataset] + ("" if kinds[at] == MIXED else f" ({kinds[at]})")
        digits = 2 if unit in ("%", "deg") else 4  # metres and losses are small numbers
        columns.append(Column("/".join(at), title, metric, heading, digits, better))
    scores = {"/".join(at): [Score(client, *at) for client in clients] for at, clients in members.items()}
    return scores, columns


# -- words -------------------------------------------------------------------------------------------------------------


def _origins(runs: Sequence[RunRecord]) -> list[str]:
    """Say of every set of predictions that was made elsewhere where it came from."""
    told = {run.row: describe_external(run.summary) for run in runs if run.summary.get("external")}
    return [f"{', '.join(row)}: {origin}" for row, origin in told.items()]


def _missing(scores: dict[Method, dict], absent: dict[Method, list[Absence]]) -> list[str]:
    """Say which seeds a method lacks, and why."""
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
    """Refuse a column that no table has; one that only some have sorts those."""
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
