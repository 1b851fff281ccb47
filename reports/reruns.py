"""Runs that repeat another run: the same method, setting and seed with sums in another order or on another machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..config.roles import roles
from ..config.setting import digest, flatten, identity, is_below
from .collect import Collection, RunRecord
from .settings import MOST_TOLD

UNTOLD = "nothing that was recorded"


@dataclass(frozen=True)
class Rerun:
    """A run made again. `differs` says in words under what other circumstances."""

    run: RunRecord
    again: RunRecord
    differs: str


def set_reruns_aside(collection: Collection) -> tuple[Collection, list[Rerun], list[str]]:
    """Return the collection with each run once, its reruns, and notes on folders that are mere copies.

    Reruns differ from a run in incidental values of the config only, or in nothing of it but the folder. The run is
    the one made under the circumstances (these values, machine, versions, threads, kernels) that most runs were made
    under; among equals the one begun first.
    """
    groups = [members for members in _repeated(collection.runs) if len(members) > 1]
    if not groups:
        return collection, [], []
    places = {run.name: _place(run) for run in sorted(collection.runs, key=_begun)}
    usual = {place: rank for rank, (place, _) in enumerate(Counter(places.values()).most_common())}
    reruns, notes, gone = [], [], set()
    for members in groups:
        run, *others = sorted(members, key=lambda member: (usual[places[member.name]], _begun(member)))
        kept = [run]
        for again in others:
            gone.add(again.name)
            if original := next((other for other in kept if _is_copy(other, again)), None):
                notes.append(f"{again.folder} is a copy of {original.folder}: left out")
            else:
                kept.append(again)
                reruns.append(Rerun(run, again, _difference(run, again)))
    frame = collection.frame[~collection.frame["run"].isin(gone)].reset_index(drop=True)
    runs = [run for run in collection.runs if run.name not in gone]
    return replace(collection, frame=frame, runs=runs), reruns, notes


def _repeated(runs: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Find runs of equal configs apart from what is incidental; only of likely ones is the config read."""
    likely: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        s = run.summary
        likely.setdefault((s["scenario"], run.data_key, s["algorithm"], run.row, s["seed"]), []).append(run)
    groups: dict[Hashable, list[RunRecord]] = {}
    for place, members in likely.items():
        if len(members) > 1:
            for run in members:
                groups.setdefault((place, _essence(run)), []).append(run)
    return list(groups.values())


def _essence(run: RunRecord) -> str:
    """Return the config without what is incidental; where it is lost, only the same config is known to be equal."""
    if not run.config:
        return str(run.summary.get("config_hash") or run.name)
    return digest(
        {path: value for path, value in identity(run.config).items() if not is_below(path, roles().incidental)}
    )


def _is_copy(run: RunRecord, other: RunRecord) -> bool:
    """Whether two runs have the same sessions, begun at the same times, and the same results."""
    return run.manifest == other.manifest and run.summary == other.summary


# -- circumstances -----------------------------------------------------------------------------------------------------


def circumstances(run: RunRecord) -> dict[str, str]:
    """Return what could move the last bits of a sum: incidental values, versions, machine, threads, kernels."""
    chosen = {path: str(value) for path, value in flatten(run.config).items() if is_below(path, roles().incidental)}
    return chosen | _recorded(run)


def _recorded(run: RunRecord) -> dict[str, str]:
    """Return what the manifest says; a run made in several sessions may have several values of one fact."""
    found: dict[str, dict[str, None]] = {}
    for session in _sessions(run):
        for part in ("arithmetic", "hardware", "versions"):
            for name, value in (session.get(part) or {}).items():
                found.setdefault(name, {})[str(value)] = None
    return {name: " then ".join(values) for name, values in found.items()}


def _sessions(run: RunRecord) -> list[dict[str, Any]]:
    return run.manifest.get("sessions") or []


def _begun(run: RunRecord) -> str:
    return next((session.get("started") or "" for session in _sessions(run)), "")


def _place(run: RunRecord) -> tuple:
    """Return a key that is equal for runs made under the same circumstances; the setting holds incidental values."""
    return run.setting, run.data_key, tuple(sorted(_recorded(run).items()))


def _difference(run: RunRecord, again: RunRecord) -> str:
    """Say what differs: `train.threads 2 (was 1)`, or that nothing on record tells the two apart."""
    before, after = circumstances(run), circumstances(again)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if "train.threads" in names and "threads" in names:
        names.remove("threads")  # follows from it
    told = [f"{name} {after.get(name, 'not recorded')} (was {before.get(name, 'not recorded')})" for name in names]
    more = [f"and {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    return ", ".join([*told[:MOST_TOLD], *more]) or UNTOLD
