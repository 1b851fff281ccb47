"""What the verbs share that carry out a plan of runs: the flags of effort, and how a plan and failures are printed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, TextIO

from ._request import add_executor, add_ray_address, request_template

if TYPE_CHECKING:
    from ..bench.device import Device
    from ..bench.display import Display
    from ..bench.effort import Effort
    from ..bench.plan import Plan
    from ..bench.workers import Outcome
    from ..config.request import RunRequest


def add_effort(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how much is done at a time, for how long, and where."""
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time; default: 1")
    parser.add_argument("--budget", help="start nothing after this time and stop what runs, e.g. 2h, 90m, 1h30m")
    parser.add_argument("--retries", type=int, default=1, help="how often a failed run is tried again; default: 1")
    parser.add_argument(
        "--hosts",
        choices=("here", "ray"),
        default="here",
        help="where whole runs are: on this machine, or on those of a Ray cluster; default: here",
    )
    add_executor(parser, "serial")
    add_ray_address(parser)
    parser.add_argument("--cpus-per-job", type=float, metavar="N", help="that a run needs of --hosts ray; default: 1")
    parser.add_argument(
        "--gpus-per-job", type=float, metavar="N", help="likewise with --device cuda; 0.5: two share one; default: 1"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the plan and the estimate; touch nothing")


def read_effort(args: argparse.Namespace) -> Effort:
    """Return what the flags of `add_effort` say."""
    from ..base.words import parse_duration
    from ..bench.effort import Effort

    budget = None if args.budget is None else parse_duration(args.budget, "--budget")
    where = (args.hosts, args.ray_address, args.cpus_per_job, args.gpus_per_job)
    return Effort(args.jobs, budget, args.retries, *where)


def prepare(args: argparse.Namespace, is_listed: bool = False) -> tuple[Effort, RunRequest, Device]:
    """Return what the flags ask for, checked: how much, how every run is asked for, and the device that was found."""
    effort = read_effort(args)
    template = effort.place(request_template(args))
    return effort, template, effort.find_device(template, is_listed)


def make_display() -> Display:
    """Return what shows runs at work: a live table on a terminal, JSON lines elsewhere."""
    from ..bench.display import Lines, Live

    return Live() if sys.stderr.isatty() else Lines()


def print_plan(plan: Plan, jobs: int, style: str) -> None:
    """Print the plan and the estimate, as a table or as JSON; or the missing runs, as commands."""
    from ..bench.effort import describe_plan
    from ..bench.serialize import plan_record, shell_list

    if style == "sh":
        print(shell_list(plan), end="")
        return
    if style == "json":
        print_json(plan_record(plan, jobs))
        return
    from ._tables import print_records

    print_records(plan.table(lambda run: run.state))
    for line in plan.notes():
        print(line)
    print(describe_plan(plan, jobs))


def print_json(record: Any) -> None:
    """Print plain data."""
    print(json.dumps(record, indent=2, ensure_ascii=False))


def print_failures(outcome: Outcome, stream: TextIO) -> None:
    """Print why runs failed, and where their logs are."""
    for record in outcome.records.values():
        if record.outcome == "failed":
            print(f"failed: {record.run.name}: {record.error} (log: {record.log})", file=stream)
