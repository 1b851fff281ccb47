"""Δm of runs: the one place that says what it averages, against what, and how sure it is.

The papers average the columns of their tables; a column is a dataset's task, the mean over the clients that hold it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ..base.errors import FmtlbenchError, UsageError, nearest
from ..base.words import say_count
from ..metrics import MetricError, delta_m
from ..tasks import TASKS
from .collect import Collection, RunRecord
from .intervals import corrected, interval_method, mean_interval, mean_p
from .settings import choose_runs
from .table import Cell

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
T = TypeVar("T")
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
        """Turn scores into the terms that are averaged; a mean over clients is missing if one of them is."""
        values: dict[Unit, list[float]] = {}
        for at, value in scores.items():
            values.setdefault(self.unit(at), []).append(value)
        return {unit: math.fsum(members) / len(members) for unit, members in values.items()}

    def unit(self, at: Score) -> Unit:
        """Say which term a score belongs to."""
        return Unit(at.dataset if self.over == COLUMNS else at.client, at.task, at.metric)

    def change(self, ours: Units, theirs: Units, up: Mapping[tuple[str, str], bool]) -> float:
        """Compute Δm in percent of units against the same units of the reference.

        Raises:
            MetricError: A unit that is missing, or a reference of zero.
        """
        directions = {unit: up[unit.task, unit.metric] for unit in ours}
        weights = {unit: self.weights.get(unit.task, 1.0) for unit in ours}
        return delta_m(ours, theirs, directions, weights)

    def by_client(self, ours: Scores, theirs: Scores, up: Mapping[tuple[str, str], bool]) -> dict[str, float]:
        """Return Δm in percent of every client over its own tasks, against the same client of the reference.

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
        """Say what Δm means here, for the notes of a table or figure."""
        weighted = ", ".join(f"{task} {weight:g}" for task, weight in self.weights.items())
        return (
            f"Δm: mean relative change over {OVER[self.over]}{f', tasks weighted {weighted}' if weighted else ''}, "
            f"against {base}, seed by seed; up is better"
        )


def parse_task_weights(text: str) -> dict[str, float]:
    """Return the weights by task that `semseg=2,depth=0.5` stands for.

    Raises:
        UsageError: No such task, or a weight that is not a number of at least 0.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        task, equals, number = (word.strip() for word in part.partition("="))
        if not equals:
            raise UsageError(f"--task-weights {text}: expected task=weight,…, for example semseg=2,depth=0.5")
        if task in weights:
            raise UsageError(f"--task-weights {text}: {task} is given twice")
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
    """Find the runs that `algo=local,scenario=iid1_sdmt,architecture=md` means: one method in one setting.

    Raises:
        UsageError: A key or value that no run has, or several methods or settings left.
    """
    runs, title = choose_runs(collection, text, "--reference")
    return Reference({run.summary["seed"]: run for run in runs}, title)


# -- scores of runs ----------------------------------------------------------------------------------------------------


def primary_scores(records: Iterable[Mapping[str, Any]], split: str) -> tuple[dict[Score, float], dict]:
    """Return (scores, directions by (task, metric)) of a run's records on one split; null becomes NaN."""
    scores: dict[Score, float] = {}
    up: dict[tuple[str, str], bool] = {}
    for r in records:
        if r["primary"] and r["split"] == split:
            value = r["value"]
            scores[Score(r["client"], r["dataset"], r["task"], r["metric"])] = math.nan if value is None else value
            up[r["task"], r["metric"]] = r["higher_is_better"]
    return scores, up


def pair_seeds(seeds: Iterable[int], base: Mapping[int, T], named: bool) -> dict[int, T]:
    """Give each of a method's seeds what it is compared with: the same seed's units, or the mean over the base's seeds.

    Without a pair, a seed is left out if others have one. Of a named reference all seeds are paired or none: half in
    pairs and half against a mean would be two kinds of numbers.
    """
    seeds = sorted(seeds)
    paired = [seed for seed in seeds if seed in base]
    if paired and not (named and len(paired) < len(seeds)):
        return {seed: base[seed] for seed in paired}
    mean = mean_units(base.values())
    return dict.fromkeys(seeds, mean)


def mean_units(seeds: Iterable[Mapping[K, float]]) -> dict[K, float]:
    """Average over seeds the units (or scores) that all of them have."""
    seeds = list(seeds)
    shared = [unit for unit in seeds[0] if all(unit in other for other in seeds)]
    return {unit: math.fsum(other[unit] for other in seeds) / len(seeds) for unit in shared}


