"""What the verbs share that carry out a plan of runs: effort, display, and the plan before anything runs."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..bench.estimate import Estimate, Pace
    from ..bench.plan import Plan
    from ..bench.workers import Outcome


def add_effort(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how much is done at a time and for how long."""
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time; default: 1")
    parser.add_argument("--budget", help="start nothing after this time and stop what runs, e.g. 2h, 90m, 1h30m")
    parser.add_argument("--retries", type=int, default=1, help="how often a failed run is tried again; default: 1")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the estimate; touch nothing")


def check_effort(args: argparse.Namespace) -> float | None:
    """Check --jobs and --retries; return the budget in seconds, None without one."""
    from ..bench.durations import parse_duration
    from ..errors import UsageError

    for flag, value, least in (("--jobs", args.jobs, 1), ("--retries", args.retries, 0)):
        if value < least:
            raise UsageError(f"{flag} {value}: expected a whole number, {least} or more")
    return None if args.budget is None else parse_duration(args.budget, "--budget")


def check_data_root(plan: Plan, args: argparse.Namespace) -> None:
    """Refuse a --data-root that no run would look at."""
    from ..errors import UsageError

    if args.data_root is not None and all(run.config.data.source == "synth" for run in plan.runs):
        raise UsageError(f"--data-root {args.data_root}: every run uses the embedded data; --set data.source=real?")


def carry_out(plan: Plan, args: argparse.Namespace, budget: float | None) -> Outcome:
    """Do what the plan misses, telling on stderr what happens."""
    from ..bench.absent import note_plan
    from ..bench.child import run_command
    from ..bench.workers import Workers

    pace = _learnt(plan)
    display = _display()
    display.planned(plan, _plan_line(plan, pace.total(plan.missing(), args.jobs)))
    for refusal in plan.refusals:
        display.note(f"refused: {refusal.reason}")
    note_plan(plan)
    return Workers(plan, run_command, display, pace, args.jobs, args.retries, budget).work()


def print_plan(plan: Plan, jobs: int, style: str) -> None:
    """Show the plan and the estimate, as a table or as JSON."""
    estimate = _learnt(plan).total(plan.missing(), jobs)
    if style == "json":
        runs = [{**identity(run), "state": run.state, "rounds_done": run.rounds_done} for run in plan.runs]
        basis = {"seconds": estimate.seconds if estimate.known else None, "unknown_runs": estimate.unknown}
        print_json({"out": str(plan.out), "counts": plan.counts(), "estimate": basis, "runs": runs}, plan)
        return
    from ._tables import print_records

    print_records(plan.table(lambda run: run.state))
    for refusal in plan.refusals:
        print(f"refused: {refusal.reason}")
    print(_plan_line(plan, estimate))


def print_json(record: dict[str, Any], plan: Plan) -> None:
    """Print a record with the plan's refusals."""
    refused = [{"name": r.label, "scenario": r.scenario, "preset": r.preset, "reason": r.reason} for r in plan.refusals]
    print(json.dumps({**record, "refused": refused}, indent=2, ensure_ascii=False))


def identity(run: Any) -> dict[str, Any]:
    """Say which run it is, for JSON."""
    config = run.config
    return {
        "name": run.label, "algorithm": config.algorithm.name, "scenario": config.scenario.name,
        "preset": config.preset, "seed": config.seed, "folder": str(run.store.folder),
    }  # fmt: skip


def _learnt(plan: Plan) -> Pace:
    from ..bench.estimate import Pace

    pace = Pace()
    pace.learn_folder(plan)
    return pace


def _display() -> Any:
    from ..bench.display import Lines, Live

    return Live() if sys.stderr.isatty() else Lines()


def _plan_line(plan: Plan, estimate: Estimate) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in plan.counts().items() if count)
    return f"{len(plan.runs)} runs in {plan.out}: {counts} · training time: {estimate.text()}"
