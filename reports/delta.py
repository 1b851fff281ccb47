"""Δm of runs: the one place that says what it averages, against what, and how sure it is.

The papers average the columns of their tables; a column is a dataset's task, the mean over the clients that hold it.
"""

from __future__ import annotations

import math
from collections.abc import Collection as Container
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ..errors import FmtlbenchError, UsageError, nearest
from ..metrics import MetricError, delta_m
from ..tasks import TASKS
from .collect import Collection, RunRecord
from .intervals import corrected, interval_method, mean_interval, mean_p
from .labels import counted
from .settings import choose_runs
from .table import Cell, mean_cell

COLUMNS, CLIENTS = "columns", "clients"
OVER = {COLUMNS: "columns (a dataset's task, the mean over its clients)", CLIENTS: "(client, task) pairs"}
FROM_BASE, FROM_BEST = "†", "‡"  # differs at 95 %


class Score(NamedTuple):
    """Which score of a run: one client's, on one task."""

    client: str
    dataset: str
    task: str
    metric: str


class Unit(NamedTuple):
    """One term of Δm: a dataset's task, or a client's."""

    place: str
    task: str
    metric: str

    def __str__(self) -> str:
        return "/".join(self)


K = TypeVar("K", Score, Unit)
Scores = Mapping[Score, float]  # NaN: missing
Units = Mapping[Unit, float]


@dataclass(frozen=True)
class Reference:
    """The runs that Δm is against, of one method in one setting: seed → run."""

    runs: Mapping[int, RunRecord]
    title: str


@dataclass(frozen=True)
class Delta:
    """Which Δm is asked for."""

    over: str = COLUMNS
    weights: Mapping[str, float] = field(default_factory=dict)  # by task; tasks that are not named weigh 1
    baseline: str = "local"  # the method, by registry name or label, in the runs' own setting
    reference: Reference | None = None  # instead of the baseline: the same runs for every setting

    def units(self, scores: Scores) -> dict[Unit, float]:
        """The terms that are averaged; the mean over its clients is missing if one is."""
        values: dict[Unit, list[float]] = {}
        for at, value in scores.items():
            values.setdefault(self.unit(at), []).append(value)
        return {unit: math.fsum(members) / len(members) for unit, members in values.items()}

    def unit(self, at: Score) -> Unit:
        return Unit(at.dataset if self.over == COLUMNS else at.client, at.task, at.metric)

    def change(self, ours: Units, theirs: Units, up: Mapping[tuple[str, str], bool]) -> float:
        """Δm in percent of units against the same units of the reference.

        Raises:
            MetricError: A unit that is missing, or a reference of zero.
        """
        directions = {unit: up[unit.task, unit.metric] for unit in ours}
        weights = {unit: self.weights.get(unit.task, 1.0) for unit in ours}
        return delta_m(ours, theirs, directions, weights)

    def by_client(self, ours: Scores, theirs: Scores, up: Mapping[tuple[str, str], bool]) -> dict[str, float]:
        """Δm in percent of every client over its own tasks, against the same client of the reference.

        Raises:
            MetricError: A score that is missing, or a reference of zero.
        """
        rule = replace(self, over=CLIENTS)
        clients: dict[str, tuple[dict[Unit, float], dict[Unit, float]]] = {}
        for side, scores in enumerate((ours, theirs)):
            for unit, value in rule.units(scores).items():
                clients.setdefault(unit.place, ({}, {}))[side][unit] = value
        return {client: rule.change(*sides, up) for client, sides in clients.items() if sides[0]}

    def words(self, base: str) -> str:
        """What Δm means here, for the notes of a table or figure."""
        weighted = ", ".join(f"{task} {weight:g}" for task, weight in self.weights.items())
        return (
            f"Δm: mean relative change over {OVER[self.over]}{f', tasks weighted {weighted}' if weighted else ''}, "
            f"against {base}, seed by seed; up is better"
        )