class BaseError(FmtlbenchError):
    """There is no run that Δm could be taken against, or nothing that could be compared with it."""


class Bases:
    """The final scores that Δm of single runs, in any round, is against.

    They are the baseline's of the same setting and seed, or a named reference's, paired as in tables.
    """

    def __init__(self, runs: Sequence[RunRecord], split: str, delta: Delta | None = None) -> None:
        self.split, self.rule = split, delta or Delta()
        self._base: dict[str, Units] = {}  # run → what it is compared with
        strange: set[Unit] = set()
        seeds: dict[tuple, list[RunRecord]] = {}
        for run in runs:
            seeds.setdefault((run.setting, run.data_key, run.row), []).append(run)
        for members in seeds.values():
            base = self._final(runs, members)
            by_seed = {run.summary["seed"]: run for run in members}
            named = self.rule.reference is not None
            for seed, theirs in (pair_seeds(by_seed, base, named) if base else {}).items():
                if named or seed in base:  # a run of the own setting has a partner or nothing
                    self._base[by_seed[seed].name] = theirs
                    if named:
                        strange |= self._units(by_seed[seed].summary["scores"])[0].keys() - theirs.keys()
        self.left_out = sorted(map(str, strange))

    def _final(self, runs: Sequence[RunRecord], members: Sequence[RunRecord]) -> dict[int, Units]:
        """Return the scores that a row's runs are compared with; of one seed, those made by the row's own code."""
        if self.rule.reference is not None:
            found = list(self.rule.reference.runs.values())
        else:
            same = [run for run in runs if (run.setting, run.data_key) == (members[0].setting, members[0].data_key)]
            found = [run for run in same if self.rule.baseline in (run.method, run.row[0])]
            own = {run.shared_code for run in members}
            found.sort(key=lambda run: run.shared_code in own)  # below, the last of one seed is taken
        return {run.summary["seed"]: self._units(run.summary["scores"])[0] for run in found}

    def _units(self, records: Iterable[Mapping[str, Any]]) -> tuple[dict[Unit, float], dict]:
        scores, up = primary_scores(records, self.split)
        return self.rule.units(scores), up

    @property
    def title(self) -> str:
        """Return what the runs are compared with, in words."""
        if self.rule.reference is not None:
            return self.rule.reference.title
        return f"the {self.rule.baseline} run of the same setting and seed"

    def words(self) -> str:
        """Say what Δm means here, for the notes of a table or figure."""
        without = f"; without {_list(self.left_out)}, which {self.title} does not have" if self.left_out else ""
        return self.rule.words(self.title) + without

    def has(self, run: RunRecord) -> bool:
        """Whether there is something to compare the run with."""
        return run.name in self._base

    def check(self, runs: Iterable[RunRecord]) -> None:
        """Raise one error for everything that is missing."""
        lacking = [run for run in runs if not self.has(run)]
        if lacking:
            seeds = sorted({(run.summary["scenario"], run.summary["seed"]) for run in lacking})
            names = ", ".join(f"{scenario} seed {seed}" for scenario, seed in seeds)
            raise BaseError(
                f"Δm needs {self.title}; missing for {names} "
                f"({say_count(len(lacking), 'run')}, such as {lacking[0].name})"
            )

    def delta(self, run: RunRecord, records: Iterable[Mapping[str, Any]]) -> float:
        """Compute Δm in percent of a run with these score records (those of its last round, or of an earlier one)."""
        ours, up = self._units(records)
        theirs = self._base[run.name]
        if self.rule.reference is not None:
            ours, theirs = ({unit: side[unit] for unit in ours if unit in theirs} for side in (ours, theirs))
            if not ours:
                raise BaseError(f"{run.name}: {self.title} has none of its columns")
        lost = [str(unit) for unit in {**ours, **theirs} if math.isnan(ours.get(unit, math.nan) + theirs.get(unit, 0))]
        if lost:
            raise BaseError(f"{run.name}: no Δm, which needs every score: {_list(lost)} missing")
        try:
            return self.rule.change(ours, theirs, up)
        except MetricError as error:
            raise BaseError(f"{run.name}: {error}") from None


# -- over seeds --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """Δm of a method: its cell, and the value of each seed that could be paired."""

    cell: Cell
    by_seed: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def zero(cls, seeds: Mapping[int, Any]) -> Gain:
        """Return that of runs against themselves."""
        return cls(Cell(0.0, n=len(seeds)), dict.fromkeys(seeds, 0.0))


