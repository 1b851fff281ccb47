"""What methods tell of themselves per round (`diagnostics()`), by the names that figures draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...base.errors import UsageError
from ..collect import RunRecord
from ._curves import PlotError


def read_diagnostics(run: RunRecord, names: Sequence[str]) -> dict[int, dict[str, Any]]:
    """Return, by round, what the method told, of the rounds in which it told all of `names`.

    Raises:
        PlotError: No round did; the missing ones are named.
    """
    rounds = _told(run)
    found = {number: told for number, told in rounds.items() if told.keys() >= set(names)}
    if not found:
        raise PlotError(f"{run.name}: no {_missing(rounds, names)} in metrics.jsonl, which this figure draws")
    return found


def runs_that_tell(runs: Iterable[RunRecord], names: Sequence[str]) -> list[RunRecord]:
    """Return the runs of which some round tells all of `names`.

    Raises:
        UsageError: There is none; the missing names are listed.
    """
    runs = list(runs)
    rounds = {run.name: _told(run) for run in runs}
    found = [run for run in runs if any(told.keys() >= set(names) for told in rounds[run.name].values())]
    if found:
        return found
    everything = {(name, number): told for name, of_run in rounds.items() for number, told in of_run.items()}
    missing = _missing(everything, names)
    there = sorted({name for told in everything.values() for name in told})
    said = f"they tell {', '.join(there)}" if there else "they tell nothing of their methods"
    raise UsageError(f"no {missing} in the rounds of the {len(runs)} runs, which this figure draws; {said}")


def _told(run: RunRecord) -> dict[int, dict[str, Any]]:
    return {row["round"]: row.get("algorithm") or {} for row in run.rounds()}


def _missing(rounds: dict[Any, dict[str, Any]], names: Sequence[str]) -> str:
    """Name what no round tells; where each is told somewhere, all that no round tells at once."""
    never = [name for name in names if not any(name in told for told in rounds.values())]
    return " and ".join(never or names)
