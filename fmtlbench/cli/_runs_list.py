"""`fmtlbench runs list`: a line per run. Never imports torch."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._tables import print_records

if TYPE_CHECKING:
    from ..runs.inventory import RunLine

EPILOG = """\
A table on a terminal, tab-separated elsewhere (seconds, bytes and points in time as numbers then). `kept` is what is
left of the networks: those of the last round or checkpoint, or none.

examples:
  fmtlbench runs
  fmtlbench runs list runs/st_mt_1 --algo fedhca2 --sort size
  fmtlbench runs --state unfinished
"""
# What programs read, whether there are runs or not.
COLUMNS = ("name", "method", "scenario", "preset", "seed", "state", "changed", "seconds", "bytes", "kept")


def add(actions) -> None:
    from ..runs.inventory import SORTS, STATES

    parser = actions.add_parser(
        "list",
        help="a line per run; what `fmtlbench runs` alone does",
        epilog=EPILOG,
    )
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", default=[Path("runs")], help="folders of runs; default: runs"
    )
    parser.add_argument("--algo", metavar="NAME", help="only runs of this method")
    parser.add_argument("--scenario", metavar="NAME", help="only runs on this scenario")
    parser.add_argument("--preset", metavar="NAME", help="only runs of this preset")
    parser.add_argument("--seed", type=int, help="only runs with this seed")
    parser.add_argument("--state", choices=(*STATES, "all"), default="all", help="default: all")
    parser.add_argument("--sort", choices=SORTS, default="name", help="age: newest first; time, size: most first")
    parser.add_argument(
        "--format", choices=("auto", "json"), default="auto", help="auto: table on a terminal, tab-separated elsewhere"
    )
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..runs.inventory import choose_runs, list_runs

    names = ("algo", "scenario", "preset", "seed", "state", "sort")
    runs = choose_runs(list_runs(args.paths), **{name: getattr(args, name) for name in names})
    if args.format == "json":
        print(json.dumps([_as_json(run) for run in runs], indent=2, ensure_ascii=False))
        return 0
    terminal = sys.stdout.isatty()
    print_records([_for_people(run) if terminal else _for_programs(run) for run in runs], columns=COLUMNS)
    if terminal:
        from ..base.words import say_bytes, say_count

        print(f"{say_count(len(runs), 'run')}, {say_bytes(sum(run.bytes for run in runs))}")
    return 0


def _as_json(run: RunLine) -> dict[str, Any]:
    return {**dataclasses.asdict(run), "folder": str(run.folder), "changed": _moment(run)}


def _for_people(run: RunLine) -> dict[str, Any]:
    from ..base.words import say_bytes, say_duration

    record = {**_identity(run), "state": _progress(run), "age": say_duration(max(0.0, time.time() - run.changed))}
    record["time"] = "" if run.seconds is None else say_duration(run.seconds)
    return {**record, "size": say_bytes(run.bytes), "kept": run.kept or run.problem or ""}


def _for_programs(run: RunLine) -> dict[str, Any]:
    seconds = "" if run.seconds is None else round(run.seconds, 1)
    record = {**_identity(run), "state": _progress(run), "changed": _moment(run), "seconds": seconds}
    return {**record, "bytes": run.bytes, "kept": run.kept or run.problem or ""}


def _identity(run: RunLine) -> dict[str, Any]:
    seed = "" if run.seed is None else run.seed
    method, scenario, preset = (value or "" for value in (run.algorithm, run.scenario, run.preset))
    return {"name": run.name, "method": method, "scenario": scenario, "preset": preset, "seed": seed}


def _progress(run: RunLine) -> str:
    return f"round {run.done}/{run.rounds}" if run.state == "unfinished" else run.state


def _moment(run: RunLine) -> str:
    return datetime.fromtimestamp(run.changed, timezone.utc).isoformat(timespec="seconds")
