"""`fmtlbench bench`: many runs, those that are missing only. Never imports torch itself."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ._request import add_circumstances, add_overrides, overrides_of, request_template
from ._tuning import add_tuning, check_flags, is_complete, print_choices, print_tuning_plan, tune
from ._working import (
    add_effort,
    carry_out,
    check_data_root,
    check_effort,
    device_of,
    identity,
    print_failures,
    print_json,
    print_plan,
    tell_shortfalls,
)

if TYPE_CHECKING:
    from ..bench.device import Device
    from ..bench.grid import Grid
    from ..bench.workers import Outcome

EXAMPLES = """examples:
  fmtlbench bench --algos all --scenarios st_mt_1 --seeds 0-4 --dry-run
  fmtlbench bench --algos 'fedavg,fedhca2[algo.c=0.2]' --scenarios all --seeds 0-2 --jobs 2 --budget 2h
  fmtlbench bench grid.yml --seeds 0
  fmtlbench bench grid.yml --dry-run --format sh > runs.sh
  fmtlbench bench grid.yml --executor ray --ray-address auto --jobs 8
  fmtlbench bench --algos local,fedavg,fedavg+uw --scenarios mt_mt --seeds 0-4
  fmtlbench bench --algos fedavg --scenarios st_mt_1 --sweep train.lr=1e-3..1e-1:log5
  fmtlbench bench --algos fedavg,fedprox --scenarios st_mt_1 --seeds 0-4 --tune --trials 12 \\
      --search train.lr=1e-3..1e-1:log --search fedprox:algo.mu=1e-3..1:log

A grid file has the keys algos, scenarios, seeds, preset (or presets), rounds, set, and variants: a list of
{name: NAME, algo: fedavg, set: {algo.shared: encoder}}; sweep or search: {KEY: RANGE}, trials, search_seed, and tune:
{METHOD: {KEY: RANGE}}. Flags take the place of its entries.

Finished runs are reused, unfinished ones go on, and the local runs that methods are compared with are added. The same
command again does what is left; several at once on one OUT share the work. The log of every run is in OUT/.bench/logs.

Exit code 0: every run of the plan is finished (refused pairs are none). 1: some failed, or some are left because of the
budget or Ctrl-C. 2: wrong usage, found before anything ran.
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "bench",
        help="run many algorithms on many scenarios and seeds",
        description="Run what is missing of a grid of algorithms, scenarios and seeds, each run in its own process.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("grid", nargs="?", metavar="GRID.yml", help="a file that says what to run")
    parser.add_argument(
        "--algos",
        help="all, or names and .py files separated by commas; NAME[key=value] has options, NAME+WEIGHTING a weighting",
    )
    parser.add_argument("--scenarios", help="all but the probes, or names and .yml files separated by commas")
    parser.add_argument("--seeds", help="for example 0-4,7; default: 0")
    parser.add_argument("--preset", help="how big: names (fmtlbench list presets) or .yml files; default: nano")
    parser.add_argument("--rounds", type=int, help="instead of the preset's number")
    add_overrides(parser, "override one value of every run; repeatable")
    parser.add_argument(
        "--no-local", action="store_true", help="do not add the local runs that others are compared with"
    )
    add_tuning(parser)
    add_effort(parser)
    add_circumstances(parser)
    parser.add_argument(
        "--format",
        choices=("table", "json", "sh"),
        default="table",
        help="of the result; sh, with --dry-run: one command per missing run, for a scheduler; default: table",
    )
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.errors import UsageError
    from ..base.files import check_folder
    from ..bench.grid import Flags, read_grid
    from ..bench.plan import make_plan
    from ..cost.energy import choose_energy

    if args.format == "sh" and not args.dry_run:
        raise UsageError("--format sh: lists what is missing; give --dry-run too, or --format table or json")
    check_folder(args.out, "--out")
    budget = check_effort(args)
    check_flags(args)
    names = ("algos", "scenarios", "seeds", "preset", "rounds", "sweep", "search", "trials", "search_seed", "tune")
    flags = Flags(**{name: getattr(args, name) for name in names}, overrides=overrides_of(args))
    grid = read_grid(args.grid, flags)
    choose_energy(args.energy, args.country, args.region)  # a wrong country is told before anything runs
    device = device_of(args)
    if args.tune:
        return _tune(args, grid, device, budget)
    plan = make_plan(grid, request_template(args), device.kind, with_local=not args.no_local)
    check_data_root(plan, args)
    tell_shortfalls(grid)
    if args.dry_run:
        print_plan(plan, args.jobs, args.format)
        return 0
    outcome = carry_out(plan, args, budget, device)
    _print_outcome(outcome, args.format)
    return 0 if outcome.complete else 1


def _tune(args: argparse.Namespace, grid: Grid, device: Device, budget: float | None) -> int:
    """Do what --tune asks for, or show it."""
    if args.dry_run:
        print_tuning_plan(args, grid, device)
        return 0
    outcome, search = tune(args, grid, device, budget)
    if search and args.format == "table":
        print_choices(search)
    _print_outcome(outcome, args.format, {"tuning": search})
    return 0 if outcome.complete and is_complete(search) else 1


def _print_outcome(outcome: Outcome, style: str, more: dict[str, Any] | None = None) -> None:
    """Print what became of the runs; `more` is added to JSON."""
    from ..base.words import say_duration

    plan, records = outcome.plan, outcome.records
    counts = {word: outcome.count(word) for word in ("ran", "reused", "elsewhere", "failed", "left")}
    counts["refused"] = plan.counts()["refused"]
    if style == "json":
        runs = [
            {
                **identity(r.run),
                "outcome": r.outcome,
                "seconds": round(r.seconds, 1),
                "attempts": r.attempts,
                "error": r.error,
                "log": r.log,
            }
            for r in records.values()
        ]
        head = {"out": str(plan.out), "seconds": round(outcome.seconds, 1), "stopped": outcome.stopped}
        print_json({**head, **(more or {}), "counts": counts, "runs": runs}, plan)
        return
    from ._tables import print_records

    print_records(plan.table(lambda run: records[run].outcome))
    for refusal in plan.refusals:
        print(f"refused: {refusal.reason}")
    print_failures(outcome, sys.stdout)
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    print(f"{words} in {say_duration(outcome.seconds)}: {plan.out}")
    if outcome.count("left"):
        why = "the budget is used up" if outcome.stopped == "budget" else "interrupted"
        print(f"{why}, runs left: {outcome.count('left')}; the same command goes on")