def gain(
    method: Mapping[int, Units], base: Mapping[int, Units], up: Mapping[tuple[str, str], bool], title: str, delta: Delta
) -> Gain:
    """Compute Δm of a method against the base called `title`, each seed against the same seed where both have it.

    A named reference may be of another scenario: units it does not have are left out, which the cell's note says.
    """
    paired, pairs, notes = pair_up(method, base, title, delta)
    if delta.reference is not None:
        pairs, strange = _shared(pairs)
        if not pairs[0][0]:
            return Gain(Cell(note=f"no Δm: {title} has none of these columns"))
        if strange:
            notes.append(f"Δm without {_list(sorted(strange))}, which {title} does not have")
    if lost := find_lost(pairs):
        return Gain(Cell(note=f"no Δm, which needs every score: {_list(sorted(map(str, lost)))} missing"))
    try:
        values = [delta.change(ours, theirs, up) for ours, theirs in pairs]
    except MetricError as error:
        return Gain(Cell(note=f"no {error}"))
    interval = mean_interval(values) if paired else None
    cell = Cell(math.fsum(values) / len(values), n=len(values), interval=interval, note="; ".join(notes))
    return Gain(cell, dict(zip(paired, values)))


def pair_up(
    method: Mapping[int, T], base: Mapping[int, T], title: str, delta: Delta
) -> tuple[list[int], list[tuple[T, T]], list[str]]:
    """Put a method's seeds beside what they are compared with; return the paired seeds, both sides, and notes."""
    notes = []
    against = pair_seeds(method, base, delta.reference is not None)
    paired = [seed for seed in against if against[seed] is base.get(seed)]
    left_out = sorted(set(method) - set(against))
    if left_out:
        notes.append(f"Δm over seeds {_list(against)} only: {title} has no run of seed {_list(left_out)}")
    if not paired:  # still a comparison, but without pairs there is nothing to resample
        notes.append(f"Δm against the mean of {title} over seed {_list(sorted(base))}: no pairs of seeds")
    return paired, [(method[seed], theirs) for seed, theirs in against.items()], notes


def find_lost(pairs: Iterable[tuple[Mapping[K, float], Mapping[K, float]]]) -> set[K]:
    """Find what one of two sides does not have."""
    return {at for ours, theirs in pairs for at in ours if math.isnan(ours[at] + theirs.get(at, math.nan))}


def _shared(pairs: list[tuple[Units, Units]]) -> tuple[list[tuple[Units, Units]], set[str]]:
    """Keep the units that both sides of all pairs have; also return the method's units that were left out."""
    common = set.intersection(*(set(side) for pair in pairs for side in pair))
    strange = {str(unit) for ours, _ in pairs for unit in ours if unit not in common}
    return [tuple({u: v for u, v in side.items() if u in common} for side in pair) for pair in pairs], strange


def mark_differences(
    gains: Mapping[Hashable, Gain], references: Container[Hashable], title: str
) -> tuple[dict[Hashable, Cell], list[str]]:
    """Mark the cells whose Δm differ from the reference, and from the best one, at 95 %; return them with the notes.

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
    notes.append(
        f"{FROM_BASE} differs from {title} at 95 % (t-test over seeds, Holm over {say_count(len(p), 'method')})"
    )
    best = max(seeds, key=lambda method: gains[method].cell.value)
    p = {}
    for method, values in seeds.items():
        common = [seed for seed in values if seed in seeds[best]]
        if method != best and len(common) > 1:
            p[method] = mean_p([seeds[best][seed] - values[seed] for seed in common])
    if p:
        signs[FROM_BEST] = _significant(p)
        name = ", ".join(best[1]) if isinstance(best, tuple) else str(best)
        notes.append(
            f"{FROM_BEST} differs at 95 % from {name}, the highest Δm of several seeds (likewise over "
            f"{say_count(len(p), 'method')})"
        )
    marked = {
        method: replace(cell, signs="".join(sign for sign, found in signs.items() if method in found))
        for method, cell in cells.items()
    }
    return marked, notes


def _significant(p: Mapping[Hashable, float], alpha: float = 0.05) -> list[Hashable]:
    return [method for method, value in zip(p, corrected(list(p.values()))) if value < alpha]


def _list(items: Iterable) -> str:
    return ", ".join(map(str, items))
