"""`fmtlbench cost`: what finished runs cost per round and until a target. Never imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from ._report import add_delta, add_format, add_rows, add_runs, add_setting, emit, keywords

EPILOG = """\
One table per setting: mean power, bytes and time per round, and what it took until Δm, the mean relative change
over columns against the last round of the local run of the same setting and seed (or of --reference), first reached
each target.

examples:
  fmtlbench cost
  fmtlbench cost runs --target -10 --target 0 --format latex -o cost.tex
  fmtlbench cost runs --scenario iid1_sdmt --format json
  fmtlbench cost runs --scenario iid1_sdmt --convention fmtl-bench
  fmtlbench cost runs --over machines.yml --target -10

--over FILE has what rounds would take if every client had a machine and a line of its own: download + compute ×
slowdown + upload + latencies of the client that the server waits for, and the server's step. The file, in YAML:
  default: {up: 10Mbit, down: 50Mbit, latency: 50ms}       # without a rate, a line has no limit
  clients:
    nyud-multi: {speed: 0.25, up: 1Mbit}      # a quarter of the speed of the machine that ran it
Rates: kbit, Mbit, Gbit, kB, MB, GB, per second.
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "cost",
        help="power, bytes, time, energy and CO2e of finished runs, per round and until a target",
        description="What finished runs cost: per round, and until Δm reaches a target.",
        epilog=EPILOG,
    )
    add_runs(parser)
    parser.add_argument(
        "--target",
        type=float,
        action="append",
        metavar="PERCENT",
        help="a Δm to reach, such as -10 or 0; repeatable; default: -30 and -10",
    )
    parser.add_argument("--scenario", metavar="NAME", help="only this scenario")
    add_setting(parser)
    parser.add_argument("--split", default="global", metavar="NAME", help="whose Δm; default: global")
    parser.add_argument(
        "--convention",
        choices=("ours", "fmtl-bench"),
        help="fmtl-bench: units, time and rounds as that paper's Table 8 counts them; default: ours",
    )
    parser.add_argument(
        "--over", type=Path, metavar="FILE", help="time on the machines and lines of this YAML file, by client"
    )
    add_delta(parser)
    add_rows(parser)
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.ask import count_cost
    from ..reports.cost import as_json

    tables, way = count_cost(*args.runs, **keywords(args, count_cost))
    emit(tables, args, lambda: as_json(tables, way.name))
    return 0
