"""`fmtlbench score`: predictions in files, scored against labels or as a row of leaderboards."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base.errors import UsageError
from . import _score_files, _score_row
from ._parser import refuse_others

EPILOG = """\
Without --name the score is printed (below: "against labels"); with --name, which is what tables shall call the method,
it becomes a row of leaderboards. The files are named and coded as `fmtlbench predict` writes them: by image id, semseg
and human_parts as PNG of class ids, normals as PNG of (n+1)*127.5, sal and edge as PNG of 0..255, depth as NPY in
metres; NPY is taken for all.
Predictions that cannot be right are refused, unless --trust says that they are: depth in millimetres, values below 0,
normals that are codes of 8 bits or of no length, labels of which no pixel is known.
Nothing is skipped: missing, extra, unreadable or wrongly sized files are listed, and there is no score (exit code 1).

"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "score",
        help="score a folder of predictions, against labels or as a row of leaderboards",
        description="Score a folder of predictions: against labels, or with --name as a row of leaderboards.",
        epilog=f"{EPILOG}{_score_files.EPILOG}\n{_score_row.EPILOG}",
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="PREDICTIONS", help="folder of the predictions")
    parser.add_argument("--pred", type=Path, metavar="DIR", help="another way to name that folder")
    parser.add_argument("--dataset", metavar="NAME", help=f"{_score_files.LAYOUTS}; with --name the dataset scored on")
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="id list of the archive (default: val); with --name: default global in a scenario, test on a dataset",
    )
    parser.add_argument("--trust", action="store_true", help="score predictions that look wrong, as in another unit")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="also write the score, and for edge the curve; with --name the folder of the runs (default: runs)",
    )
    files = parser.add_argument_group("against labels")
    _score_files.add_options(files)
    row = parser.add_argument_group("as a row of leaderboards")
    row.add_argument("--name", help="of the method, as tables shall call it")
    _score_row.add_options(row)
    parser.set_defaults(func=main, files=files, row=row)


def main(args: argparse.Namespace) -> int:
    if args.folder is not None and args.pred is not None:
        raise UsageError(f"{args.folder}, --pred {args.pred}: both name the folder of the predictions; give one")
    args.folder = args.folder or args.pred
    if args.name is None:
        refuse_others(args, args.row, "a row of leaderboards: give --name too")
        return _score_files.main(args)
    refuse_others(args, args.files, f"scores against labels, without --name {args.name}")
    return _score_row.main(args)
