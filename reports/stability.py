"""How large the noise of a benchmark tier is beside the effects it is meant to show: over seeds, and over reruns.

Every setting by itself: the spread of Δm and of each column, what a rerun moves, whether the order of methods holds,
and how many seeds would tell two methods apart. No torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from ..base.errors import UsageError, nearest
from ..base.words import say_count
from .code_notes import code_notes
from .collect import Collection
from .delta import BaseError, Delta, Gain, Units, gain, mean_units, primary_scores
from .gains import Method, method_of
from .intervals import LEVEL, corrected, mean_interval, mean_p, standard_error, std_interval
from .leaderboard import Board, boards
from .papers.compare import Installed, differences, published_runs, rows_for
from .papers.published import Published, load_published, number, published_names
from .reruns import Rerun
from .settings import listed
from .stats.order import METHODS, SEEDS, Agreement, Correlation, half_agreement, order_correlation
from .stats.power import seeds_needed
from .stats.ranks import StatsError
from .table import Cell, mean_cell

ANY = "any of these"
ONE_SEED = "one seed has no spread"


@dataclass(frozen=True)
class Noise:
    """What the seeds do to one method."""

    seeds: tuple[int, ...]
    delta: Gain
    std: Cell  # of Δm, with its interval
    own: Gain  # Δm of each seed against the mean of the method's other seeds
    self_noise: Cell  # the standard deviation of that
    columns: Mapping[str, Cell]  # by key: mean, standard deviation over seeds


@dataclass(frozen=True)
class Moves:
    """How far reruns move one number, and what the seeds do to it; None: not known."""

    pairs: int  # that have the number twice
    std: float | None  # of one run: the root of half the mean square of the pairs' differences
    largest: float | None
    seeds_std: float | None
    seeds_largest: float | None = None  # between any two seeds

    @property
    def within_seeds(self) -> bool | None:
        return None if self.std is None or self.seeds_std is None else self.std <= self.seeds_std


@dataclass(frozen=True)
class Reruns:
    """What reruns of one kind do to one method."""

    method: Method
    kind: str  # under what other circumstances
    pairs: int
    delta: Moves
    columns: Mapping[str, Moves]

    @property
    def beyond_seeds(self) -> list[str] | None:
        """Return the columns that reruns move by more than the seeds do; None where that is not known of any."""
        known = {key: moves.within_seeds for key, moves in self.columns.items() if moves.within_seeds is not None}
        return [key for key, within in known.items() if not within] if known else None


@dataclass(frozen=True)
class Pair:
    """Two methods' Δm, seed by seed; `seeds_needed` None: more than `stats.power.MOST`."""

    a: Method
    b: Method
    seeds: tuple[int, ...]
    mean: float
    std: float
    interval: tuple[float, float]
    p: float
    p_holm: float  # corrected for all pairs of the setting
    apart: bool  # at 95 %
    seeds_needed: int | None

    def turned(self) -> Pair:
        """Return the pair the other way round."""
        low, high = self.interval
        return replace(self, a=self.b, b=self.a, mean=-self.mean, interval=(-high, -low))


@dataclass(frozen=True)
class Beside:
    """The measured order beside a published one."""

    published: Published
    column: str
    rows: list[tuple[Method, str]]  # methods in common, their Δm as printed; the highest first
    correlation: Correlation | None
    no_tau: str  # why not
    notes: tuple[str, ...]
    unlike: tuple[str, ...]  # what is not the paper's setting


@dataclass(frozen=True)
class Stability:
    """All that is said of one setting."""

    board: Board
    power: float
    noise: Mapping[Method, Noise]
    reruns: list[Reruns]
    order: Agreement | None
    order_note: str  # why there is none, or which methods it is not about
    pairs: list[Pair]
    asked: tuple[str, str] | None  # labels of the pair asked for, which this setting may lack; None: all pairs
    notes: tuple[str, ...] = ()
    beside: Beside | None = None

    def pair(self, a: Method, b: Method) -> Pair | None:
        """Return what is known of two methods, in this order."""
        found = next((pair for pair in self.pairs if {pair.a, pair.b} == {a, b}), None)
        return found.turned() if found and found.a != a else found


@dataclass(frozen=True)
class Question:
    """What is asked of the runs."""

    scenario: str | None = None
    split: str = "global"
    delta: Delta = field(default_factory=Delta)
    pair: tuple[str, str] | None = None
    power: float = 0.8
    published: str | None = None
    installed: Installed | None = None  # goes with `published`


