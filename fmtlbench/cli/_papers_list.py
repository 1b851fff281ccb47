"""`fmtlbench papers list`: the papers' tables, and whether their Δ follow. Never imports torch."""

from __future__ import annotations

import argparse

from ..base.errors import UsageError
from ._report import add_format, emit

EPILOG = """\
examples:
  fmtlbench papers list
  fmtlbench papers list fedhca2_table1_st_mt_1 --format md
  fmtlbench papers list --audit
"""


def add(actions) -> None:
    parser = actions.add_parser(
        "list",
        help="the papers' tables as data; what `fmtlbench papers` alone does",
        description="The papers' tables as data: list them, print one, or recompute their Δ.",
        epilog=EPILOG,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this table; default: list them all")
    parser.add_argument("--audit", action="store_true", help="recompute every printed Δ, of all tables or of NAME")
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.papers.published import as_table, audit, audit_table, list_published, load_published, published_names

    if args.audit:
        emit([audit_table(audit([args.name] if args.name else published_names()))], args)
    elif args.name:
        emit([as_table(load_published(args.name))], args)
    elif args.output or args.format != "table":
        raise UsageError("--format and -o belong to one table or to --audit: name a table")
    else:
        from ._tables import print_records

        print_records(list_published())
    return 0
