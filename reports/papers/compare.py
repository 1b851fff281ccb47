"""Measured beside published, cell by cell; where the settings differ, that is the first thing said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from ...base.errors import FmtlbenchError, UsageError, nearest
from ...config.roles import roles
from ...config.setting import Setting
from ...runs.absence import Absence
from ..code_notes import code_notes
from ..collect import Collection, RunRecord
from ..delta import Delta, Gain, mark_differences
from ..labels import Labels
from ..settings import by_setting, describe, scenario_parameters
from ..table import Cell, Table
from .cells import UNLIKE, OfSeed, beside_rows, column_gain, in_columns, measured_column, score_cell
from .published import Published, load_published, published_names

TOLD = ("federation.rounds", "data.source", "preset")  # what differs there is said in words of its own


class Installed(Protocol):
    """What presets and scenarios say in this installation: runs do not store it, so whoever compares brings it."""

    def preset_options(self, preset: str, method: str) -> Mapping[str, Any]:
        """Return the options that a preset gives a method in place of the method's own defaults."""

    def scenario_parameters(self, scenario: str) -> Mapping[str, Any]:
        """Return the numbers that a scenario leaves open, with their defaults."""

    def preset_setting(self, scenario: str, preset: str, overrides: Mapping[str, Any]) -> Setting:
        """Return the setting of a scenario under a preset."""


def compare(collection: Collection, name: str, installed: Installed, delta: Delta | None = None) -> list[Table]:
    """Make a table per setting of the runs: for every method in common measured, published, and the gap.

    Only the published rows of the run's own network are shown; a nano backbone stands for its family, and any backbone
    for a table's only one: what differs is said. `delta` says
    which Δm is measured: with a reference, against those runs, whatever row the paper takes.

    Raises:
        UsageError: An unknown table, one without scores, or no run of its scenario or networks; the nearest are named.
    """
    delta = delta or Delta()
    published, runs = published_runs(collection, name, installed)
    frame = collection.frame
    tables, strange = [], []
    for _, _, here in by_setting(frame[frame["run"].isin([run.name for run in runs])], runs):
        rows, unlike = rows_for(published, here[0])
        if not rows:
            strange += unlike
            continue
        absences = [(label, a) for label, a in collection.absences if a.setting == here[0].setting]
        absent = {_label_there(published, label, vars(a), installed): a for label, a in absences}
        unlike = [*differences(published, here[0], published.model(rows[0]), installed), *unlike]
        tables.append(_table(published, rows, unlike, here, absent, delta))
    if not tables:
        raise UsageError(f"{name} has no row of these runs' network: {', '.join(dict.fromkeys(strange))}")
    if not any(table.rows for table in tables):
        theirs = dict.fromkeys(published.label(row) for row in published.rows)
        ours = sorted({run.label for run in runs})
        raise UsageError(f"{name} has no method of these runs: it has {_list(theirs)}, the runs are {_list(ours)}")
    return [table for table in tables if table.rows]


