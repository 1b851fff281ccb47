"""`fmtlbench published`: the papers' tables, whether their Δ follow, and what they claim. Never imports torch."""

from __future__ import annotations

import argparse

from ..base.errors import UsageError
from ._report import add_format, emit

EPILOG = """\
examples:
  fmtlbench published
  fmtlbench published fedhca2_table1_st_mt_1 --format md
  fmtlbench published --audit
  fmtlbench published --claims
  fmtlbench published fedhca2_supp_table3_backbones --claims --format md
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "published",
        help="the papers' tables as data",
        description="The papers' tables as data: list them, print one, recompute their Δ, or check the papers' claims.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this table; default: list them all")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--audit", action="store_true", help="recompute every printed Δ, of all tables or of NAME")
    asked.add_argument(
        "--claims",
        action="store_true",
        help="check the papers' claims on printed numbers, all or those about NAME",
    )
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.papers.published import as_table, audit, audit_table, load_published, published_names

    names = [args.name] if args.name else published_names()
    tables = [load_published(name) for name in names]
    if args.audit:
        emit([audit_table(audit(names))], args)
    elif args.claims:
        from ..reports.papers.claims import claims_table, judge_printed

        verdicts = judge_printed([args.name] if args.name else None)
        if not verdicts:
            raise UsageError(f"{args.name} --claims: the papers claim nothing of it that is checked here")
        emit([claims_table(verdicts)], args)
    elif args.name:
        emit([as_table(tables[0])], args)
    elif args.output or args.format != "table":
        raise UsageError("--format and -o belong to one table, to --audit or to --claims: name a table")
    else:
        from ._tables import print_records

        print_records(
            [
                {
                    "name": p.name,
                    "source": p.source,
                    "title": p.title,
                    "scenario": ", ".join(p.scenarios),
                    "rows": len(p.rows),
                }
                for p in tables
            ]
        )
    return 0
