"""What the verbs share that carry out a plan of runs: effort, display, and the plan before anything runs."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TextIO

from ._request import add_ray_address

if TYPE_CHECKING:
    from ..bench.device import Device
    from ..bench.estimate import Estimate, Pace
    from ..bench.grid import Grid
    from ..bench.plan import Plan
    from ..bench.workers import Hosts, Outcome


def add_effort(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how much is done at a time and for how long."""
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time; default: 1")
    parser.add_argument("--budget", help="start nothing after this time and stop what runs, e.g. 2h, 90m, 1h30m")
    parser.add_argument("--retries", type=int, default=1, help="how often a failed run is tried again; default: 1")
    parser.add_argument(
        "--executor",
        choices=("processes", "ray"),
        default="processes",
        help="where runs are: processes of this machine, or of the machines of a Ray cluster; default: processes",
    )
    add_ray_address(parser)
    parser.add_argument("--cpus-per-job", type=float, metavar="N", help="that a run needs of the cluster; default: 1")
    parser.add_argument(
        "--gpus-per-job", type=float, metavar="N", help="likewise with --device cuda; 0.5: two share one; default: 1"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the estimate; touch nothing")


def check_effort(args: argparse.Namespace) -> float | None:
    """Check how much is done at a time and where; return the budget in seconds, None without one."""
    from ..base.errors import UsageError
    from ..base.words import parse_duration

    for flag, value, least in (("--jobs", args.jobs, 1), ("--retries", args.retries, 0)):
        if value < least:
            raise UsageError(f"{flag} {value}: expected a whole number, {least} or more")
    _check_places(args)
    return None if args.budget is None else parse_duration(args.budget, "--budget")


def _check_places(args: argparse.Namespace) -> None:
    from ..api import check_ray_device
    from ..base.errors import UsageError

    for flag, value in (
        ("--ray-address", args.ray_address),
        ("--cpus-per-job", args.cpus_per_job),
        ("--gpus-per-job", args.gpus_per_job),
    ):
        if value is not None and args.executor != "ray":
            raise UsageError(f"{flag} {value}: is for --executor ray; this command has --executor {args.executor}")
    if args.cpus_per_job is not None and not 0 < args.cpus_per_job < math.inf:
        raise UsageError(f"--cpus-per-job {args.cpus_per_job:g}: expected a number above 0")
    if args.gpus_per_job is not None and not 0 < args.gpus_per_job <= 1:
        raise UsageError(f"--gpus-per-job {args.gpus_per_job:g}: expected a number above 0, at most 1: a run uses one")
    if args.executor == "ray":
        check_ray_device(args.device)


def device_of(args: argparse.Namespace) -> Device:
    """Find the device of the runs; if they will be on other machines, this one need not have it."""
    from ..base.errors import UsageError
    from ..bench.device import find_device

    listed = args.dry_run and args.format == "sh"
    device = find_device(args.device, here=args.executor == "processes" and not listed)
    if args.gpus_per_job is not None and device.kind != "cuda":
        raise UsageError(f"--gpus-per-job {args.gpus_per_job:g}: the runs are on the {device.kind}; --device cuda?")
    return device


def check_data_root(plan: Plan, args: argparse.Namespace) -> None:
    """Refuse a --data-root that no run would use."""
    from ..base.errors import UsageError

    if args.data_root is not None and not any(run.config.reads_files for run in plan.runs):
        raise UsageError(f"--data-root {args.data_root}: every run uses the embedded data; --set data.source=real?")


def check_archives(plan: Plan, args: argparse.Namespace) -> None:
    """Refuse runs on real data that are not there, before the first of many fails; other machines have their own."""
    from ..data.datasets import find_archive

    if args.executor == "ray":
        return
    seen = set()
    for run in plan.missing():
        for domain in sorted(run.config.scenario.domains) if run.config.reads_files else ():
            if domain not in seen:
                seen.add(domain)
                find_archive(run.config.data.dataset(domain), args.data_root)


def tell_shortfalls(grid: Grid) -> None:
    """Say of which methods fewer trials were drawn than asked for; call it once nothing is refused any more."""
    for line in grid.shortfalls:
        print(line, file=sys.stderr)  # stdout may be read by a program


def carry_out(plan: Plan, args: argparse.Namespace, budget: float | None, device: Device) -> Outcome:
    """Do the runs of the plan that are missing, on the device that was found; print on stderr what happens."""
    from ..bench.child import run_command
    from ..bench.outcomes import note_plan
    from ..bench.workers import Workers

    pace = learn_pace(plan)
    display = _make_display()
    with _find_hosts(plan, args, device) as hosts:
        display.planned(plan, describe_plan(plan, pace.total(plan.missing(), args.jobs)))
        for line in plan.notes():
            display.note(line)
        note_plan(plan)
        return Workers(plan, run_command, display, pace, args.jobs, args.retries, budget, hosts).work()


def print_failures(outcome: Outcome, stream: TextIO) -> None:
    """Print why runs failed, and where their logs are."""
    for record in outcome.records.values():
        if record.outcome == "failed":
            print(f"failed: {record.run.name}: {record.error} (log: {record.log})", file=stream)


def _find_hosts(plan: Plan, args: argparse.Namespace, device: Device) -> AbstractContextManager[Hosts]:
    """Return what starts the runs: this machine or a Ray cluster, which must answer before anything is written."""
    if args.executor == "ray" and plan.missing():
        from ..bench.ray_jobs import ray_jobs

        gpus = (args.gpus_per_job or 1.0) if device.kind == "cuda" else 0.0
        return ray_jobs(args.ray_address, plan.out, args.cpus_per_job or 1.0, gpus)
    from ..bench.here import Here

    return nullcontext(Here(args.jobs, device.names()))


def print_plan(plan: Plan, jobs: int, style: str) -> None:
    """Print the plan and the estimate, as a table or as JSON; or the missing runs, as commands."""
    if style == "sh":
        print(shell_list(plan), end="")
        return
    if style == "json":
        print(json.dumps(plan_record(plan, jobs), indent=2, ensure_ascii=False))
        return
    from ._tables import print_records

    print_records(plan.table(lambda run: run.state))
    for line in plan.notes():
        print(line)
    print(describe_plan(plan, learn_pace(plan).total(plan.missing(), jobs)))


def plan_record(plan: Plan, jobs: int) -> dict[str, Any]:
    """Return the plan and the estimate as plain data."""
    estimate = learn_pace(plan).total(plan.missing(), jobs)
    runs = [
        {
            **identity(run),
            "state": run.state,
            "rounds_done": run.rounds_done,
            "other_code": run.store.place.change or None,
            "problem": run.problem or None,
        }
        for run in plan.runs
    ]
    basis = {"seconds": estimate.seconds if estimate.known else None, "unknown_runs": estimate.unknown}
    record = {"out": str(plan.out), "counts": plan.counts(), "estimate": basis, "runs": runs}
    return {**record, "refused": _list_refused(plan)}


def shell_list(plan: Plan) -> str:
    """Write one command per missing run, each on a line of its own, for a shell or a scheduler."""
    from ..base.errors import UsageError, one_line

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


def print_json(record: dict[str, Any], plan: Plan) -> None:
    """Print a record with the plan's refusals."""
    print(json.dumps({**record, "refused": _list_refused(plan)}, indent=2, ensure_ascii=False))


def _list_refused(plan: Plan) -> list[dict[str, str]]:
    return [{"name": r.label, "scenario": r.scenario, "preset": r.preset, "reason": r.reason} for r in plan.refusals]


def identity(run: Any) -> dict[str, Any]:
    """Return what identifies a run, for JSON."""
    config = run.config
    return {
        "name": run.label,
        "algorithm": config.method,
        "scenario": config.scenario.name,
        "preset": config.preset,
        "seed": config.seed,
        "folder": str(run.store.folder),
    }


def learn_pace(plan: Plan) -> Pace:
    """Return the pace of the finished runs that lie where the plan's are to lie."""
    from ..bench.estimate import Pace

    pace = Pace()
    pace.learn_folder(plan)
    return pace


def _make_display() -> Any:
    from ..bench.display import Lines, Live

    return Live() if sys.stderr.isatty() else Lines()


def describe_plan(plan: Plan, estimate: Estimate) -> str:
    """Say in one line how many runs there are, in which state, and how long the rest takes."""
    counts = ", ".join(f"{count} {state}" for state, count in plan.counts().items() if count)
    return f"{len(plan.runs)} runs in {plan.out}: {counts} · training time: {estimate.text()}"
