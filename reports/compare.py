"""Measured beside published, cell by cell; where the settings differ, that is the first thing said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..bench.absent import Absence
from ..errors import FmtlbenchError, UsageError, nearest
from .collect import Collection, RunRecord
from .delta import delta_cell
from .labels import Labels, dataset_name
from .published import Meaning, Published, load_published, number, published_names
from .settings import by_setting, describe, flat, scenario_parameters
from .table import Cell, Column, Row, Table, mean_cell

if TYPE_CHECKING:
    import pandas as pd

UNLIKE = "≠"
# Moves no score, or is no part of the paper's setting.
_APART = (
    "algorithm", "seed", "device", "checkpoint_every", "numerics", "scenario.description", "scenario.paper",
    "scenario.parameters", "data.workers", "model.weights", "evaluation.every", "evaluation.batch_size",
    "train.threads",
)  # fmt: skip


def compare(collection: Collection, name: str) -> list[Table]:
    """One table per setting of the runs: for every method in common measured, published, and the gap.

    Raises:
        UsageError: An unknown table, one without scores, or no run of its scenario; the nearest tables are named.
    """
    published = load_published(name)
    with_scores = [other for other in published_names() if load_published(other).scores]
    if not published.scores:
        raise UsageError(f"{name} holds no scores ({published.title}); {nearest(name, with_scores)}")
    runs = [run for run in collection.runs if run.summary["scenario"] in published.scenarios]
    if not runs:
        have = sorted({run.summary["scenario"] for run in collection.runs})
        fitting = [other for other in with_scores if set(load_published(other).scenarios) & set(have)]
        near = f"tables for those: {', '.join(fitting)}" if fitting else "no published table is about those"
        raise UsageError(
            f"{name} is about scenario {' and '.join(published.scenarios)}, the runs are of {', '.join(have)}; {near}"
        )
    frame = collection.frame
    labels = {run.name: _label_there(published, run.label, run.summary) for run in runs}
    mine = frame[frame["run"].isin(labels)]
    mine = mine.assign(label=mine["run"].map(labels))
    tables = []
    for _, part, here in by_setting(mine, runs):
        absences = [(label, a) for label, a in collection.absences if a.setting == here[0].setting]
        absent = {_label_there(published, label, vars(a)): a for label, a in absences}
        tables.append(_table(published, part, here, absent))
    if not any(table.rows for table in tables):
        theirs = dict.fromkeys(published.label(row) for row in published.rows)
        ours = sorted(set(labels.values()))
        raise UsageError(f"{name} has no method of these runs: it has {_list(theirs)}, the runs are {_list(ours)}")
    return [table for table in tables if table.rows]


def _table(published: Published, part: pd.DataFrame, runs: list[RunRecord], absent: Mapping[str, Absence]) -> Table:
    rows, unlike = _rows_for(published, runs[0])
    unlike = [*_differences(published, runs[0], published.model(rows[0])), *unlike]
    measured = _measured(published, part)
    columns = [_column(published, c, m, bool(unlike)) for c, m in published.scores.items()]
    deltas = list(published.deltas)
    columns += [Column(d, f"Δm %{f' {UNLIKE}' if unlike else ''}", higher_is_better=True) for d in deltas]
    lines, missing = [], []
    for row in rows:
        label = published.label(row)
        if label not in measured:
            missing.append(published.row_name(row))
            continue
        ours = _ours(published, row, label, measured, runs[0])
        theirs = [_printed(row[c.key]) for c in columns]
        gaps = [_gap(c, mine, their) for c, mine, their in zip(columns, ours, theirs)]
        name = published.row_name(row)
        lines += [Row((name, "measured"), tuple(ours)), Row((name, "published"), tuple(theirs))]
        lines.append(Row((name, "gap"), tuple(gaps)))
    notes = ["gap: measured − published"]
    notes += [f"no run of: {_list(missing)}"] if missing else []
    known = {published.label(row) for row in rows}
    notes += [f"{label} {a.why}: {a.reason}" for label, a in absent.items() if label in known - measured.keys()]
    extra = sorted(set(measured) - known)
    notes += [f"not in the paper's table: {_list(extra)}"] if extra else []
    notes += published.entry.get("notes", ())
    same = f"{published.title}: measured beside published"
    title = f"not the same setting: {', '.join(unlike)}" if unlike else same
    caption = f"published: {published.source} · measured: {runs[0].summary['scenario']}, {describe(runs)}"
    return Table(published.name, title, caption, ("Method", "Value"), tuple(columns), tuple(lines), tuple(notes))


# -- what belongs together ---------------------------------------------------------------------------------------------


def _label_there(published: Published, label: str, summary: Mapping[str, Any]) -> str:
    """What the paper's table would call a run or an absent one that is labelled `label` here."""
    alone = Labels([summary])
    here, there = alone.of(summary), alone.of(summary, published.setting["preset"])
    return there + label.removeprefix(here) if label.startswith(here) else label


