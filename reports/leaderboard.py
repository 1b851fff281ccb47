"""Methods × (client group, task): one table per scenario and setting, never two settings in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import FmtlbenchError, UsageError, unknown
from ..tasks import TASKS
from .collect import Collection, RunRecord
from .delta import RESAMPLED, Scores, delta_cell
from .labels import zoo_rank
from .table import Cell, Column, Row, Table, mean_cell

if TYPE_CHECKING:
    import pandas as pd

SORTS = ("zoo", "delta", "name")
# The papers' order: SemSeg, Parts, Sal, Normals, Edge on PASCAL-Context; SemSeg, Depth, Normals, Edge on NYUD-v2.
TASK_ORDER = ("semseg", "human_parts", "sal", "depth", "normals", "edge")
REAL_NAMES = {"pascal": "PASCAL-Context", "nyud": "NYUD-v2"}


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
        raise UsageError(f"no finished run has scores on the {split!r} split; splits: {_list(set(rows['split']))}")
    settings = by_setting(chosen, runs)
    told = _distinguishing([here[0] for _, _, here in settings])
    tables = []
    for (name, part, here), words in zip(settings, told):
        problems = [str(p) for p in collection.problems if p.scenario == name]
        table = _table(part, here, split, baseline, words, problems)
        tables.append(_sorted(table, sort).marked())
    return tables


def by_setting(rows: pd.DataFrame, runs: list[RunRecord]) -> list[tuple[str, pd.DataFrame, list[RunRecord]]]:
    """(scenario, rows, runs) of every setting; two runs for one place in a table are refused."""
    with_rows = set(rows["run"])
    settings: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        if run.name in with_rows:
            settings.setdefault(_together(run), []).append(run)
    ordered = sorted(settings.items(), key=lambda item: tuple(map(str, item[0])))
    place = {run.name: number for number, (_, here) in enumerate(ordered) for run in here}
    numbers = rows["run"].map(place)
    found = []
    for number, (key, here) in enumerate(ordered):
        _refuse_twins(here)
        found.append((key[0], rows[numbers == number], here))
    return found


def _together(run: RunRecord) -> tuple:
    """What all runs of a table have in common."""
    s = run.summary
    rounds = f"{s['rounds']:09}"  # so that text sorts as numbers do
    return (s["scenario"], s.get("scenario_version"), s["preset"], s["data"], rounds, run.data_key, run.setting)


def _table(
    part: pd.DataFrame, runs: list[RunRecord], split: str, baseline: str, words: str, problems: list[str]
) -> Table:
    first = runs[0].summary
    scores, up = _scores(part)
    columns, keys = _columns(part, first)
    methods = sorted({(run.summary["algorithm"], run.label) for run in runs}, key=lambda m: (zoo_rank(m[0]), m[1]))
    base = _baseline(methods, baseline)
    rows = []
    for method in methods:
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
    notes = _notes(scores, base, any(row.cells[-2].interval for row in rows))
    name = f"{first['scenario']}-{first['preset']}-{first['data']}-{split}-{runs[0].setting.removeprefix('older-')[:8]}"
    return Table(
        name, _title(first, split), describe(runs, words), ("Method",), columns,
        tuple(rows), (*notes, *problems),
    )  # fmt: skip


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
        columns.append(Column(f"{group}/{task}/{metric}", title, metric, heading, 4 if unit == "m" else 2, better))
    return columns, [members[at] for at in ordered]


def _heading(dataset: str, source: str, single: bool) -> str:
    name = REAL_NAMES.get(dataset, dataset) if source == "real" else f"{source}-{dataset}"
    return f"{name} ({'ST' if single else 'MT'})"


def _mean(of_seed: dict[tuple, float], keys: Sequence[tuple]) -> float:
    """Alike clients share a column: their mean, missing if one is."""
    return math.fsum(of_seed[key] for key in keys) / len(keys)


def _baseline(methods: Sequence[tuple[str, str]], name: str) -> tuple[str, str] | None:
    labelled = [m for m in methods if m[1] == name]
    named = labelled or [m for m in methods if m[0] == name]
    plain = [m for m in named if "(" not in m[1] and not m[1].endswith("-E")]
    if len(named) > 1 and len(plain) != 1:
        raise UsageError(f"--baseline {name}: several variants, name one by its label: {_list(m[1] for m in named)}")
    return (named if len(named) == 1 else plain or [None])[0]


def _refuse_twins(runs: list[RunRecord]) -> None:
    seen: dict[tuple, RunRecord] = {}
    for run in runs:
        key = (run.summary["algorithm"], run.label, run.summary["seed"])
        if key in seen:
            raise FmtlbenchError(
                f"two runs of {run.label}, seed {run.summary['seed']}, in one setting: {seen[key].folder} and "
                f"{run.folder}; remove one, or name the folders you mean"
            )
        seen[key] = run


# -- words -------------------------------------------------------------------------------------------------------------


def _distinguishing(runs: list[RunRecord]) -> list[str]:
    """For one run of each setting: the values of `setting_text` that set it apart from the others of its scenario."""
    told = []
    for run in runs:
        mine = run.summary.get("setting_text") or {}
        others = [o.summary.get("setting_text") or {} for o in runs if o.summary["scenario"] == run.summary["scenario"]]
        keys = [k for k in mine if any(other and other.get(k) != mine[k] for other in others)]
        told.append(", ".join(f"{k} {mine[k]}" for k in keys))
    return told


def _title(s: dict[str, Any], split: str) -> str:
    version = f" version {s['scenario_version']}" if s.get("scenario_version") is not None else ""
    return f"{s['scenario']}{version}, {split} test split"


def describe(runs: list[RunRecord], words: str = "") -> str:
    """The setting of a table in one line; `words` tell it from its neighbours."""
    s = runs[0].summary
    data = f"{s['data']} data" + (f" {runs[0].data_key}" if runs[0].data_key else " (no fingerprint)")
    seeds = sorted({run.summary["seed"] for run in runs})
    how = "mean ± standard deviation over seeds" if len(seeds) > 1 else "seed"
    parts = [
        f"preset {s['preset']}", data, f"{s['rounds']} rounds",
        _list({run.summary.get("device") or "unknown device" for run in runs}), "scores of the last round",
        f"{how} {_list(seeds)}", f"setting {runs[0].setting[:14]}{f' ({words})' if words else ''}",
        f"fmtlbench {_list({run.version or 'unknown version' for run in runs})}",
    ]  # fmt: skip
    return " · ".join(parts)


def _notes(scores: dict, base: tuple[str, str] | None, intervals: bool) -> list[str]:
    notes = []
    if base is not None:
        notes.append(f"Δm: mean relative change over (client, task) against {base[1]}, seed by seed; up is better")
    if intervals:
        notes.append(RESAMPLED)
    everyone = sorted({seed for seeds in scores.values() for seed in seeds})
    for (_, label), seeds in scores.items():
        absent = [seed for seed in everyone if seed not in seeds]
        if absent:
            notes.append(f"{label}: no finished run of seed {_list(absent)}")
    return notes


def _sorted(table: Table, sort: str) -> Table:
    if sort == "zoo":
        return table
    if sort == "name":
        return replace(table, rows=tuple(sorted(table.rows, key=lambda row: row.labels)))
    keys = [column.key for column in table.columns]
    wanted = "delta_m" if sort == "delta" else sort
    if wanted not in keys:
        raise unknown("column to sort by", sort, [*SORTS, *keys])
    at = keys.index(wanted)
    sign = 1 if table.columns[at].higher_is_better is False else -1

    def place(row: Row) -> tuple:
        value = row.cells[at].value
        return (value is None, 0 if value is None else sign * value)

    return replace(table, rows=tuple(sorted(table.rows, key=place)))


def _list(items) -> str:
    return ", ".join(map(str, sorted(items, key=lambda i: (str(type(i)), i))))
