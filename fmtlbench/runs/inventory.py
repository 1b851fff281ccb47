"""Describe the runs of a folder in a line each: who they are, how far they came, what they take. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from ..base.errors import FmtlbenchError, unknown
from ..base.stored import DamagedRun
from ..config.setting import EQUAL, WEIGHTING, flatten
from . import file_names
from .find import locate_runs
from .folder import RunFolder
from .kept import available, kept_in, size_on_disk
from .summary import name_method
from .type_check import find_misfit

FINISHED, UNFINISHED, DAMAGED = STATES = ("finished", "unfinished", "damaged")


class Identity(TypedDict):
    """Who a run is."""

    algorithm: str
    scenario: str
    preset: str
    seed: int
    rounds: int


@dataclass(frozen=True)
class RunLine:
    """One run of a list; of a damaged one only what its files still tell."""

    folder: Path
    name: str  # relative to the path it was found under
    state: str
    changed: float  # when its newest record was written, seconds since 1970
    bytes: int  # on disk
    algorithm: str | None = None  # as --algo takes it: fedavg+uw
    scenario: str | None = None
    preset: str | None = None
    seed: int | None = None
    done: int | None = None  # complete rounds that it can go on from
    rounds: int | None = None
    seconds: float | None = None  # by the clock, for all rounds so far
    kept: str | None = None
    problem: str | None = None  # why it is damaged


def list_runs(paths: Iterable[str | Path]) -> list[RunLine]:
    """Describe every run at or below these paths, sorted by folder."""
    return [describe_run(folder, name) for folder, name in locate_runs(paths)[0]]


# What runs can be sorted by.
SORTS: dict[str, Callable[[RunLine], Any]] = {
    "name": lambda run: run.name,
    "method": lambda run: (run.algorithm or "", run.name),
    "scenario": lambda run: (run.scenario or "", run.name),
    "age": lambda run: -run.changed,
    "time": lambda run: -(run.seconds or 0),
    "size": lambda run: -run.bytes,
}


def choose_runs(
    runs: Iterable[RunLine],
    *,
    algo: str | None = None,
    scenario: str | None = None,
    preset: str | None = None,
    seed: int | None = None,
    state: str = "all",
    sort: str = "name",
) -> list[RunLine]:
    """Return the runs of a method, scenario, preset, seed and state, sorted; refuse what no run has."""
    chosen = list(runs)
    asked = {"algo": ("algorithm", algo), "scenario": ("scenario", scenario), "preset": ("preset", preset)}
    for flag, (field, value) in {**asked, "seed": ("seed", seed)}.items():
        if value is not None:
            known = {str(own) for run in chosen if (own := getattr(run, field)) is not None}
            if str(value) not in known:
                raise unknown(f"run with {flag}", str(value), known, f"--{flag}")
            chosen = [run for run in chosen if getattr(run, field) == value]
    return sorted((run for run in chosen if state in ("all", run.state)), key=SORTS[sort])


def describe_run(folder: Path, name: str) -> RunLine:
    """Describe the run in a folder, damaged or not."""
    run = RunFolder(folder)
    found: dict[str, Any] = {
        "folder": folder,
        "name": name,
        "changed": _last_change(folder),
        "bytes": size_on_disk(folder),
        "state": DAMAGED,
    }
    try:
        summary = run.summary()
        told: Mapping[str, Any] = _identity_of_config(run) if summary is None else summary
        found |= {key: told[key] for key in _IDENTITY} | {"algorithm": name_method(told)}
        kept = kept_in(run)
        if summary is None:
            seconds = sum(sum(row["seconds"].values()) for row in run.timing())
            done = max(available(run.checkpoints), default=0)
            found |= {"state": UNFINISHED, "done": done, "seconds": seconds, "kept": kept}
        else:
            cost = run.cost()
            total = None if cost is None else cost["seconds_total"]
            found |= {"state": FINISHED, "done": summary["rounds"], "seconds": total, "kept": kept}
    except DamagedRun as error:
        found["problem"] = error.reason
    except FmtlbenchError as error:
        found["problem"] = str(error)
    return RunLine(**found)


_IDENTITY = tuple(Identity.__annotations__)


def _identity_of_config(run: RunFolder) -> dict[str, Any]:
    """Return who an unfinished run is."""
    tree = run.config()
    try:
        identity = {
            "algorithm": tree["algorithm"]["name"],
            "scenario": tree["scenario"]["name"],
            "preset": tree["preset"],
            "seed": tree["seed"],
            "rounds": tree["federation"]["rounds"],
        }
    except (KeyError, TypeError):
        raise DamagedRun(run.path, f"{file_names.CONFIG} lacks the method, the scenario or another value") from None
    if wrong := find_misfit(Identity, identity):
        raise DamagedRun(run.path, f"{file_names.CONFIG}: {wrong}")
    weighting = flatten(tree).get(WEIGHTING, EQUAL)
    return {**identity, "weighting": None if weighting == EQUAL else {"name": weighting}}


def _last_change(folder: Path) -> float:
    """Return when a record of the run was last written; now, where it has none any more."""
    written = [file.stat().st_mtime for name in file_names.FILES if (file := folder / name).is_file()]
    return max(written, default=time.time())