def _rows_for(published: Published, run: RunRecord) -> tuple[list[dict[str, str]], list[str]]:
    """The rows about the run's scenario and network; (all of the scenario, what is unlike) if none is about both."""
    rows = [row for row in published.rows if published.scenario(row) == run.summary["scenario"]]
    said = run.summary.get("setting_text") or {}
    chosen = scenario_parameters(run)
    parameter = published.entry.get("parameters")

    def agrees(row: dict[str, str]) -> bool:
        network = all(said.get(key) == value for key, value in published.model(row).items())
        return network and (parameter is None or str(chosen.get(parameter)) == row[parameter])

    fitting = [row for row in rows if agrees(row)]
    if fitting:
        return fitting, []
    unlike = []
    for key in published.model(rows[0]):
        theirs = dict.fromkeys(published.model(row)[key] for row in rows)
        if said.get(key) not in theirs:
            unlike.append(f"{key} {said.get(key, 'unknown')} (paper: {' or '.join(theirs)})")
    if parameter is not None and str(chosen.get(parameter)) not in (row[parameter] for row in rows):
        theirs = dict.fromkeys(row[parameter] for row in rows)
        unlike.append(f"{parameter} {chosen.get(parameter, 'unknown')} (paper: {' or '.join(theirs)})")
    return rows, unlike


def _differences(published: Published, run: RunRecord, model: Mapping[str, str]) -> list[str]:
    """What keeps the run from being a repetition of the paper's."""
    unlike = []
    for key, theirs in published.setting.items():
        if run.summary[key] != theirs:
            unlike.append(f"{key} {run.summary[key]} (paper: {theirs})")
    unlike += _other_parameters(published, run)
    if run.summary["preset"] == published.setting["preset"]:
        unlike += _changed_values(run, model)
    return unlike


def _other_parameters(published: Published, run: RunRecord) -> list[str]:
    """Numbers that the scenario leaves open and the table does not name: the paper has their defaults."""
    chosen = {k: v for k, v in scenario_parameters(run).items() if k != published.entry.get("parameters")}
    if not chosen:
        return []
    from ..scenarios import load_scenario

    theirs = load_scenario(run.summary["scenario"]).parameters
    return [f"{k} {v} (paper: {theirs.get(k, 'unknown')})" for k, v in chosen.items() if v != theirs.get(k)]


def _changed_values(run: RunRecord, model: Mapping[str, str]) -> list[str]:
    """The right preset, but some value of it overridden."""
    from ..config import resolve
    from ..schema import plain

    s = run.summary
    config = flat(run.config)
    if not config:
        return ["config.yaml is lost, so other values are unknown"]
    overrides: dict[str, Any] = {f"model.{key}": value for key, value in model.items()}
    overrides |= {f"scenario.{key}": value for key, value in scenario_parameters(run).items()}
    try:
        ideal = flat(plain(resolve("local", s["scenario"], s["preset"], overrides=overrides)))
    except FmtlbenchError as error:
        return [f"the preset cannot be compared with ({error})"]
    skip = ("federation.rounds", "data.source")  # told already
    file = config.get("model.weights_sha256")
    weights = [f"encoder weights of a file (sha256 {file[:8]}), which need not be the paper's"] if file else []
    return weights + [
        f"{key} {config[key]} (preset: {value})"
        for key, value in ideal.items()
        if key not in skip and not key.startswith(_APART) and key in config and config[key] != value
    ]