def parse_task_weights(text: str) -> dict[str, float]:
    """`semseg=2,depth=0.5` → weights by task.

    Raises:
        UsageError: No such task, or a weight that is not a number of at least 0.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        task, equals, number = (word.strip() for word in part.partition("="))
        if not equals:
            raise UsageError(f"--task-weights {text}: expected task=weight,…, for example semseg=2,depth=0.5")
        if task not in TASKS:
            raise UsageError(f"--task-weights {text}: no task {task!r}; {nearest(task, TASKS)}")
        try:
            weights[task] = float(number)
        except ValueError:
            weights[task] = math.nan
        if not (math.isfinite(weights[task]) and weights[task] >= 0):
            raise UsageError(f"--task-weights {text}: {task} weighs {number!r}, expected a number of at least 0")
    return weights


def find_reference(collection: Collection, text: str) -> Reference:
    """The runs that `algo=local,scenario=iid1_sdmt,architecture=md` means: one method in one setting.

    Raises:
        UsageError: A key or value that no run has, or several methods or settings left.
    """
    runs, title = choose_runs(collection, text, "--reference")
    return Reference({run.summary["seed"]: run for run in runs}, title)


# -- a run's scores ----------------------------------------------------------------------------------------------------


def primary_scores(records: Iterable[Mapping[str, Any]], split: str) -> tuple[dict[Score, float], dict]:
    """(scores, directions by (task, metric)) of a run's records on one split; null becomes NaN."""
    scores: dict[Score, float] = {}
    up: dict[tuple[str, str], bool] = {}
    for r in records:
        if r["primary"] and r["split"] == split:
            value = r["value"]
            scores[Score(r["client"], r["dataset"], r["task"], r["metric"])] = math.nan if value is None else value
            up[r["task"], r["metric"]] = r["higher_is_better"]
    return scores, up


class BaseError(FmtlbenchError):
    """There is no run that Δm could be taken against."""


class Bases:
    """The final scores that Δm of single runs is against.

    They are the baseline's of the same setting and seed, or a named reference's of the same seed; where that lacks the
    seed, the mean over its seeds.
    """

    def __init__(self, runs: Sequence[RunRecord], split: str, delta: Delta | None = None) -> None:
        self.split, self.rule = split, delta or Delta()
        if self.rule.reference is None:
            found = {_alike(run): run for run in runs if self.rule.baseline in (run.summary["algorithm"], run.row[0])}
        else:
            found = self.rule.reference.runs
        self._final = {key: self._units(run.summary["scores"])[0] for key, run in found.items()}

    def _units(self, records: Iterable[Mapping[str, Any]]) -> tuple[dict[Unit, float], dict]:
        scores, up = primary_scores(records, self.split)
        return self.rule.units(scores), up

    @property
    def title(self) -> str:
        if self.rule.reference is not None:
            return self.rule.reference.title
        return f"the {self.rule.baseline} run of the same setting and seed"

    def words(self) -> str:
        return self.rule.words(self.title)

    def has(self, run: RunRecord) -> bool:
        """Whether there is something to compare the run with."""
        return bool(self._final) if self.rule.reference is not None else _alike(run) in self._final

    def check(self, runs: Iterable[RunRecord]) -> None:
        """One error for everything that is missing."""
        lacking = [run for run in runs if not self.has(run)]
        if lacking:
            seeds = sorted({(run.summary["scenario"], run.summary["seed"]) for run in lacking})
            names = ", ".join(f"{scenario} seed {seed}" for scenario, seed in seeds)
            raise BaseError(
                f"Δm needs {self.title}; missing for {names} "
                f"({counted(len(lacking), 'run')}, such as {lacking[0].name})"
            )

    def delta(self, run: RunRecord, records: Iterable[Mapping[str, Any]]) -> float:
        """Δm in percent of a run with these score records (those of its last round, or of an earlier one)."""
        ours, up = self._units(records)
        if self.rule.reference is None:
            theirs = self._final[_alike(run)]
        else:
            theirs = self._final.get(run.summary["seed"]) or mean_units(self._final.values())
            ours = {unit: value for unit, value in ours.items() if unit in theirs}
            theirs = {unit: value for unit, value in theirs.items() if unit in ours}
        try:
            return self.rule.change(ours, theirs, up)
        except MetricError as error:
            raise BaseError(f"{run.name}: {error}") from None


def _alike(run: RunRecord) -> tuple:
    return run.setting, run.data_key, run.summary["seed"]