def published_runs(collection: Collection, name: str, installed: Installed) -> tuple[Published, list[RunRecord]]:
    """Return the published table and the runs of its scenarios, labelled as it would label them.

    Raises:
        UsageError: An unknown table, one without scores, or no run of its scenario; the nearest are named.
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
    return published, [replace(run, label=_label_there(published, run.label, run.summary, installed)) for run in runs]


def _table(
    published: Published,
    rows: list[dict[str, str]],
    unlike: list[str],
    runs: list[RunRecord],
    absent: Mapping[str, Absence],
    delta: Delta,
) -> Table:
    by_label: dict[str, dict[int, RunRecord]] = {}
    for run in runs:
        by_label.setdefault(run.label, {})[run.summary["seed"]] = run
    measured = {label: in_columns(published, of_seed) for label, of_seed in by_label.items()}
    mark = UNLIKE if unlike else ""
    columns = [measured_column(published, column, mark) for column in published.scores]
    columns += [published.column(column, mark=mark) for column in published.deltas]
    gains, tests = _gains(published, rows, measured, runs, delta)
    lines, missing = [], []
    for row in rows:
        label = published.label(row)
        if label not in measured:
            missing.append(published.row_name(row))
            continue
        scores = [score_cell(column, measured[label]) for column in published.scores]
        ours = [*scores, *(gains[split, label] for split in published.deltas.values())]
        lines += beside_rows((published.row_name(row),), columns, ours, row)
    base = delta.reference.title if delta.reference else "the run that stands for the paper's reference row"
    notes = ["gap: measured − published", *([delta.words(base), *tests] if published.deltas else [])]
    notes += [f"no run of: {_list(missing)}"] if missing else []
    known = {published.label(row) for row in rows}
    notes += [f"{label} {a.why}: {a.reason}" for label, a in absent.items() if label in known - measured.keys()]
    extra = sorted(set(measured) - known)
    notes += [f"not in the paper's table: {_list(extra)}"] if extra else []
    notes += [*published.notes, *code_notes(runs)]
    same = f"{published.title}: measured beside published"
    title = f"not the same setting: {', '.join(unlike)}" if unlike else same
    caption = f"published: {published.source} · measured: {runs[0].summary['scenario']}, {describe(runs)}"
    return Table(published.name, title, caption, ("Method", "Value"), tuple(columns), tuple(lines), tuple(notes))


# -- what belongs together ---------------------------------------------------------------------------------------------


def _label_there(published: Published, label: str, summary: Mapping[str, Any], installed: Installed) -> str:
    """Return what the paper's table would call a run or an absent one that is labelled `label` here."""
    alone = Labels([summary])
    variant = installed.preset_options(published.setting["preset"], summary["algorithm"])
    here, there = alone.of(summary), alone.of(summary, variant)
    return there + label.removeprefix(here) if label.startswith(here) else label


def rows_for(published: Published, run: RunRecord) -> tuple[list[dict[str, str]], list[str]]:
    """Return the rows about the run's scenario, network and parameters, and what is not the same; no rows: why."""
    rows = [row for row in published.rows if published.scenario(row) == run.summary["scenario"]]
    unlike = []
    for key in published.model(rows[0]):  # architecture, backbone
        mine = run.values.value(key)
        theirs = list(dict.fromkeys(published.model(row)[key] for row in rows))
        said = f"{key} {mine or 'unknown'} (paper: {' or '.join(theirs)})"
        if mine is None:  # a summary of an older version, and no config: it may be the paper's
            unlike.append(said)
            continue
        fitting = [value for value in theirs if value == mine]
        if key == "backbone" and not fitting:
            alike = [value for value in theirs if backbone_family(value) == backbone_family(mine)]
            fitting = alike or (theirs if len(theirs) == 1 else [])  # where there is one, it is clear which is meant
        if mine not in theirs:
            unlike.append(said)
        rows = [row for row in rows if published.model(row)[key] in fitting]
        if not rows:
            return [], [said]
    parameter = published.entry.get("parameters")
    if parameter is not None:
        mine = str(scenario_parameters(run).get(parameter, "unknown"))
        theirs = dict.fromkeys(row[parameter] for row in rows)
        if mine not in theirs:
            unlike.append(f"{parameter} {mine} (paper: {' or '.join(theirs)})")
        else:
            rows = [row for row in rows if row[parameter] == mine]
    return rows, unlike


def backbone_family(name: str) -> str:
    """Return the family of a backbone: that of `swin_nano` and `swin_tiny` is `swin`."""
    return re.match(r"[a-z]*", name)[0]


def differences(published: Published, run: RunRecord, model: Mapping[str, str], installed: Installed) -> list[str]:
    """List what keeps the run from being a repetition of the paper's."""
    unlike = []
    for key, theirs in published.setting.items():
        if run.summary[key] != theirs:
            unlike.append(f"{key} {run.summary[key]} (paper: {theirs})")
    unlike += _other_parameters(published, run, installed)
    if run.summary["preset"] == published.setting["preset"]:
        unlike += _changed_values(run, model, installed)
    return unlike


