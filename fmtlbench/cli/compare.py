"""`fmtlbench compare`: measured beside published. Never imports torch."""

from __future__ import annotations

import argparse

from ._report import add_delta, add_format, add_runs, add_setting, asked_delta, emit, every_run

EPILOG = """\
Where preset, data, rounds or other values differ from the paper's, the first line says so and every column is marked.
Shown are the published rows of the runs' own architecture and backbone; a nano backbone stands for its family.

examples:
  fmtlbench compare --published fedhca2_table1_st_mt_1
  fmtlbench compare runs/st_mt_2 --published fedhca2_table2_st_mt_2 --format md
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "compare",
        help="measured beside a paper's table",
        description="Finished runs beside a paper's table, with the gap in every cell.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument("--published", required=True, metavar="NAME", help="a table of `fmtlbench published`")
    add_delta(parser)
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.papers.compare import compare
    from ._installed import Installed

    runs, chosen = every_run(args)
    emit(compare(chosen, args.published, Installed(), asked_delta(args, runs)), args)
    return 0
