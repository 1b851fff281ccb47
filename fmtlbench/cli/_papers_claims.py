"""`fmtlbench papers claims`: whether the papers' printed numbers say what the papers say. Never imports torch."""

from __future__ import annotations

import argparse

from ..base.errors import UsageError
from ._report import add_format, emit

EPILOG = """\
`fmtlbench papers reproduce --claims` checks the same on runs.

examples:
  fmtlbench papers claims
  fmtlbench papers claims fedhca2_supp_table3_backbones --format md
"""


def add(actions) -> None:
    parser = actions.add_parser(
        "claims",
        help="what the papers say, checked on their printed numbers",
        description="Check the papers' claims on their printed numbers.",
        epilog=EPILOG,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="those about this table; default: all")
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.papers.claims import claims_table, judge_printed
    from ..reports.papers.published import load_published

    if args.name:
        load_published(args.name)  # refuses what is none
    verdicts = judge_printed([args.name] if args.name else None)
    if not verdicts:
        raise UsageError(f"claims {args.name}: the papers claim nothing of it that is checked here")
    emit([claims_table(verdicts)], args)
    return 0
