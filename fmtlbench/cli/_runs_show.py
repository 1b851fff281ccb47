"""`fmtlbench runs show`: one run in full. Never imports torch."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ..base.words import as_typed
from ._tables import print_records
from .runs import add_run

if TYPE_CHECKING:
    from ..runs.inventory import RunLine
    from ..runs.records import Session, Summary


def add(actions) -> None:
    parser = actions.add_parser("show", help="one run: how it departs from its preset, scores, cost, sessions")
    add_run(parser, "run")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..runs.departures import describe_whole
    from ..runs.find import find_run

    folder = find_run(args.run)
    whole = describe_whole(folder)
    if args.json:
        print(json.dumps(whole.record(), indent=2, ensure_ascii=False))
        return 0
    _print_head(whole.line)
    _print_departures(whole.departures, whole.unknown_because, whole.line.preset)
    if whole.summary is not None:
        _print_scores(whole.summary, folder)
        from ..cost.bill import bill_lines

        print("\n".join(bill_lines(whole.cost or {})))
    _print_sessions(whole.sessions)
    return 0


def _print_head(line: RunLine) -> None:
    from ..base.words import say_bytes

    progress = f"round {line.done} of {line.rounds}" if line.state == "unfinished" else line.state
    known = (line.algorithm, line.scenario, line.preset, line.seed)
    method, scenario, preset, seed = ("?" if value is None else value for value in known)
    print(f"{method} on {scenario} · preset {preset} · seed {seed} · {progress}")
    print(f"folder: {line.folder}")
    kept = f"; networks kept: {line.kept}" if line.kept else ""
    print(f"on disk: {say_bytes(line.bytes)}{kept}")
    if line.problem:
        print(f"damaged: {line.problem}")


def _print_departures(departures: dict[str, tuple[Any, Any]], reason: str | None, preset: str | None) -> None:
    from ..base.errors import one_line, shorten

    if departures:
        rows = [
            {"value": name, preset or "preset": shorten(as_typed(usual)), "run": shorten(as_typed(mine))}
            for name, (usual, mine) in departures.items()
        ]
        print_records(rows, f"departures from preset {preset}")
    elif reason is None:
        print(f"config: as preset {preset} has it")
    if reason is not None:
        print(f"departures from the preset not known: {one_line(reason)}")


def _print_scores(summary: Summary, folder: Any) -> None:
    from ..runs.result import RunResult

    rows = RunResult(folder, summary, reused=True).rows()
    print_records([dict(zip(RunResult.COLUMNS, row)) for row in rows], "scores of the last round")


def _print_sessions(sessions: list[Session]) -> None:
    for number, session in enumerate(sessions, 1):
        versions, hardware = session["versions"], session.get("hardware") or {}
        begun = f"session {number}: {session['started']}, from round {session.get('from_round', 1)}"
        about = ", ".join(f"{name} {versions[name]}" for name in ("fmtlbench", "torch", "python") if name in versions)
        machine = ", ".join(str(hardware[key]) for key in ("processor", "gpu", "system") if hardware.get(key))
        print(" · ".join(filter(None, (begun, about, machine))))
        if session.get("command"):
            print(f"  {session['command']}")
