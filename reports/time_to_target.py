"""What a run had used up when its Δm first reached a target: rounds, energy, traffic, time, carbon. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..base.errors import FmtlbenchError
from .collect import RunRecord
from .delta import Bases
from .plots._curves import evaluated

NO_BASE, NO_DELTA, NOT_REACHED = "no {} run", "no Δm", "not reached"
ROUNDING = 1e-9  # percent: a Δm of −10 may come out as −10.000000000000002


@dataclass(frozen=True)
class Spent:
    """What a run had used up after a round; None: not known."""

    round: int
    kwh: float | None
    co2e_g: float | None
    bytes: int | None
    minutes: float | None


@dataclass(frozen=True)
class Arrival:
    """The first evaluated round whose Δm is at least `target`, or why there is none."""

    target: float
    spent: Spent | None
    why: str = ""


def arrivals(run: RunRecord, bases: Bases, targets: Sequence[float]) -> list[Arrival]:
    """Return one arrival per target, in their order. Δm is against the last round of the runs of `bases`."""
    if not bases.has(run):
        return [Arrival(target, None, NO_BASE.format(bases.rule.baseline)) for target in targets]
    curve = delta_curve(run, bases)
    if not curve:
        return [Arrival(target, None, NO_DELTA) for target in targets]
    found = []
    for target in targets:
        reached = [number for number, delta in curve if delta >= target - ROUNDING]
        found.append(Arrival(target, spent(run, reached[0])) if reached else Arrival(target, None, NOT_REACHED))
    return found


def delta_curve(run: RunRecord, bases: Bases) -> list[tuple[int, float]]:
    """Return (round, Δm in percent) of the evaluated rounds; one that lacks a score has no Δm and is left out."""
    curve = []
    for number, records in sorted(_evaluated(run, bases.split).items()):
        try:
            curve.append((number, bases.delta(run, records)))
        except FmtlbenchError:
            continue
    return curve


def resolution(run: RunRecord, split: str) -> int | None:
    """Return the widest gap between evaluated rounds: a target may have been reached that many earlier, less one."""
    numbers = sorted(_evaluated(run, split))
    return max((after - before for before, after in pairwise([0, *numbers])), default=None)


def spent(run: RunRecord, number: int) -> Spent:
    """Return what was spent after round `number`, setting up not counted; a round without a record makes it unknown."""
    traffic = [row for row in run.rounds() if row["round"] <= number]
    timing = [row for row in run.timing() if row["round"] <= number]
    complete = len(timing) == number
    energies = [row.get("energy") or {} for row in timing]
    measured = complete and all(energy.get("kwh") is not None for energy in energies)
    return Spent(
        number,
        energies[-1]["kwh"] if measured else None,
        energies[-1].get("co2e_g") if measured else None,
        sum(row["bytes_up"] + row["bytes_down"] for row in traffic) if len(traffic) == number else None,
        sum(sum(row["seconds"].values()) for row in timing) / 60 if complete else None,
    )


def _evaluated(run: RunRecord, split: str) -> dict:
    try:
        return evaluated(run, split)
    except FmtlbenchError:  # no metrics.jsonl, or none of this split
        return {}
