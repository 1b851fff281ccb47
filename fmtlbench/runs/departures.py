"""One stored run in full, and in what it departs from its preset as that is now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ..algorithms import ALGORITHMS
from ..base.errors import FmtlbenchError
from ..base.stored import DamagedRun
from ..config.presets import default_options, preset_files, read_preset
from ..config.resolve import resolve_without_method
from ..config.run_config import RunConfig
from ..config.setting import EQUAL, WEIGHTING, WEIGHTING_OPTIONS
from ..scenarios import scenario_files
from ..weightings import WEIGHTINGS
from .folder import RunFolder
from .inventory import RunLine, describe_run
from .records import Cost, Session, Summary

UNRECORDED = "not recorded"  # a preset's value: a run records only its own where the two differ
T = TypeVar("T")


@dataclass(frozen=True)
class WholeRun:
    """What is known of a stored run."""

    line: RunLine
    departures: dict[str, tuple[Any, Any]]  # name → (the preset's value, the run's)
    unknown_because: str | None  # why some departures are not known
    summary: Summary | None
    cost: Cost | None
    sessions: list[Session]

    def record(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        scores = self.summary["scores"] if self.summary else []
        told = {"departures": self.departures, "departures_unknown": self.unknown_because, "scores": scores}
        about = {**vars(self.line), "folder": str(self.line.folder)}
        return {**about, **told, "cost": self.cost or {}, "sessions": self.sessions}


def describe_whole(folder: Path) -> WholeRun:
    """Read all records of a run; those that are damaged are missing, and its line says why."""
    run, line = RunFolder(folder), describe_run(folder, folder.resolve().name)
    problems = [line.problem] if line.problem else []

    def read(record: Callable[[], T | None]) -> T | None:
        try:
            return record()
        except DamagedRun as error:
            if error.reason not in problems:
                problems.append(error.reason)
            return None

    summary, cost, manifest = read(run.summary), read(run.cost), read(run.manifest)
    line = replace(line, problem="; ".join(problems) or None)
    departures, unknown = find_departures(run, summary)
    return WholeRun(line, departures, unknown, summary, cost, manifest["sessions"] if manifest else [])


def find_departures(run: RunFolder, summary: Summary | None) -> tuple[dict[str, tuple[Any, Any]], str | None]:
    """Return the values in which a run departs from its preset as that is now: by name, (the preset's, the run's).

    Where the preset or the scenario is a file, they are those that the run recorded, since no file of a user's is
    executed to find out; the preset's own are UNRECORDED then. The second value says why they are not known, if so.
    """
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
    if config.scenario.name not in scenario_files():
        raise FmtlbenchError(f"its scenario {config.scenario.name} is not an installed one")
    usual = resolve_without_method(config.scenario.name, config.preset, config.seed, config.device)
    differ = config.setting().differences(usual.setting())
    return {path: (theirs, mine) for path, (mine, theirs) in differ.items()}


def _default_options(config: RunConfig, summary: Summary | None) -> dict[str, Any] | None:
    """Return the options of the run's method under its preset; None where nobody knows them without its file."""
    if summary is not None and (told := summary.get("default_options")) is not None:
        return told
    if config.algorithm.file is not None or config.algorithm.name not in ALGORITHMS:
        return None
    return default_options(ALGORITHMS[config.algorithm.name], config.preset, config.preset_options)