def stability(
    collection: Collection, question: Question | None = None, reruns: Sequence[Rerun] = (), notes: Sequence[str] = ()
) -> list[Stability]:
    """Find out what can be said of every setting.

    Args:
        collection: Runs without their reruns, as `set_reruns_aside` leaves them.
        question: Which scores, against what, and what of pairs and published tables.
        reruns: Those set aside.
        notes: What is to be said below each setting's table.

    Raises:
        UsageError: A scenario, split, baseline, method, power or table that makes no sense here.
        BaseError: No setting has a run that Δm could be taken against.
        StatsError: Nothing was run twice.
    """
    question = question or Question()
    if not 0 < question.power < 1:
        raise UsageError(f"--power {question.power:g}: expected a probability between 0 and 1, such as 0.8")
    found = boards(collection, question.scenario, question.split, question.delta)
    _check_bases(found, question.delta)
    here = {run.name for board in found for run in board.runs}
    reruns = [rerun for rerun in reruns if rerun.run.name in here]
    if not reruns and all(len(seeds) < 2 for board in found for seeds in board.scores.values()):
        seeds = listed({seed for board in found for of in board.scores.values() for seed in of})
        raise StatsError(
            f"noise needs a method with two seeds or more, or a run made again; here every method has one run "
            f"in a setting (seed {seeds})"
        )
    if question.pair is not None and not any(_has_pair(board, question.pair) for board in found):
        raise UsageError(f"--pair {','.join(question.pair)}: no setting has runs of both")
    made = [_stability(board, question, reruns, notes) for board in found]
    if question.published is not None:
        made = _beside_published(made, collection, question)
    return made


def _check_bases(found: Sequence[Board], delta: Delta) -> None:
    if not any(base.units for board in found for base in board.bases.values()):
        methods = listed({method[1][0] for board in found for method in board.scores})
        raise BaseError(
            f"Δm needs runs of {delta.baseline} in the same setting, and here are only {methods}; "
            "--baseline takes another method, --reference runs of another setting"
        )


def _stability(board: Board, question: Question, reruns: Sequence[Rerun], notes: Sequence[str]) -> Stability:
    noise = {method: _noise(board, method) for method in board.methods}
    order, order_note = _order(noise)
    pairs = _pairs(noise, question.power)
    notes = (*notes, *code_notes(board.runs))
    again = _reruns(board, noise, reruns)
    return Stability(board, question.power, noise, again, order, order_note, pairs, question.pair, notes)


# -- seeds -------------------------------------------------------------------------------------------------------------


def _noise(board: Board, method: Method) -> Noise:
    seeds, delta = board.units[method], board.gains[method]
    own = _leave_one_out(board, seeds)
    std = _spread(delta, std_interval)
    if board.bases[method].method == method:
        std = Cell(note="Δm is against these very runs: self-noise says how far they move")
    columns = {column.key: mean_cell(_by_seed(board, method, column.key)) for column in board.columns}
    return Noise(tuple(seeds), delta, std, own, _spread(own, lambda values: None), columns)


def _spread(found: Gain, interval: Callable[[Sequence[float]], tuple[float, float] | None]) -> Cell:
    """Return the standard deviation of Δm over seeds; where there is none, why."""
    values = list(found.by_seed.values())
    if len(values) < 2:
        return Cell(note=found.cell.note or ONE_SEED)
    return Cell(_std(values), n=len(values), interval=interval(values))


def _leave_one_out(board: Board, seeds: Mapping[int, Units]) -> Gain:
    """Return Δm of each seed against the mean of the other seeds of the same method."""
    if len(seeds) < 2:
        return Gain(Cell(note=ONE_SEED))
    others = {seed: mean_units(units for other, units in seeds.items() if other != seed) for seed in seeds}
    return gain(seeds, others, board.up, "the method's other seeds", replace(board.delta, reference=None))


def _by_seed(board: Board, method: Method, key: str) -> list[float]:
    """Return a column's value in each seed."""
    return [_columns_of(scores).get(key, math.nan) for scores in board.scores[method].values()]


def _columns_of(scores: Mapping) -> dict[str, float]:
    return {str(unit): value for unit, value in Delta().units(scores).items()}


def _std(values: Sequence[float]) -> float:
    """Return the standard deviation with n − 1; 0 where the values differ by rounding only."""
    return standard_error(np.asarray(values, float)) * math.sqrt(len(values))


# -- reruns ------------------------------------------------------------------------------------------------------------


