"""`fmtlbench submit`: finished runs as one file that others can check."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ._report import add_runs

EPILOG = """\
Every run is checked first, as `fmtlbench verify` does; one that would be refused is named, and nothing is written.
Packed are configs, scores, what these were computed from, costs, and the file of a method of your own; no networks and
no images.

examples:
  fmtlbench submit runs -o my-results.zip --by "Our group"
  fmtlbench submit runs/st_mt_1/fedavg runs/st_mt_1/local -o fedavg.zip
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "submit",
        help="finished runs as one file that others can check",
        description="Pack finished runs into one file that others can check.",
        epilog=EPILOG,
    )
    add_runs(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.zip", help="the file to write")
    parser.add_argument("--by", metavar="NAME", help="who made the runs")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_output
    from ..base.words import say_bytes, say_count
    from ..submissions.archive import pack

    check_output(args.output)
    runs = pack(args.runs, args.output, args.by)
    for run in runs:
        for note in run.notes:
            print(f"{run.folder}: {note}", file=sys.stderr)
    size = f", {say_bytes(args.output.stat().st_size)}" if args.output.is_file() else ""  # a stream has none
    print(f"written: {args.output}: {say_count(len(runs), 'run')}{size}", file=sys.stderr)
    return 0