def mean_units(seeds: Iterable[Mapping[K, float]]) -> dict[K, float]:
    """The mean over seeds, of the units (or scores) that all of them have."""
    seeds = list(seeds)
    shared = [unit for unit in seeds[0] if all(unit in other for other in seeds)]
    return {unit: math.fsum(other[unit] for other in seeds) / len(seeds) for unit in shared}


# -- over seeds --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """Δm of a method: its cell, and the value of each seed that could be paired."""

    cell: Cell
    by_seed: Mapping[int, float] = field(default_factory=dict)


def gain(
    method: Mapping[int, Units], base: Mapping[int, Units], up: Mapping[tuple[str, str], bool], title: str, delta: Delta
) -> Gain:
    """Δm of a method against the base called `title`, each seed against the same seed where both have it.

    A named reference may be of another scenario: units it does not have are left out, which the cell's note says.
    """
    paired, pairs, notes = _pair_up(method, base, title, delta)
    if delta.reference is not None:
        pairs, strange = _shared(pairs)
        if not pairs[0][0]:
            return Gain(Cell(note=f"no Δm: {title} has none of these columns"))
        if strange:
            notes.append(f"Δm without {_list(sorted(strange))}, which {title} does not have")
    if lost := _lost(pairs):
        return Gain(Cell(note=f"no Δm, which needs every score: {_list(sorted(map(str, lost)))} missing"))
    try:
        values = [delta.change(ours, theirs, up) for ours, theirs in pairs]
    except MetricError as error:
        return Gain(Cell(note=f"no {error}"))
    interval = mean_interval(values) if paired else None
    cell = Cell(math.fsum(values) / len(values), n=len(values), interval=interval, note="; ".join(notes))
    return Gain(cell, dict(zip(paired, values)))


def _pair_up(
    method: Mapping[int, Mapping[K, float]], base: Mapping[int, Mapping[K, float]], title: str, delta: Delta
) -> tuple[list[int], list[tuple[Mapping[K, float], Mapping[K, float]]], list[str]]:
    """(the seeds that both have, what is compared with what, notes); no seeds: each with the mean over the base's."""
    paired = sorted(set(method) & set(base))
    if delta.reference is not None and len(paired) < len(method):
        paired = []  # half in pairs and half not would be two kinds of numbers
    if not paired:  # still a comparison, but without pairs there is nothing to resample
        note = f"Δm against the mean of {title} over seed {_list(sorted(base))}: no pairs of seeds"
        return [], [(method[seed], mean_units(base.values())) for seed in sorted(method)], [note]
    left_out = sorted(set(method) - set(base))
    note = f"Δm over seeds {_list(paired)} only: {title} has no run of seed {_list(left_out)}"
    return paired, [(method[seed], base[seed]) for seed in paired], [note] if left_out else []


def _lost(pairs: Iterable[tuple[Mapping[K, float], Mapping[K, float]]]) -> set[K]:
    """What one of two sides does not have."""
    return {at for ours, theirs in pairs for at in ours if math.isnan(ours[at] + theirs.get(at, math.nan))}


def _shared(pairs: list[tuple[Units, Units]]) -> tuple[list[tuple[Units, Units]], set[str]]:
    """The pairs with the units that both sides of all have, and the method's units that were left out."""
    common = set.intersection(*(set(side) for pair in pairs for side in pair))
    strange = {str(unit) for ours, _ in pairs for unit in ours if unit not in common}
    return [tuple({u: v for u, v in side.items() if u in common} for side in pair) for pair in pairs], strange


# -- over clients ------------------------------------------------------------------------------------------------------


class Fairness(NamedTuple):
    """How a method's Δm is spread over the clients, each client's being the mean over its seeds."""

    worst: Cell  # the lowest; its note says whose it is
    decile: Cell  # the mean of the lowest tenth of the clients, at least one
    spread: Cell  # the standard deviation over clients (n - 1)

    @staticmethod
    def words(base: str) -> str:
        """What the three mean, for the notes of a table."""
        return (
            "worst client: the lowest Δm of a client, which is the mean relative change over its own tasks against the "
            f"same client of {base}, mean over seeds; bottom 10 %: the mean of the lowest tenth of clients, at least "
            "one; spread: the standard deviation of clients' Δm (n - 1)"
        )


