"""A plan and what became of it as plain data, and as commands for a shell."""

from __future__ import annotations

import shlex
from typing import Any

from ..base.errors import UsageError, one_line
from .estimate import learn_pace
from .plan import Plan, PlannedRun
from .workers import Outcome

OUTCOMES = ("ran", "reused", "elsewhere", "failed", "left")


def plan_record(plan: Plan, jobs: int) -> dict[str, Any]:
    """Return the plan and the estimate as plain data."""
    estimate = learn_pace(plan).total(plan.missing(), jobs)
    runs = [
        {
            **identify_run(run),
            "state": run.state,
            "rounds_done": run.rounds_done,
            "other_code": run.store.chosen.change or None,
            "problem": run.problem or None,
        }
        for run in plan.runs
    ]
    basis = {"seconds": estimate.seconds if estimate.known else None, "unknown_runs": estimate.unknown}
    record = {"out": str(plan.out), "counts": plan.counts(), "estimate": basis, "runs": runs}
    return {**record, "refused": list_refused(plan)}


def outcome_record(outcome: Outcome, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what became of a plan as plain data; `more` stands before the runs."""
    runs = [
        {
            **identify_run(record.run),
            "outcome": record.outcome,
            "seconds": round(record.seconds, 1),
            "attempts": record.attempts,
            "error": record.error,
            "log": record.log,
        }
        for record in outcome.records.values()
    ]
    head = {"out": str(outcome.plan.out), "seconds": round(outcome.seconds, 1), "stopped": outcome.stopped}
    whole = {**head, **(more or {}), "counts": count_outcomes(outcome), "runs": runs}
    return {**whole, "refused": list_refused(outcome.plan)}


def count_outcomes(outcome: Outcome) -> dict[str, int]:
    """Return how many runs ended how, and how many were refused."""
    counts = {word: outcome.count(word) for word in OUTCOMES}
    return {**counts, "refused": outcome.plan.counts()["refused"]}


def shell_list(plan: Plan) -> str:
    """Write one command per missing run, each on a line of its own, for a shell or a scheduler."""
    missing = plan.missing()
    head = [
        "#!/bin/sh",
        f"# {len(missing)} of {len(plan.runs)} runs are missing in {plan.out.absolute()}: one command per line, in any",
        "# order or at the same time. Pairs that are refused are left out. A finished run is not repeated.",
    ]
    head += [f"# refused: {refusal.reason}" for refusal in plan.refusals]
    commands = [shlex.join(["fmtlbench", "run", *run.request.anywhere().to_argv()]) for run in missing]
    for command in commands:
        if "\n" in command or "\r" in command:
            raise UsageError(f"--format sh: a name holds a line break, expected one line per run: {one_line(command)}")
    return "".join(f"{line}\n" for line in (*map(one_line, head), *commands))


def list_refused(plan: Plan) -> list[dict[str, str]]:
    """Return what was refused, with the reasons."""
    return [{"name": r.label, "scenario": r.scenario, "preset": r.preset, "reason": r.reason} for r in plan.refusals]


def identify_run(run: PlannedRun) -> dict[str, Any]:
    """Return what identifies a run."""
    config = run.config
    return {
        "name": run.label,
        "algorithm": config.method,
        "scenario": config.scenario.name,
        "preset": config.preset,
        "seed": config.seed,
        "folder": str(run.store.folder),
    }
