"""`fmtlbench time`: how long rounds of finished runs would take on other machines and lines. Never imports torch."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ._report import add_delta, add_format, add_rows, add_runs, add_setting, asked_delta, emit, every_run, merged

if TYPE_CHECKING:
    from ..reports.time_model import TimeModel

EPILOG = """\
A model over what the runs measured: bytes by client, and seconds that each client worked on the machine that ran it.
Every client has a machine and a line of its own and rounds are synchronous, so a round takes as long as the client
that the server waits for: download + compute × slowdown + upload + latencies, and the server's step.
Rates: kbit, Mbit, Gbit, kB, MB, GB, per second. Without --up and --down lines have no limit.

--clients FILE says the same by client, in YAML; flags take the place of what it says:
  default: {up: 10Mbit, down: 50Mbit, latency: 50ms}
  clients:
    nyud-multi: {speed: 0.25, up: 1Mbit}      # a quarter of the speed of the machine that ran it

examples:
  fmtlbench time --up 10Mbit --down 50Mbit --latency 50ms
  fmtlbench time runs --up 10Mbit --down 50Mbit --compute 5 --slow nyud-multi=4 --target depth=0.9
  fmtlbench time runs --clients phones.yml --target delta-m=-10 --target delta-m=0 --format latex -o time.tex
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "time",
        help="how long rounds would take over slow networks and on slow clients, and until a target",
        description="How long the rounds of finished runs would take on other machines and lines: modelled time.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    parser.add_argument("--up", metavar="RATE", help="what a client sends at, such as 10Mbit or 1.25MB per second")
    parser.add_argument("--down", metavar="RATE", help="what a client is sent at")
    parser.add_argument("--latency", metavar="TIME", help="of a message, each way, such as 50ms; default: 0ms")
    parser.add_argument(
        "--compute",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="every client needs so many seconds for one of the machine that ran it; default: 1",
    )
    parser.add_argument(
        "--slow",
        action="append",
        default=[],
        metavar="CLIENT=FACTOR",
        help="this client needs so many times longer, on top of --compute; repeatable",
    )
    parser.add_argument(
        "--bandwidth",
        action="append",
        default=[],
        metavar="CLIENT=RATE",
        help="of this client, in both directions, or UP,DOWN; repeatable",
    )
    parser.add_argument("--clients", type=Path, metavar="FILE", help="YAML with speed, up, down and latency by client")
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="SCORE=VALUE",
        help="how long until a task's score (depth=0.9, nyud/semseg=30) or Δm in percent (delta-m=-10); repeatable",
    )
    parser.add_argument("--scenario", metavar="NAME", help="only this scenario")
    add_setting(parser)
    parser.add_argument("--split", default="global", metavar="NAME", help="whose scores; default: global")
    add_delta(parser)
    add_rows(parser)
    add_format(parser)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..reports.time_tables import parse_target, time_tables

    model, targets = asked_model(args), [parse_target(text) for text in args.target]
    runs, chosen = every_run(args, ("rounds", "timing"))
    delta = asked_delta(args, runs)
    emit(time_tables(merged(args, chosen), model, targets, args.scenario, args.split, delta), args)
    return 0


def asked_model(args: argparse.Namespace) -> TimeModel:
    """Return the model that the flags and the file of --clients ask for."""
    from ..reports.time_model import GivenProfile, make_model

    default = GivenProfile(up=args.up, down=args.down, latency=args.latency)
    slow = {client: _read_factor(text, f"--slow {client}") for client, text in _pairs(args.slow, "--slow", "4")}
    lines = {client: _read_line(text, client) for client, text in _pairs(args.bandwidth, "--bandwidth", "1Mbit,5Mbit")}
    return make_model(args.clients, default, slow, lines, _read_factor(args.compute, "--compute"))


def _pairs(given: Sequence[str], flag: str, example: str) -> Iterator[tuple[str, str]]:
    """Yield (client, value) of CLIENT=VALUE; refuse a client that is given twice."""
    seen = set()
    for text in given:
        client, equals, value = (word.strip() for word in text.rpartition("="))
        if not (client and equals and value):
            raise UsageError(f"{flag} {text}: expected CLIENT=VALUE, such as nyud-multi={example}")
        if client in seen:
            raise UsageError(f"{flag} {text}: {client} is given twice")
        seen.add(client)
        yield client, value


def _read_factor(given: str | float, where: str) -> float:
    try:
        factor = float(given)
    except ValueError:
        factor = math.nan
    if not (math.isfinite(factor) and factor > 0):
        raise UsageError(f"{where} {given}: expected a number above 0; 2 needs twice the time")
    return factor


def _read_line(text: str, client: str) -> tuple[str, str]:
    """Return the rates up and down: of one rate, twice the same."""
    up, *down = text.split(",")
    if len(down) > 1:
        raise UsageError(f"--bandwidth {client}={text}: expected one rate, or two with a comma between: up, down")
    return up, down[0] if down else up
