"""`fmtlbench bench`: many runs, those that are missing only. Never imports torch itself."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING

from ._request import add_circumstances, add_overrides, overrides_of, request_template
from ._tuning import add_tuning, print_choices, print_tuning_plan
from ._working import add_effort, make_display, print_failures, print_json, print_plan, read_effort

if TYPE_CHECKING:
    from ..bench.request import Bench
    from ..bench.workers import Outcome

EXAMPLES = """examples:
  fmtlbench bench --algos all --scenarios st_mt_1 --seeds 0-4 --dry-run
  fmtlbench bench --algos 'fedavg,fedhca2[algo.c=0.2]' --scenarios all --seeds 0-2 --jobs 2 --budget 2h
  fmtlbench bench grid.yml --seeds 0
  fmtlbench bench grid.yml --dry-run --format sh > runs.sh
  fmtlbench bench grid.yml --hosts ray --ray-address auto --jobs 8
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
    from ..bench.display import tell_on_stderr
    from ..bench.grid import Flags
    from ..bench.request import BenchRequest

    listed = args.format == "sh"
    if listed and not args.dry_run:
        raise UsageError("--format sh: lists what is missing; give --dry-run too, or --format table or json")
    names = [field.name for field in dataclasses.fields(Flags) if field.name != "overrides"]
    flags = Flags(**{name: getattr(args, name) for name in names}, overrides=overrides_of(args))
    request = BenchRequest(args.grid, flags, request_template(args), read_effort(args), not args.no_local)
    bench = request.do(make_display(), tell_on_stderr, args.dry_run, listed)
    if bench.outcome is not None:
        _print_outcome(bench, bench.outcome, args.format)
    elif bench.tuning is not None:
        print_tuning_plan(bench, args.format)
    else:
        print_plan(bench.plan, bench.effort.jobs, args.format)
    return 0 if args.dry_run or bench.complete else 1


def _print_outcome(bench: Bench, outcome: Outcome, style: str) -> None:
    """Print what became of the runs."""
    from ..base.words import say_duration
    from ..bench.serialize import count_outcomes
    from ._tables import print_records

    if style == "json":
        print_json(bench.record())
        return
    if bench.search:
        print_choices(bench.search)
    print_records(bench.table())
    for refusal in outcome.plan.refusals:
        print(f"refused: {refusal.reason}")
    print_failures(outcome, sys.stdout)
    words = ", ".join(f"{count} {word}" for word, count in count_outcomes(outcome).items() if count)
    print(f"{words} in {say_duration(outcome.seconds)}: {outcome.plan.out}")
    if outcome.count("left"):
        why = "the budget is used up" if outcome.stopped == "budget" else "interrupted"
        print(f"{why}, runs left: {outcome.count('left')}; the same command goes on")
