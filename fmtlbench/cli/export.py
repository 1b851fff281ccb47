"""`fmtlbench export`: scores, or the networks of a run, for other programs. Never imports torch for scores."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..base.errors import UsageError
from . import _export_weights
from ._parser import refuse_others
from ._report import add_runs, add_setting, add_spreadsheet, check_style, keywords, write

EPILOG = f"""\
Scores: one row per run, client, split, task and metric, numbers unrounded.

{_export_weights.EPILOG}
examples:
  fmtlbench export > scores.csv
  fmtlbench export runs/st_mt_1 --format parquet -o scores.parquet
  fmtlbench export --weights runs/st_mt_1/fedhca2/nano-synth-s0-1a2b3c4d -o card
  fmtlbench export --weights 1a2b3c4d -o card --client nyud-multi
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "export",
        help="every score of the finished runs as CSV, Parquet or JSON; the networks of a run as safetensors",
        description="Every score of the finished runs as one tidy table, or with --weights the networks of a run.",
        epilog=EPILOG,
    )
    add_runs(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write there instead of to stdout; with --weights a new folder, or an export's",
    )
    parser.add_argument(
        "--weights", action="store_true", help="the networks of RUN (a folder, or a part of a name below ./runs)"
    )
    scores = parser.add_argument_group("without --weights")
    add_setting(scores)
    scores.add_argument("--format", choices=("csv", "parquet", "json"), default="csv", help="default: csv")
    add_spreadsheet(scores)
    weights = parser.add_argument_group("with --weights")
    _export_weights.add_options(weights)
    parser.set_defaults(func=main, scores=scores, networks=weights)


def main(args: argparse.Namespace) -> int:
    if args.weights:
        refuse_others(args, args.scores, "scores, without --weights")
        return _export_weights.main(args)
    refuse_others(args, args.networks, "--weights; give that too")

    from ..base.files import check_output, is_stdout
    from ..reports.ask import frame
    from ..reports.export import as_csv, as_json, write_parquet

    check_style(args)
    if args.format != "parquet":
        found = frame(*args.runs, **keywords(args, frame))
        write(as_csv(found, args.spreadsheet) if args.format == "csv" else as_json(found), args.output)
        return 0
    if args.output is None:
        raise UsageError("--format parquet is binary: give a file with -o FILE")
    check_output(args.output)
    write_parquet(frame(*args.runs, **keywords(args, frame)), args.output)
    if not is_stdout(args.output):
        print(f"written: {args.output}", file=sys.stderr)
    return 0