def _other_parameters(published: Published, run: RunRecord, installed: Installed) -> list[str]:
    """List the numbers that the scenario leaves open and the table does not name: the paper has their defaults."""
    chosen = {k: v for k, v in scenario_parameters(run).items() if k != published.entry.get("parameters")}
    if not chosen:
        return []
    theirs = installed.scenario_parameters(run.summary["scenario"])
    return [f"{k} {v} (paper: {theirs.get(k, 'unknown')})" for k, v in chosen.items() if v != theirs.get(k)]


def _changed_values(run: RunRecord, model: Mapping[str, str], installed: Installed) -> list[str]:
    """List the values of the right preset that the run overrides."""
    s = run.summary
    if not run.config:
        return ["config.yaml is lost, so other values are unknown"]
    overrides: dict[str, Any] = {f"model.{key}": value for key, value in model.items()}
    overrides |= {f"scenario.{key}": value for key, value in scenario_parameters(run).items()}
    try:
        ideal = installed.preset_setting(s["scenario"], s["preset"], overrides)
    except FmtlbenchError as error:
        return [f"the preset cannot be compared with ({error})"]
    file = run.values.value("model.weights_sha256")
    weights = [f"encoder weights of a file (sha256 {file[:8]}), which need not be the paper's"] if file else []
    changed = run.values.differences(ideal, skip=(*roles().incidental, *TOLD, "scenario.parameters"))
    return weights + [f"{path} {mine} (preset: {theirs})" for path, (mine, theirs) in changed.items()]


# -- Δ -----------------------------------------------------------------------------------------------------------------


Measured = Mapping[str, Mapping[int, OfSeed]]  # label → seed → what was scored in the published columns


def _gains(
    published: Published, rows: list[dict[str, str]], measured: Measured, runs: Sequence[RunRecord], delta: Delta
) -> tuple[dict[tuple[str, str], Cell], list[str]]:
    """Return the measured Δm over the paper's columns by (split, label), marked if it differs, and what marks mean."""
    found, notes = {}, []
    for split in published.deltas.values():
        gains, references = {}, set()
        for row in rows:
            label = published.label(row)
            if label in measured:
                gains[label], base = _gain(published, row, split, measured, runs, delta)
                references |= {base} - {None}
        title = delta.reference.title if delta.reference else " and ".join(sorted(references)) or "the reference"
        marked, notes = mark_differences(gains, references, title)
        found |= {(split, label): cell for label, cell in marked.items()}
    return found, notes


def _gain(
    published: Published, row: dict, split: str, measured: Measured, runs: Sequence[RunRecord], delta: Delta
) -> tuple[Gain, str | None]:
    """Return a row's Δm against the named reference, or the run that stands for the paper's, and that one's label."""
    label = published.label(row)
    ours = measured[label]
    if delta.reference is not None:
        names = {run.name for run in delta.reference.runs.values()}
        base = next((run.label for run in runs if run.name in names), None)
        title, theirs = delta.reference.title, in_columns(published, delta.reference.runs)
    elif refusal := _elsewhere(published, row, runs[0]):
        return Gain(Cell(note=refusal)), None
    else:
        table, base_row = published.reference_row(row)
        base = title = table.label(base_row)
        if base not in measured:
            return Gain(Cell(note=f"no Δm: no {base} run in this setting")), None
        theirs = measured[base]
    return Gain.zero(ours) if base == label else column_gain(published, ours, theirs, split, title, delta), base


def _elsewhere(published: Published, row: dict, run: RunRecord) -> str:
    """Say why the run that the paper's Δ is against cannot be among runs of this one's setting; "" where it can."""
    if "derived" in published.entry["reference"]:
        return "the paper's Δ is against a run of another scenario; --reference names it"
    table, base = published.reference_row(row)
    if table.scenario(base) == run.summary["scenario"] and table.model(base) == published.model(row):
        return ""
    return f"the paper's Δ is against a run of another setting ({published.reference(row)[1]}); --reference names it"


def _list(items: Iterable[str]) -> str:
    return ", ".join(items)