def fairness(
    method: Mapping[int, Scores], base: Mapping[int, Scores], up: Mapping[tuple[str, str], bool], title: str,
    delta: Delta,
) -> Fairness:  # fmt: skip
    """The Δm of a method's clients, each against the same client of the base called `title`, seed by seed.

    Clients that the base does not have, or has with other tasks, leave nothing to compare: the cells say so.
    """
    _, pairs, notes = _pair_up(method, base, title, delta)
    strange = {at.client for ours, theirs in pairs for at in ours if at not in theirs}
    if strange:
        return Fairness(*[Cell(note=f"no Δm of clients: {title} does not have {_few(sorted(strange))} as here")] * 3)
    if lost := _lost(pairs):
        names = sorted(f"{at.client}/{at.task}/{at.metric}" for at in lost)
        return Fairness(*[Cell(note=f"no Δm of clients, which needs every score: {_list(names)} missing")] * 3)
    try:
        seeds = [delta.by_client(ours, theirs, up) for ours, theirs in pairs]
    except MetricError as error:
        return Fairness(*[Cell(note=f"no {error}")] * 3)
    clients = {client: math.fsum(of[client] for of in seeds) / len(seeds) for client in seeds[0]}
    ranked = sorted(clients.values())
    tenth = ranked[: max(1, len(ranked) // 10)]
    whose = _few(client for client, value in clients.items() if value == ranked[0])
    worst = Cell(ranked[0], n=len(seeds), note="; ".join([f"worst client: {whose}", *notes]))
    spread = mean_cell(ranked).std
    alone = "no spread: there is one client" if spread is None else ""
    return Fairness(worst, Cell(math.fsum(tenth) / len(tenth), n=len(seeds)), Cell(spread, n=len(seeds), note=alone))


def _few(names: Iterable[str], most: int = 3) -> str:
    names = list(names)
    return _list(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# -- what differs ------------------------------------------------------------------------------------------------------


def mark_differences(
    gains: Mapping[Hashable, Gain], references: Container[Hashable], title: str
) -> tuple[dict[Hashable, Cell], list[str]]:
    """(cells with signs, notes): which Δm differ from the reference, and which from the best one, at 95 %.

    Tests are Student's t on seeds' Δm, or on their differences to the best's, each family corrected by Holm.

    Args:
        gains: By method, the references' own among them.
        references: Those of the methods that others are compared with.
        title: What the reference is called.
    """
    cells = {method: g.cell for method, g in gains.items()}
    seeds = {method: g.by_seed for method, g in gains.items() if len(g.by_seed) > 1}
    tested = {method: values for method, values in seeds.items() if method not in references}
    if not tested:
        return cells, []
    methods = "; ".join(dict.fromkeys(interval_method(n) for n in sorted({len(v) for v in tested.values()})))
    notes = [f"Δm [low, high]: 95 %, {methods}; a run's scores rise and fall together, so a seed counts once"]
    p = {method: mean_p(list(values.values())) for method, values in tested.items()}
    signs = {FROM_BASE: _significant(p)}
    notes.append(f"{FROM_BASE} differs from {title} at 95 % (t-test over seeds, Holm over {counted(len(p), 'method')})")
    best = max(seeds, key=lambda method: gains[method].cell.value)
    p = {}
    for method, values in seeds.items():
        common = [seed for seed in values if seed in seeds[best]]
        if method != best and len(common) > 1:
            p[method] = mean_p([seeds[best][seed] - values[seed] for seed in common])
    if p:
        signs[FROM_BEST] = _significant(p)
        notes.append(f"{FROM_BEST} differs from the highest Δm at 95 % (likewise over {counted(len(p), 'method')})")
    marked = {
        method: replace(cell, signs="".join(sign for sign, found in signs.items() if method in found))
        for method, cell in cells.items()
    }
    return marked, notes


def _significant(p: Mapping[Hashable, float], alpha: float = 0.05) -> list[Hashable]:
    return [method for method, value in zip(p, corrected(list(p.values()))) if value < alpha]


def _list(items: Iterable) -> str:
    return ", ".join(map(str, items))
