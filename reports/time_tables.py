"""Tables of modelled time: how long rounds would take, and until a score reaches a target. No torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..base.errors import FmtlbenchError, UsageError, unknown
from ..base.words import say_count
from .code_notes import code_notes
from .collect import Collection, RunRecord
from .delta import Bases, Delta
from .gains import Method, method_of, zoo_order
from .plots._curves import evaluated
from .settings import by_setting, describe, listed, table_name
from .table import Cell, Column, Row, Table, Tables, mean_cell
from .time_model import ModelledRun, TimeModel, model_run
from .time_to_target import NO_BASE, NO_DELTA, NOT_REACHED, ROUNDING, delta_curve, resolution, spent
from .units import digits_of

DELTA_M = "delta-m"


@dataclass(frozen=True)
class Target:
    """A score to reach: Δm in percent, or the primary metric of a task, the mean over the clients that have it."""

    name: str  # delta-m, a task, or dataset/task
    value: float

    @property
    def task(self) -> str:
        """Return the task, without the dataset."""
        return self.name.rpartition("/")[2]

    @property
    def dataset(self) -> str:
        """Return the dataset; "": that of the runs, if they have the task on one dataset only."""
        return self.name.rpartition("/")[0]

    def covers(self, score: Any) -> bool:
        """Say whether a score is of its task, and of its dataset where it names one."""
        return score["task"] == self.task and self.dataset in ("", score["dataset"])


def parse_target(text: str, where: str = "--target") -> Target:
    """Return the target that `depth=0.8`, `nyud/semseg=30` or `delta-m=-10` stands for."""
    name, equals, number = (word.strip() for word in text.rpartition("="))
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (equals and name and math.isfinite(value)):
        raise UsageError(
            f"{where} {text}: expected TASK=VALUE or {DELTA_M}=PERCENT, such as depth=0.8, nyud/semseg=30 or "
            f"{DELTA_M}=-10"
        )
    return Target(name, value)


class _Goal(NamedTuple):
    """A target as one table has it: what to call it, and what became of it in a run."""

    key: str
    heading: str
    reach: Callable[[RunRecord], int | str]  # the first scored round that reaches it, or why there is none


def time_tables(
    collection: Collection,
    model: TimeModel | None = None,
    targets: Sequence[Target] = (),
    scenario: str | None = None,
    split: str = "global",
    delta: Delta | None = None,
) -> Tables:
    """Make a table per setting, a row per method, means over seeds, of the time that `model` gives their rounds.

    Args:
        collection: The runs.
        model: Machines and lines of the clients; by default as the machine that ran them, with unlimited lines.
        targets: Scores to reach.
        scenario: Only runs of this one.
        split: Whose scores.
        delta: Which Δm is meant by targets of it.

    Raises:
        UsageError: A client, task, scenario or split that no run has.
    """
    model = model or TimeModel()
    runs = [run for run in collection.runs if scenario in (None, run.summary["scenario"])]
    if not runs:
        raise unknown("run of scenario", str(scenario), {run.summary["scenario"] for run in collection.runs})
    model.check_clients(sorted({client["id"] for run in runs for client in run.summary["clients"]}))
    frame = collection.frame
    primary = frame[frame["primary"].astype(bool) & frame["run"].isin({run.name for run in runs})]
    rows = primary[primary["split"] == split]
    if rows.empty:
        raise UsageError(f"no finished run has scores on the {split!r} split; splits: {listed(set(primary['split']))}")
    _check_targets(targets, runs, split)
    tables = Tables()
    for _, _, members in by_setting(rows, runs):
        tables.append(_table(members, collection.heads, model, targets, split, delta or Delta()))
    return tables


def _check_targets(targets: Sequence[Target], runs: Sequence[RunRecord], split: str) -> None:
    """Refuse targets of what no run is scored on."""
    scores = [s for run in runs for s in run.summary["scores"] if s["primary"] and s["split"] == split]
    pairs = {(s["dataset"], s["task"]) for s in scores}
    known = {DELTA_M, *(task for _, task in pairs), *(f"{dataset}/{task}" for dataset, task in pairs)}
    for target in targets:
        if target.name not in known:
            raise unknown("score", target.name, known, "--target")


def _table(
    runs: Sequence[RunRecord],
    heads: tuple[str, ...],
    model: TimeModel,
    targets: Sequence[Target],
    split: str,
    delta: Delta,
) -> Table:
    bases = Bases(runs, split, delta)
    goals = [_find_goal(target, runs, bases) for target in dict.fromkeys(targets)]
    methods: dict[Method, list[RunRecord]] = {}
    for run in sorted(runs, key=lambda run: (zoo_order(method_of(run)), run.summary["seed"])):
        methods.setdefault(method_of(run), []).append(run)
    rows = [_row(method, members, model, goals) for method, members in methods.items()]
    return Table(
        f"time-{table_name(runs, split)}",
        f"{listed({run.summary['scenario'] for run in runs})}: modelled time",
        describe(list(runs)),
        heads,
        _columns(goals, rows),
        tuple(rows),
        tuple(_notes(runs, model, goals, bases)),
    )


def _row(method: Method, runs: Sequence[RunRecord], model: TimeModel, goals: Sequence[_Goal]) -> Row:
    modelled = [_model(run, model) for run in runs]
    cells = [_mean_over_seeds([_mean_round(of, part) for of in modelled], modelled) for _, _, part in PER_ROUND]
    cells.append(_waited_for(modelled))
    totals = [_spent(run, of, run.summary["rounds"]) for run, of in zip(runs, modelled)]
    cells += [_mean_over_seeds([total[key] for total in totals], modelled) for key, _ in AMOUNTS]
    for goal in goals:
        cells += _goal_cells(goal, runs, modelled)
    return Row(method[1], (*cells, Cell(float(len(runs)))))


def _goal_cells(goal: _Goal, runs: Sequence[RunRecord], modelled: Sequence[ModelledRun]) -> list[Cell]:
    """Make the cells of a target: that of the round says what became of it, the others may be missing."""
    found = [goal.reach(run) for run in runs]
    there = [(run, of, at) for run, of, at in zip(runs, modelled, found) if isinstance(at, int)]
    late = sorted({why for why in found if isinstance(why, str)})
    if not there:
        return [Cell(word=", ".join(late)), *[Cell()] * len(AMOUNTS)]
    note = f"over {len(there)} of {len(runs)} seeds; the others: {', '.join(late)}" if late else ""
    amounts = [_spent(run, of, at) for run, of, at in there]
    those = [of for _, of, _ in there]
    cells = [mean_cell([at for _, _, at in there])]
    cells += [_mean_over_seeds([amount[key] for amount in amounts], those) for key, _ in AMOUNTS]
    return [Cell(cell.value, cell.std, cell.n, note=note or cell.note) for cell in cells]


def _mean_over_seeds(values: Sequence[float | None], modelled: Sequence[ModelledRun]) -> Cell:
    """Average over seeds; where some lack a value, the note says why."""
    cell = mean_cell(values)
    reasons = dict.fromkeys(of.why_not for value, of in zip(values, modelled) if value is None and of.why_not)
    note = "; ".join(filter(None, ("" if cell.value is None else cell.note, *reasons)))
    return Cell(cell.value, cell.std, cell.n, note=note or cell.note)


# -- of one run --------------------------------------------------------------------------------------------------------


def _model(run: RunRecord, model: TimeModel) -> ModelledRun:
    if run.summary.get("external"):
        return ModelledRun(why_not="its predictions were made elsewhere")
    modelled = model_run(run.rounds(), run.timing(), [client["id"] for client in run.summary["clients"]], model)
    if modelled.rounds and len(modelled.rounds) < run.summary["rounds"]:
        return ModelledRun(why_not=f"round {len(modelled.rounds) + 1} is not in metrics.jsonl")
    return modelled


def _mean_round(modelled: ModelledRun, part: Callable[[Any], float]) -> float | None:
    return math.fsum(map(part, modelled.rounds)) / len(modelled.rounds) if modelled.rounds else None


def _spent(run: RunRecord, modelled: ModelledRun, number: int) -> dict[str, float | None]:
    """Return what a run had used up after a round: as the model has it, and as it was measured."""
    measured, seconds = spent(run, number), modelled.seconds_until(number)
    return {
        "minutes": None if seconds is None else seconds / 60,
        "measured_minutes": measured.minutes,
        "mb": None if measured.bytes is None else measured.bytes / 1e6,
    }


PER_ROUND: tuple[tuple[str, str, Callable[[Any], float]], ...] = (
    ("seconds_per_round", "s", lambda done: done.seconds),
    ("compute_seconds_per_round", "s compute", lambda done: done.slowest.compute),
    ("transfer_seconds_per_round", "s transfer", lambda done: done.slowest.download + done.slowest.upload),
    ("server_seconds_per_round", "s server", lambda done: done.server),
)
AMOUNTS = (("minutes", "min modelled"), ("measured_minutes", "min measured"), ("mb", "MB"))


def _waited_for(modelled: Sequence[ModelledRun]) -> Cell:
    """Name the client that the server waits for most often, over all rounds and seeds."""
    names = Counter(done.slowest.client for of in modelled for done in of.rounds)
    if not names:
        return Cell()
    name, count = names.most_common(1)[0]
    return Cell(word=f"{name} ({count} of {names.total()})")


# -- targets -----------------------------------------------------------------------------------------------------------


def _find_goal(target: Target, runs: Sequence[RunRecord], bases: Bases) -> _Goal:
    key = f"{target.name}_{target.value:g}"
    if target.name == DELTA_M:
        return _Goal(key, f"until Δm ≥ {target.value:g} %", lambda run: _reach_delta(run, bases, target.value))
    scores = [s for run in runs for s in run.summary["scores"] if s["primary"] and s["split"] == bases.split]
    scores = [score for score in scores if target.covers(score)]
    if not scores:
        return _Goal(key, f"until {target.name} {target.value:g}", lambda run: f"no {target.name}")
    datasets, metrics = ({score[part] for score in scores} for part in ("dataset", "metric"))
    if len(datasets) > 1:
        named = " or ".join(f"{dataset}/{target.task}={target.value:g}" for dataset in sorted(datasets))
        raise UsageError(f"--target {target.name}={target.value:g}: on which dataset? {named}")
    if len(metrics) > 1:
        raise UsageError(f"--target {target.name}={target.value:g}: the rows are scored by {listed(metrics)}")
    up, unit = scores[0]["higher_is_better"], scores[0].get("unit")
    told = f"{target.name} {metrics.pop()} {'≥' if up else '≤'} {target.value:g}{f' {unit}' if unit else ''}"
    return _Goal(key, f"until {told}", lambda run: _reach_score(run, bases.split, target, bool(up)))


def _reach_delta(run: RunRecord, bases: Bases, wanted: float) -> int | str:
    if not bases.has(run):
        return NO_BASE.format(bases.rule.baseline)
    return _first(delta_curve(run, bases), wanted, True, NO_DELTA)


def _reach_score(run: RunRecord, split: str, target: Target, up: bool) -> int | str:
    try:
        scored = evaluated(run, split)
    except FmtlbenchError:
        scored = {}
    curve = []
    for number, records in sorted(scored.items()):
        values = [record["value"] for record in records if target.covers(record)]
        if values and None not in values:  # the mean needs every client's
            curve.append((number, math.fsum(values) / len(values)))
    return _first(curve, target.value, up, f"no {target.name} of any round")


def _first(curve: Sequence[tuple[int, float]], wanted: float, up: bool, nothing: str) -> int | str:
    """Return the first round of a curve that is at the wanted value or beyond it, or why there is none."""
    if not curve:
        return nothing
    for number, value in curve:
        if (value >= wanted if up else value <= wanted) or math.isclose(value, wanted, abs_tol=ROUNDING):
            return number
    return NOT_REACHED


# -- columns and words -------------------------------------------------------------------------------------------------


def _columns(goals: Sequence[_Goal], rows: Sequence[Row]) -> tuple[Column, ...]:
    plan = [(key, title, "per round") for key, title, _ in PER_ROUND]
    plan.append(("waited_for", "waited for", "per round"))
    plan += [(key, title, "all rounds") for key, title in AMOUNTS]
    for goal in goals:
        plan.append((f"round_to_{goal.key}", "round", goal.heading))
        plan += [(f"{key}_to_{goal.key}", title, goal.heading) for key, title in AMOUNTS]
    columns = []
    for index, (key, title, heading) in enumerate(plan):
        source = 0 if index < len(PER_ROUND) else index  # parts of a round are printed as finely as the whole
        values = [value for row in rows if (value := row.cells[source].value)]
        digits = 0 if title == "round" else digits_of(values) if values else 2
        columns.append(Column(key, title, heading=heading, digits=digits))
    return (*columns, Column("seeds", "seeds", digits=0))


def _notes(runs: Sequence[RunRecord], model: TimeModel, goals: Sequence[_Goal], bases: Bases) -> list[str]:
    members = {client["id"] for run in runs for client in run.summary["clients"]}
    notes = [
        *model.notes(members),
        "modelled: every client on a machine and a line of its own, and synchronous rounds: a round is download + "
        "compute + upload of the client that is waited for, with a latency for each direction, and the server's step",
        "measured, on the machine that ran it: bytes by client, seconds that each client worked (loading and the first "
        "batch's warm-up included, evaluation not; longer where clients shared its cores) and the server's aggregation",
        "min measured: by its wall clock, with evaluation and checkpoints; MB: 10^6 bytes, up and down, all clients",
    ]
    if goals:
        gaps = sorted({gap for run in runs if (gap := resolution(run, bases.split)) is not None})
        notes.append(
            f"until …: the first scored round that reaches it; {_say_resolution(gaps)}; a task's score is the mean "
            "over the clients that have it"
        )
    if any(goal.key.startswith(DELTA_M) for goal in goals):
        reference = bases.rule.reference
        notes.append(bases.rule.words(f"the last round of {reference.title if reference else bases.rule.baseline}"))
    return notes + code_notes(runs)


def _say_resolution(gaps: Sequence[int]) -> str:
    """Say how fine the answer to a target is; `gaps` are the widest between scored rounds of the runs."""
    if not gaps:
        return "no round has scores"
    if gaps[-1] == 1:
        return "scores were taken after every round"
    earlier = say_count(gaps[-1] - 1, "round")
    return f"scores were taken every {' or '.join(map(str, gaps))} rounds, so it may have been up to {earlier} earlier"
