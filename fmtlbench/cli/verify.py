"""`fmtlbench verify`: check a file of runs that somebody else packed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

EPILOG = """\
Checked are the hashes of all files, the form of every record, that config, summary, manifest and rounds agree, that
this version makes the same of preset and scenario, and that the scores come out of the sums that they were computed
from. Nothing of the file is executed. It cannot be seen whether somebody has trained what the numbers are of: for that,
run one of its configs again (fmtlbench run --config DIR/…/config.yaml).

Exit code 0: all is as it should be. 1: some run, or the file, is refused. 2: wrong usage.

examples:
  fmtlbench verify my-results.zip
  fmtlbench verify my-results.zip -o results/our-group
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "verify",
        help="check a file of runs that `submit` wrote",
        description="Check a file of runs that `fmtlbench submit` wrote, and unpack it on request.",
        epilog=EPILOG,
    )
    parser.add_argument("file", type=Path, metavar="FILE.zip", help="the submission")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="put the runs there if none is refused")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder
    from ..base.words import say_count
    from ..submissions.archive import REFUSED, list_verdicts, verify
    from ._tables import print_records

    if args.output is not None:
        check_folder(args.output)
    contents, found = verify(args.file, args.output)
    rows = list_verdicts(found)
    refused = sum(row["verdict"] == REFUSED for row in rows)
    if args.format == "json":
        told = {"file": str(args.file), "by": contents["by"], "fmtlbench": contents["fmtlbench"], "refused": refused}
        print(json.dumps({**told, "runs": rows}, indent=2, ensure_ascii=False))
    else:
        by = f" by {contents['by']}" if contents["by"] else ""
        print_records(rows, f"{args.file}: {say_count(len(found), 'run')}{by}, {refused} refused")
    if args.output is not None:
        done = "nothing was unpacked" if refused else f"unpacked below {args.output}"
        print(f"{args.file}: {done}", file=sys.stderr)
    return 1 if refused else 0
