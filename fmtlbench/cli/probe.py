"""`fmtlbench probe`: test methods on scenarios whose right answer is known. Never imports torch itself."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ._report import add_format, check_style, emit, write
from ._request import add_circumstances, add_overrides, overrides_of
from ._working import add_effort, make_display, prepare, print_failures, print_plan

if TYPE_CHECKING:
    from ..bench.plan import Plan

EPILOG = """\
A probe is a scenario of which it is known beforehand who must do better than whom; its file says so (fmtlbench show
scenario probe_scarce). What is expected of a method follows from the roles its class names: `roles = ("shares",
"personal")`; a method that says nothing `shares`. Runs that are missing are made first, as by fmtlbench bench, those of
the methods to compare with (local, fedavg) too.

examples:
  fmtlbench probe --algos ./mine.py
  fmtlbench probe --algos fedavg,fedhca2 --probes scarce,strangers --seeds 0-4 --jobs 2
  fmtlbench probe --algos all --probes all --format csv -o probes.csv

Exit code 0: every run is there. 1: some failed or are left; with --strict also if a method fails a probe.
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "probe",
        help="run methods where the right answer is known: pass, fail or undecided",
        description="Run methods on scenarios whose right answer is known, and judge what they do.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--algos", default="all", help="as for bench: names and .py files; default: all")
    parser.add_argument(
        "--probes", help="all, or names with or without probe_, and .yml files; default: all but the families"
    )
    parser.add_argument("--seeds", default="0-2", help="for example 0-4; default: 0-2")
    parser.add_argument(
        "--preset", default="probe", help="how big, a name or a .yml file; default: probe, half a minute a run"
    )
    add_overrides(parser, "override one value of every run; repeatable")
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="P", help="of each side of the intervals; default: 0.95"
    )
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a method fails a probe")
    add_effort(parser)
    add_circumstances(parser, out="probes")
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder, check_output
    from ..bench.display import tell_on_stderr
    from ..bench.effort import carry_out, check_data_root
    from ..bench.probes import choose_probes, collect_answers, list_candidates, plan_probes
    from ..cost.energy import choose_energy
    from ..reports.probes import Question, as_json, probe_tables
    from ._installed import method_titles

    if not 0.5 < args.confidence < 1:
        raise UsageError(f"--confidence {args.confidence:g}: expected a number between 0.5 and 1, such as 0.95")
    check_style(args)
    check_folder(args.out, "--out")
    if args.output is not None:
        check_output(args.output)  # hours before it is written
    choose_energy(args.energy, args.country, args.region)  # a wrong country is told before anything runs
    effort, template, device = prepare(args)
    probes = choose_probes(args.probes)
    how = (args.seeds, args.preset, overrides_of(args), template, device.kind)
    asked, parts, plan = plan_probes(args.algos, probes, *how)
    check_data_root(plan, args.data_root)
    if args.dry_run:
        print_plan(plan, args.jobs, "table")
        return 0
    outcome = carry_out(plan, effort, device, make_display())
    print_failures(outcome, sys.stderr)
    answers = collect_answers(parts, plan, tell_on_stderr)
    question = Question(answers, list_candidates(asked), args.confidence, method_titles())
    if args.format == "json":
        write(json.dumps(as_json(question), indent=2, ensure_ascii=False, allow_nan=False) + "\n", args.output)
    else:
        emit(probe_tables(question, _write_caption(args, plan)), args)
    return 0 if outcome.complete and not (args.strict and question.has_failure()) else 1


def _write_caption(args: argparse.Namespace, plan: Plan) -> str:
    config = plan.runs[0].config
    seeds = sorted({run.config.seed for run in plan.runs})
    more = f" · {', '.join(args.assignments)}" if args.assignments else ""
    return (
        f"preset {config.preset} · {config.data.source} data · {config.federation.rounds} rounds · global test split · "
        f"seeds {', '.join(map(str, seeds))}{more}"
    )
