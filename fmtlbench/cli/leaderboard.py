"""`fmtlbench leaderboard`: methods × tasks, one table per scenario and setting. Never imports torch."""

from __future__ import annotations

import argparse
import sys

from ..base.errors import UsageError
from ._report import add_delta, add_format, add_rows, add_runs, add_setting, check_style, emit, keywords

EPILOG = """\
Runs of different scenarios, presets, data, round counts or other settings never share a table, unless --rows says in
what its rows may differ. Cells are means over seeds and over the clients that have the dataset's task; Δm averages
these columns. † and ‡ mark a Δm that differs from its reference and from the highest. What is missing stays so; NULL
is a method that a bench found to be refused in this setting, failed one whose runs failed, with the reason below.

examples:
  fmtlbench leaderboard
  fmtlbench leaderboard runs --scenario st_mt_1 --format latex --standalone -o table.tex
  fmtlbench leaderboard runs more-runs --split personal --sort delta
  fmtlbench leaderboard --rows algorithm,architecture,backbone --spread clients \\
      --reference algo=local,scenario=iid1_sdmt,architecture=md,backbone=resnet18
  fmtlbench leaderboard --fairness --sort worst_client
  fmtlbench leaderboard --format csv --spreadsheet -o scores.csv
  fmtlbench leaderboard --format html -o site          (pages for a browser; open site/index.html)
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "leaderboard",
        help="tables of finished runs: methods × tasks, Δm, best and second",
        description="Tables of finished runs: methods × tasks, with Δm against a baseline.",
        epilog=EPILOG,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument("--scenario", metavar="NAME", help="only this scenario")
    parser.add_argument(
        "--split", metavar="NAME", help="global, personal, unseen: what the runs have; default: global; html: all"
    )
    parser.add_argument("--baseline", default="local", metavar="NAME", help="what Δm is against; default: local")
    parser.add_argument(
        "--sort", default="zoo", metavar="BY", help="zoo (the papers' order), delta, name, or a column of the CSV"
    )
    add_delta(parser)
    add_rows(parser)
    parser.add_argument(
        "--spread", choices=("seeds", "clients"), default="seeds", help="what ± is over; default: seeds"
    )
    parser.add_argument(
        "--fairness",
        action="store_true",
        help="columns of the worst client's Δm, that of the worst tenth of clients, and the spread over clients",
    )
    add_format(parser, ("html",))
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports import ask

    if args.format != "html":
        args.split = args.split or "global"
        emit(ask.leaderboard(*args.runs, **keywords(args, ask.leaderboard)), args)
        return 0
    if args.output is None:
        raise UsageError("--format html writes a folder of pages: give it with -o DIR")
    check_style(args)
    print(f"written: {ask.write_pages(*args.runs, **keywords(args, ask.write_pages))}", file=sys.stderr)
    return 0