def _reruns(board: Board, noise: Mapping[Method, Noise], reruns: Sequence[Rerun]) -> list[Reruns]:
    here = {run.name for run in board.runs}
    kinds: dict[Method, dict[str, list[Rerun]]] = {}
    for rerun in reruns:
        if rerun.run.name in here:
            kinds.setdefault(method_of(rerun.run), {}).setdefault(rerun.differs, []).append(rerun)
    found = []
    for method in (method for method in board.methods if method in kinds):
        of = kinds[method]
        if len(of) > 1:
            of = {ANY: [rerun for members in of.values() for rerun in members], **of}
        found += [_moved(board, method, noise[method], kind, members) for kind, members in of.items()]
    return found


def _moved(board: Board, method: Method, noise: Noise, kind: str, reruns: Sequence[Rerun]) -> Reruns:
    """Return how far reruns moved Δm: both runs of a pair are compared with the same run of the baseline."""
    deltas: list[float] = []
    columns: dict[str, list[float]] = {column.key: [] for column in board.columns}
    base = board.bases[method]
    for rerun in reruns:
        seed = rerun.run.summary["seed"]
        before = board.scores[method][seed]
        scores, _ = primary_scores(rerun.again.summary["scores"], board.split)
        after = {at: scores.get(at, math.nan) for at in before}
        old, new = _columns_of(before), _columns_of(after)
        for key, differences_of in columns.items():
            differences_of.append(new.get(key, math.nan) - old.get(key, math.nan))
        if base.units:
            against = {seed: base.units.get(seed) or mean_units(base.units.values())}
            was, now = (
                gain({seed: board.delta.units(side)}, against, board.up, base.title, board.delta).by_seed.get(seed)
                for side in (before, after)
            )
            deltas.append(math.nan if was is None or now is None else now - was)
    moves = {}
    for key, differences_of in columns.items():
        seeds = [value for value in _by_seed(board, method, key) if not math.isnan(value)]
        widest = max(seeds) - min(seeds) if len(seeds) > 1 else None
        moves[key] = _moves(differences_of, noise.columns[key].std, widest)
    return Reruns(method, kind, len(reruns), _moves(deltas, noise.self_noise.value), moves)


def _moves(moved: Sequence[float], seeds_std: float | None, seeds_largest: float | None = None) -> Moves:
    known = [value for value in moved if not math.isnan(value)]
    if not known:
        return Moves(0, None, None, seeds_std, seeds_largest)
    std = math.sqrt(math.fsum(value**2 for value in known) / (2 * len(known)))
    return Moves(len(known), std, max(map(abs, known)), seeds_std, seeds_largest)


# -- order -------------------------------------------------------------------------------------------------------------


def _order(noise: Mapping[Method, Noise]) -> tuple[Agreement | None, str]:
    """Return τ between halves of the seeds, of the most methods with enough seeds in common; or why there is none."""
    seeds = {method: set(n.delta.by_seed) for method, n in noise.items() if n.delta.by_seed}
    chosen, common = _most_methods(seeds)
    left = [method[1][0] for method in noise if method not in chosen]
    try:
        table = np.array([[noise[m].delta.by_seed[seed] for m in chosen] for seed in common])
        agreement = half_agreement(table.reshape(len(common), len(chosen)))
    except StatsError as error:
        return None, str(error)
    return agreement, f"order without {', '.join(left)}, which lack seeds or Δm" if left else ""


def _most_methods(seeds: Mapping[Method, set[int]]) -> tuple[list[Method], list[int]]:
    """Return the most methods that have enough seeds in common, and these seeds; those with more seeds go first."""
    ordered = sorted(seeds, key=lambda method: -len(seeds[method]))
    for k in range(len(ordered), METHODS - 1, -1):
        common = set.intersection(*(seeds[method] for method in ordered[:k]))
        if len(common) >= SEEDS:
            return [method for method in seeds if method in ordered[:k]], sorted(common)
    return ordered, sorted(set.intersection(*seeds.values())) if seeds else []


# -- pairs -------------------------------------------------------------------------------------------------------------


def _has_pair(board: Board, pair: tuple[str, str]) -> bool:
    return set(pair) <= {method[1][0] for method in board.scores}


def _pairs(noise: Mapping[Method, Noise], power: float) -> list[Pair]:
    """Return all pairs with two seeds or more in common."""
    differences: dict[tuple[Method, Method], dict[int, float]] = {}
    for a, b in combinations(noise, 2):
        ours, theirs = noise[a].delta.by_seed, noise[b].delta.by_seed
        by_seed = {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}
        if len(by_seed) > 1:
            differences[a, b] = by_seed
    p = [mean_p(list(by_seed.values())) for by_seed in differences.values()]
    pairs = []
    for ((a, b), by_seed), alone, holm in zip(differences.items(), p, corrected(p)):
        values = list(by_seed.values())
        mean, std = math.fsum(values) / len(values), _std(values)
        mean = 0.0 if abs(mean) <= 1e-9 else mean
        needed = seeds_needed(mean, std, power)
        pairs.append(
            Pair(a, b, tuple(by_seed), mean, std, mean_interval(values), alone, holm, holm < 1 - LEVEL, needed)
        )
    return pairs


