"""Record why runs are absent: refused ones when a bench plans, failed ones when they fail."""

from __future__ import annotations

import contextlib

from ..base.errors import FmtlbenchError
from ..config.presets import default_options
from ..runs.absence import FAILED, Absence, failed_file, refused_file, write_absence
from ..runs.summary import describe_weighting
from .plan import Plan, PlannedRun


def note_plan(plan: Plan) -> None:
    """Write the refusals of a plan, and remove what older files say of runs that are possible or finished by now."""
    for file, absence in plan.absences.items():
        write_absence(plan.out / file, absence)
    for run in plan.runs:
        method, weighting = run.config.algorithm, describe_weighting(run.config)
        file = refused_file(method.name, method.options, run.config.setting(), weighting)
        (plan.out / file).unlink(missing_ok=True)
        if run.state == "done":
            note_finished(run)


def note_failed(run: PlannedRun, reason: str) -> None:
    """Record why a run failed. It is only a note: a disk that refuses it does not stop the other runs."""
    from ..algorithms import ALGORITHMS

    with contextlib.suppress(OSError, FmtlbenchError):  # the user's file may be gone by now
        method = ALGORITHMS.resolve(run.request.algo, "--algo")
        config = run.config
        defaults = default_options(method, config.preset, config.preset_options)
        options, weighting = config.algorithm.options, describe_weighting(config)
        absence = Absence.of(FAILED, reason, method, options, config.setting(), config.seed, defaults, weighting)
        write_absence(failed_file(run.store.folder), absence)


def note_finished(run: PlannedRun) -> None:
    """Remove the record of an earlier failure of the run, also by other code."""
    with contextlib.suppress(OSError):
        for folder in (run.store.base, run.store.folder):
            failed_file(folder).unlink(missing_ok=True)
