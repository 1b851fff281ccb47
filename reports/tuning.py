"""What a table says of runs whose options were tuned: the budget, the images, the choices, and who had fewer trials."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.words import say_count
from .gains import method_of, zoo_order
from .runs import RunRecord
from .settings import listed


def describe_tuning(runs: Sequence[RunRecord]) -> list[str]:
    """Return the notes below a table of tuned runs, all of one tuning; none if they were not tuned."""
    ordered = sorted(runs, key=lambda run: zoo_order(method_of(run)))
    tuned = {run.row: run.tuning for run in ordered if run.tuning is not None}
    if not tuned:
        return []
    first = next(iter(tuned.values()))
    whose = "of local, whose choice all methods have," if first["on"] == "local" else "each"
    rule = (
        f"tuned: {say_count(first['budget'], 'trial')} {whose} on validation ({first['validation']:g} of each client's "
        f"training images, seed {listed(first['seeds'])}), tried: {listed(first['keys'])}; chosen: {first['criterion']}"
    )
    fewer = [f"{', '.join(row)} {one['trials']}" for row, one in tuned.items() if one["trials"] < first["budget"]]
    chosen = [f"{', '.join(row)} {_say(one['chosen'])}" for row, one in tuned.items()]
    notes = [rule, *([f"fewer trials than {first['budget']}: {'; '.join(fewer)}"] if fewer else [])]
    return [*notes, f"values chosen: {'; '.join(chosen)}"]


def _say(chosen: dict) -> str:
    return ", ".join(f"{key}={value}" for key, value in chosen.items()) or "the default"
