"""`fmtlbench leaderboard`: methods × tasks, one table per scenario and setting. Never imports torch."""

from __future__ import annotations

import argparse
import sys

from ..errors import UsageError
from ._report import STYLES, add_format, add_runs, add_setting, collect_runs, emit

EPILOG = """\
Runs of different scenarios, presets, data, round counts or other settings never share a table. Cells are means over
seeds, with the standard deviation (n - 1) from two seeds on; alike clients share a column. What is missing stays so;
NULL is a method that a bench found to be refused in this setting, failed one whose runs failed, with the reason below.

examples:
  fmtlbench leaderboard
  fmtlbench leaderboard runs --scenario st_mt_1 --format latex --standalone -o table.tex
  fmtlbench leaderboard runs more-runs --split personal --sort delta
  fmtlbench leaderboard --format html -o site          (pages for a browser; open site/index.html)
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "leaderboard",
        help="tables of finished runs: methods × tasks, Δm, best and second",
        description="Tables of finished runs: methods × tasks, with Δm against a baseline.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument("--scenario", metavar="NAME", help="only this scenario")
    parser.add_argument("--split", choices=("global", "personal"), help="default: global; html: both")
    parser.add_argument("--baseline", default="local", metavar="NAME", help="what Δm is against; default: local")
    parser.add_argument(
        "--sort", default="zoo", metavar="BY", help="zoo (the papers' order), delta, name, or a column of the CSV"
    )
    add_format(parser, (*STYLES, "html"))
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    if args.format == "html":
        return _site(args)
    from ..reports.leaderboard import leaderboards

    collection = collect_runs(args.runs, args.setting)
    emit(leaderboards(collection, args.scenario, args.split or "global", args.baseline, args.sort), args)
    return 0


def _site(args: argparse.Namespace) -> int:
    """Linked pages, one per scenario, setting and split."""
    if args.output is None:
        raise UsageError("--format html writes a folder of pages: give it with -o DIR")
    if args.standalone:
        raise UsageError("--standalone belongs to --format latex")
    from ..reports.site import write_site

    splits = [args.split] if args.split else None
    index = write_site(
        collect_runs(args.runs, args.setting), args.output, args.scenario, splits, args.baseline, args.sort
    )
    print(f"written: {index}", file=sys.stderr)
    return 0
