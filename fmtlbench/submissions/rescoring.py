"""Compute the scores of a run again, from what its meters had summed up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..base.errors import FmtlbenchError, describe_error
from ..config.run_config import RunConfig
from ..data.configured_tasks import task_specs
from ..data.meters import make_meter
from ..engine.evaluate import score_records
from ..exchange import Party
from ..runs.records import Score
from ..runs.sums_file import ScoreSums

TOLERANCE = 1e-9  # relative: other processors may round the last bits of a division otherwise
COMPARED = ("dataset", "primary", "unit", "higher_is_better")  # of a score, beside its value


class SubmissionError(FmtlbenchError):
    """A run, or a file of runs, that is not what it says it is."""


def rescore(config: RunConfig, sums: ScoreSums) -> list[Score]:
    """Compute every score from the sums of its meter, as the end of a run does.

    Raises:
        SubmissionError: The sums are of no client, split or task of the config, or no meter of it can have made them.
    """
    config = replace(config, plugins={}, plugin_files={})  # files of the author's: of those that score there are none
    clients = {spec.id: spec for spec in config.scenario.everybody()}
    records: list[Score] = []
    for (client, split, task), state in sums.items():
        where = f"sums of {client}, {split}, {task}"
        spec = clients.get(client)
        if spec is None or task not in spec.tasks:
            raise SubmissionError(f"{where}: {config.scenario.name} has no such client with that task")
        party = Party(0, client, spec.dataset, tuple(spec.tasks), 0, False)
        info, size = config.data.dataset(spec.dataset), config.data.size[spec.dataset]
        meter = make_meter(task_specs(config, spec.dataset)[task], info, size)
        _check_numbers(where, state)
        try:
            meter.load_state(state)
            records += score_records(party, split, task, meter)
        except Exception as error:  # arrays of any names and shapes may have been given
            raise SubmissionError(f"{where}: no sums of {meter.label}: {describe_error(error)}") from None
    return records


def _check_numbers(where: str, state: Mapping[str, np.ndarray]) -> None:
    for name, array in state.items():
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise SubmissionError(f"{where}: {name}: expected finite numbers")
        if array.dtype.kind in "iu" and array.size and array.min() < 0:
            raise SubmissionError(f"{where}: {name}: a count is below 0")


def find_difference(stored: Sequence[Score], computed: Sequence[Score]) -> str:
    """Say in which score two lists differ first, in words; "" where they agree up to rounding."""
    there, here = (
        {(r["client"], r["split"], r["task"], r["metric"]): r for r in records} for records in (stored, computed)
    )
    if len(there) < len(stored):
        return "a score is there twice"
    for key in [*there, *here]:
        name = ", ".join(key)
        if key not in there or key not in here:
            return f"{name}: {'not among the scores' if key not in there else 'nothing that it was computed from'}"
        told, found = there[key], here[key]
        if not _is_close(told["value"], found["value"]):
            return f"{name}: {told['value']} is told, {found['value']} comes out"
        for field in COMPARED:
            if told.get(field) != found.get(field):
                return f"{name}: {field} is {told.get(field)!r}, expected {found.get(field)!r}"
    return ""


def _is_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
