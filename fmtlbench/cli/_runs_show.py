"""`fmtlbench runs show`: one run in full. Never imports torch."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ._tables import as_typed, print_records
from .runs import add_run

if TYPE_CHECKING:
    from ..config.run_config import RunConfig
    from ..runs.folder import RunFolder
    from ..runs.inventory import RunLine
    from ..runs.records import Session, Summary

UNRECORDED = "not recorded"  # a preset's value: a run records only its own where the two differ
Record = TypeVar("Record")


def add(actions) -> None:
    parser = actions.add_parser("show", help="one run: how it departs from its preset, scores, cost, sessions")
    add_run(parser, "run")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..runs.find import find_run
    from ..runs.folder import RunFolder
    from ..runs.inventory import describe_run

    folder = find_run(args.run)
    run, line = RunFolder(folder), describe_run(folder, folder.resolve().name)
    problems = [line.problem] if line.problem else []
    summary, cost, manifest = (_read(read, problems) for read in (run.summary, run.cost, run.manifest))
    departures, unknown_because = _departures(run, summary)
    sessions = manifest["sessions"] if manifest else []
    line = dataclasses.replace(line, problem="; ".join(problems) or None)
    if args.json:
        record = {**vars(line), "folder": str(folder), "departures": departures, "departures_unknown": unknown_because}
        record |= {"scores": summary["scores"] if summary else [], "cost": cost or {}, "sessions": sessions}
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    _print_head(line)
    _print_departures(departures, unknown_because, line.preset)
    if summary is not None:
        _print_scores(summary, folder)
        from ..cost.bill import bill_lines

        print("\n".join(bill_lines(cost or {})))
    _print_sessions(sessions)
    return 0


def _read(read: Callable[[], Record | None], problems: list[str]) -> Record | None:
    """Read a record; None where it is not there, or damaged, which is added to the problems."""
    from ..base.stored import DamagedRun

    try:
        return read()
    except DamagedRun as error:
        if error.reason not in problems:
            problems.append(error.reason)
        return None


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


def _departures(run: RunFolder, summary: Summary | None) -> tuple[dict[str, tuple[Any, Any]], str | None]:
    """Return the values in which a run departs from its preset as that is now: by name, (the preset's, the run's).

    Where the preset or the scenario is a file, they are those that the run recorded, since no file of a user's is
    executed to find out; the preset's own are UNRECORDED then. The second value says why they are not known, if so.
    """
    from ..base.errors import FmtlbenchError

    try:
        config = run.run_config()
    except FmtlbenchError as error:
        return {}, str(error)
    try:
        found = _compare_with_preset(config)
    except FmtlbenchError as error:
        if config.departures is None:
            return {}, str(error)
        found = {path: (UNRECORDED, value) for path, value in config.departures.items()}
    found |= {name: pair for name, pair in _weighting_values(config, summary).items() if pair[0] != pair[1]}
    options, defaults = config.algorithm.options, _default_options(config, summary)
    if defaults is None:
        return found, f"the options of {config.algorithm.name}, which is a file, are not compared"
    own = {f"algo.{name}": (defaults.get(name), value) for name, value in options.items()}
    return found | {name: pair for name, pair in own.items() if pair[0] != pair[1]}, None


def _weighting_values(config: RunConfig, summary: Summary | None) -> dict[str, tuple[Any, Any]]:
    """Return a run's weighting of losses and its options: by name, (what is usual, the run's)."""
    from ..config.presets import default_options, preset_files, read_preset
    from ..config.setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS
    from ..weightings import WEIGHTINGS

    name, options = config.train.weighting, config.train.weighting_options
    usual = EQUAL if name == EQUAL else UNRECORDED
    if config.preset in preset_files():
        usual = (read_preset(config.preset).get("train") or {}).get("weighting", EQUAL)
    told = summary.get("weighting") if summary is not None else None
    defaults = told["default_options"] if told else {}
    if not told and name in WEIGHTINGS:
        defaults = default_options(WEIGHTINGS[name], config.preset, {})
    values = {f"{WEIGHTING_OPTIONS}.{option}": (defaults.get(option), value) for option, value in options.items()}
    return {WEIGHTING: (usual, name), **values}


def _compare_with_preset(config: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return what differs from an installed preset and scenario: by name, (the preset's value, the config's).

    Raises:
        FmtlbenchError: One of them is not installed.
    """
    from ..base.errors import FmtlbenchError
    from ..config.resolve import resolve_without_method
    from ..scenarios import scenario_files

    if config.scenario.name not in scenario_files():
        raise FmtlbenchError(f"its scenario {config.scenario.name} is not an installed one")
    usual = resolve_without_method(config.scenario.name, config.preset, config.seed, config.device)
    differ = config.setting().differences(usual.setting())
    return {path: (theirs, mine) for path, (mine, theirs) in differ.items()}


def _default_options(config: RunConfig, summary: Summary | None) -> dict[str, Any] | None:
    """Return the options of the run's method under its preset; None where nobody knows them without its file."""
    from ..algorithms import ALGORITHMS
    from ..config.presets import default_options

    if summary is not None and (told := summary.get("default_options")) is not None:
        return told
    if config.algorithm.file is not None or config.algorithm.name not in ALGORITHMS:
        return None
    return default_options(ALGORITHMS[config.algorithm.name], config.preset, config.preset_options)


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
