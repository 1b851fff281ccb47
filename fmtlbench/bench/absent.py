"""Why a run is absent: a small file beside the place where it would lie, from which tables tell it.

`<scenario>/<method>/<name>.absent.json` says "refused" of a method that makes no sense in a setting, whatever the seed,
or "failed" of one run. One file each, replaced in one step: several benches on one folder do not disturb each other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FmtlbenchError
from ..files import write_json

if TYPE_CHECKING:
    from ..setting import Setting
    from .plan import Plan, PlannedRun

SUFFIX = ".absent.json"
REFUSED, FAILED = "refused", "failed"


@dataclass(frozen=True)
class Absence:
    """One absent run, or all seeds of a refused method; the fields are named as in a run's summary."""

    why: str  # REFUSED or FAILED
    reason: str
    algorithm: str
    title: str
    options: dict[str, Any]
    scenario: str
    preset: str
    data: str
    rounds: int
    setting: str
    seed: int | None = None  # None: every seed

    @classmethod
    def of(
        cls, why: str, reason: str, method: Any, options: Mapping[str, Any], setting: Setting, seed: int | None = None
    ) -> Absence:
        """Of `method` in a setting, for one seed or for all."""
        told = (setting.value(name) for name in ("scenario", "preset", "data", "rounds"))
        return cls(why, reason, method.name, method.title, dict(options), *told, setting.key, seed)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Absence:
        """Read back; keys of a later version are left alone. KeyError or TypeError for what is no such record."""
        values = {f.name: record[f.name] for f in dataclasses.fields(cls)}
        texts = [values[f.name] for f in dataclasses.fields(cls) if f.type == "str"]
        if values["why"] not in (REFUSED, FAILED) or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"{texts}")
        if not isinstance(values["options"], dict):
            raise TypeError(f"options {values['options']!r}")
        return cls(**values)


def refused_file(algorithm: str, options: Mapping[str, Any], setting: Setting) -> Path:
    """Below the output folder; the same for the same method, options and setting, whatever the reason."""
    identity = json.dumps([algorithm, options, setting.key], sort_keys=True)
    data = f"{setting.value('preset')}-{setting.value('data')}"
    leaf = f"{data}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}{SUFFIX}"
    return Path(setting.value("scenario")) / algorithm / leaf


def failed_file(run: PlannedRun) -> Path:
    return run.store.folder.with_name(run.store.folder.name + SUFFIX)


def note_plan(plan: Plan) -> None:
    """Write the refusals; what older files say of runs that are possible or finished by now goes."""
    for file, absence in plan.absences.items():
        _write(plan.out / file, absence)
    for run in plan.runs:
        method = run.config.algorithm
        (plan.out / refused_file(method.name, method.options, run.config.setting())).unlink(missing_ok=True)
        if run.state == "done":
            note_finished(run)


def note_failed(run: PlannedRun, reason: str) -> None:
    """Only a note: a disk that refuses it does not stop the other runs."""
    from ..algorithms import ALGORITHMS

    with contextlib.suppress(OSError, FmtlbenchError):  # the user's file may be gone by now
        method = ALGORITHMS.resolve(run.algo, "--algo")
        config = run.config
        absence = Absence.of(FAILED, reason, method, config.algorithm.options, config.setting(), config.seed)
        _write(failed_file(run), absence)


def note_finished(run: PlannedRun) -> None:
    with contextlib.suppress(OSError):
        failed_file(run).unlink(missing_ok=True)


def _write(path: Path, absence: Absence) -> None:
    record = dataclasses.asdict(absence)
    with contextlib.suppress(OSError, ValueError):
        if json.loads(path.read_bytes()) == record:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, record)
