"""`fmtlbench export`: the tidy frame of all finished runs, for other programs. Never imports torch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ._report import add_runs, add_setting, add_spreadsheet, check_style, collect_runs, write

EPILOG = """\
One row per run, client, split, task and metric, numbers unrounded.

examples:
  fmtlbench export > scores.csv
  fmtlbench export runs/st_mt_1 --format parquet -o scores.parquet
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "export",
        help="every score of the finished runs as CSV, Parquet or JSON",
        description="Every score of the finished runs as one tidy table.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    add_setting(parser)
    parser.add_argument("--format", choices=("csv", "parquet", "json"), default="csv", help="default: csv")
    add_spreadsheet(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_output, is_stdout
    from ..reports.export import as_csv, as_json, write_parquet

    check_style(args)
    if args.format == "parquet":
        from ..base.errors import UsageError

        if args.output is None:
            raise UsageError("--format parquet is binary: give a file with -o FILE")
        check_output(args.output)
        write_parquet(collect_runs(args.runs, args.setting).frame, args.output)
        if not is_stdout(args.output):
            print(f"written: {args.output}", file=sys.stderr)
        return 0
    frame = collect_runs(args.runs, args.setting).frame
    write(as_csv(frame, args.spreadsheet) if args.format == "csv" else as_json(frame), args.output)
    return 0