# -- a published order -------------------------------------------------------------------------------------------------


def _beside_published(made: Sequence[Stability], collection: Collection, question: Question) -> list[Stability]:
    """Return each setting with the published order beside its own, where the table is about it."""
    published, runs = published_runs(collection, question.published, question.installed)
    columns = [column for column, split in published.deltas.items() if split == question.split]
    if not columns:
        splits = listed(set(published.deltas.values()))
        fitting = [n for n in published_names() if question.split in load_published(n).deltas.values()]
        has = f"prints Δ on split {splits} only" if splits else "prints no Δ"
        raise UsageError(
            f"--published {published.name} {has}, asked is the {question.split} split; "
            f"{nearest(published.name, fitting)}"
        )
    there = {run.name: run.label for run in runs}
    found, strange = [], []
    for one in made:
        beside, why = None, []
        if one.board.runs[0].name in there:
            beside, why = _beside(one, published, columns[0], there, question.installed)
        strange += why
        found.append(replace(one, beside=beside))
    if not any(one.beside for one in found):
        why = "; ".join(dict.fromkeys(strange)) or f"no run here is of {' or '.join(published.scenarios)}"
        raise UsageError(f"--published {published.name}: {why}")
    return found


def _beside(
    one: Stability, published: Published, column: str, there: Mapping[str, str], installed: Installed
) -> tuple[Beside | None, list[str]]:
    """Return the published order beside that of one setting, or None and why."""
    first = one.board.runs[0]
    rows, unlike = rows_for(published, first)
    if not rows:
        return None, [f"no row of these runs' network: {', '.join(unlike)}"]
    unlike = [*differences(published, first, published.model(rows[0]), installed), *unlike]
    methods = {there[run.name]: method_of(run) for run in one.board.runs}
    labels = [published.label(row) for row in rows]
    common, notes = [], []
    for row, label in zip(rows, labels):
        if label not in methods or labels.count(label) > 1:
            continue
        measured = one.noise[methods[label]].delta.cell
        if number(row[column]) is None:
            notes.append(f"{label} is printed as {row[column] or 'nothing'}")
        elif measured.value is None:
            notes.append(f"{label}: {measured.note}")
        else:
            common.append((methods[label], row[column]))
    if twice := sorted({label for label in labels if labels.count(label) > 1 and label in methods}):
        notes.append(f"left out, since several of its rows fit: {', '.join(twice)}")
    if not common:
        ours, theirs = listed(methods), listed(set(labels))
        return None, notes or [f"it has no method of these runs: it has {theirs}, the runs are {ours}"]
    common.sort(key=lambda item: -float(item[1]))
    no_tau = ""
    try:
        measured = [one.noise[method].delta.cell.value for method, _ in common]
        correlation = order_correlation(measured, [float(printed) for _, printed in common])
    except StatsError as error:
        correlation, no_tau = None, f"no τ: {error}"
    if lacking := [label for label in dict.fromkeys(labels) if label not in methods]:
        notes.append(f"no run of: {', '.join(lacking)}")
    if extra := sorted(set(methods) - set(labels)):
        notes.append(f"not in the paper's table: {', '.join(extra)}")
    notes.append(f"the published Δm is against {published.reference(rows[0])[1]}")
    return Beside(published, column, common, correlation, no_tau, tuple(notes), tuple(unlike)), []


def effects(one: Stability) -> str:
    """Say in one sentence how large the noise is and what it hides; "" where Δm or self-noise is not known."""
    sizes = {
        method: abs(n.delta.cell.value)
        for method, n in one.noise.items()
        if n.delta.cell.value is not None and one.board.bases[method].method != method
    }
    own = [n.self_noise.value for n in one.noise.values() if n.self_noise.value is not None]
    if not sizes or not own:
        return ""
    small, large = min(sizes, key=sizes.get), max(sizes, key=sizes.get)
    apart = sum(pair.apart for pair in one.pairs)
    return (
        f"effects: |Δm| from {sizes[small]:.2f} ({small[1][0]}) to {sizes[large]:.2f} ({large[1][0]}); "
        f"self-noise: {min(own):.2f} to {max(own):.2f}; apart at 95 % now (paired t-test, Holm): "
        f"{apart} of {say_count(len(one.pairs), 'pair')}"
    )
