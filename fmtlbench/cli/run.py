"""`fmtlbench run`: train one algorithm on one scenario."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from ..config.request import RunRequest
from ._request import add_choice, add_circumstances, add_executor, add_ray_address, request_from

EXAMPLES = """examples:
  fmtlbench run --algo fedhca2 --scenario st_mt_1
  fmtlbench run --algo fedavg --scenario st_mt_2 --seed 1 --rounds 10
  fmtlbench run --algo fedhca2 --scenario st_mt_1 --set algo.c=0.2 --set train.lr=5e-4
  fmtlbench run --algo fedavg+uw --scenario mt_mt
  fmtlbench run --algo ./my_method.py --scenario ./my_scenario.yml
  fmtlbench run --config run.yaml --seed 1
  fmtlbench run --config runs/st_mt_1/fedavg/nano-synth-s0-0123abcd/config.yaml --out again

The run lies in OUT/<scenario>/<algorithm>/<preset>-<data>-s<seed>-<hash>. The same command again goes on with an
unfinished run, and shows a finished one instead of repeating it. After an edit of code that makes numbers, the run is
another one, in a folder of its own beside the old one.
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "run",
        help="train one algorithm on one scenario",
        description="Train one algorithm on one scenario, score it, and keep everything in a run folder.",
        epilog=EXAMPLES,
    )
    add_choice(parser)
    parser.add_argument("--fresh", action="store_true", help="start over, discarding what this run left before")
    parser.add_argument("--save-predictions", action="store_true", help="keep the last round's predictions as images")
    add_circumstances(parser)
    add_executor(parser)
    add_ray_address(parser)
    parser.add_argument(
        "--format",
        choices=("auto", "table", "tsv", "json"),
        default="auto",
        help="how to print the result; auto: table on a terminal, tab-separated elsewhere",
    )
    # A flag that is not given leaves the value to the file of --config, else to the request's own default.
    parser.set_defaults(func=main, **dict.fromkeys(f.name for f in dataclasses.fields(RunRequest)))


def main(args: argparse.Namespace) -> int:
    request = request_from(args)

    from ..api import launch
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines
    from ._result import print_result

    terminal = sys.stdout.isatty()
    choice = args.format if args.format != "auto" else ("table" if terminal else "tsv")
    progress = Bars(shows_bill=choice != "table") if terminal else JsonLines()  # the table shows it itself
    result = launch(request, progress)
    if choice != "table":  # the table says so itself
        said = "finished before, shown again (--fresh repeats it)" if result.reused else "done"
        progress.note(f"{said}: {result.folder}")
    print_result(result, choice)
    return 0