# -- cells -------------------------------------------------------------------------------------------------------------


def _measured(published: Published, part: pd.DataFrame) -> dict[str, dict[int, dict[str, float]]]:
    """Label → seed → published column → value in the paper's scale, the mean over the clients that have it."""
    at = {(m.split, *m.key): (column, m.times) for column, m in published.scores.items()}
    values: dict[tuple, list[float]] = {}
    labels: dict[str, dict[int, dict[str, float]]] = {}
    fields = ("label", "seed", "split", "dataset", "task", "metric", "value")
    for label, seed, split, dataset, task, metric, value in zip(*(part[f].tolist() for f in fields)):
        labels.setdefault(label, {}).setdefault(seed, {})
        if (split, dataset, task, metric) in at:
            column, times = at[split, dataset, task, metric]
            values.setdefault((label, seed, column), []).append(value * times)
    for label, seeds in labels.items():
        for seed in seeds:
            for column in published.scores:
                found = values.get((label, seed, column))
                seeds[seed][column] = math.fsum(found) / len(found) if found else math.nan
    return labels


def _ours(published: Published, row: dict[str, str], label: str, measured: dict, run: RunRecord) -> list[Cell]:
    seeds = measured[label]
    cells = []
    for column in published.scores:
        cell = mean_cell([of_seed[column] for of_seed in seeds.values()])
        cells.append(Cell(note="this metric was not measured on this split") if cell.value is None else cell)
    for split in published.deltas.values():
        cells.append(_delta(published, row, label, split, measured, run))
    return cells


def _delta(published: Published, row: dict, label: str, split: str, measured: dict, run: RunRecord) -> Cell:
    """Measured Δm over the paper's columns, against the run that stands for the paper's reference row."""
    entry = published.entry["reference"]
    if "derived" in entry:
        return Cell(note="the paper's Δ is against a run of another scenario")
    table = load_published(entry["table"]) if "table" in entry else published
    base_row, where = published.reference(row)
    if table.scenario(base_row) != run.summary["scenario"] or table.model(base_row) not in ({}, published.model(row)):
        return Cell(note=f"the paper's Δ is against a run of another setting ({where})")
    base = table.label(base_row)
    if base not in measured:
        return Cell(note=f"no Δm: no {base} run in this setting")
    if base == label:
        return Cell(0.0)
    up = {column: m.higher_is_better for column, m in published.scores.items() if m.split == split}
    ours, theirs = (
        {seed: {column: of_seed[column] for column in up} for seed, of_seed in measured[name].items()}
        for name in (label, base)
    )
    return delta_cell(ours, theirs, up, base)


def _column(published: Published, name: str, meaning: Meaning, unlike: bool) -> Column:
    from ..tasks import TASKS

    digits = max(len(row[name].partition(".")[2]) for row in published.rows)
    title = TASKS[meaning.task].title + (f" {UNLIKE}" if unlike else "")
    metric = meaning.metric + (f" ×{meaning.times:g}" if meaning.times != 1 else "")
    splits = {m.split for m in published.scores.values()}
    heading = dataset_name(meaning.dataset) + (f", {meaning.split}" if len(splits) > 1 else "")
    return Column(name, title, metric, heading, digits, meaning.higher_is_better)


def _printed(text: str) -> Cell:
    value = number(text)
    return Cell(word=text) if value is None else Cell(value, printed=text)


def _gap(column: Column, ours: Cell, theirs: Cell) -> Cell:
    if ours.value is None or theirs.value is None:
        return Cell()
    gap = ours.value - theirs.value
    return Cell(gap, printed=replace(column, signed=True).text(gap))


def _list(items: Iterable[str]) -> str:
    return ", ".join(items)
