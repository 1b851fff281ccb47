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

from ..base.files import write_json
from ..base.stored import DamagedRun
from .file_names import ABSENT
from .folder import read_record, with_format
from .records import WeightingRecord

if TYPE_CHECKING:
    from ..algorithms import Algorithm
    from ..config.setting import Setting

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
    seed: int | None  # None: every seed
    default_options: dict[str, Any] | None = None  # of the method under the preset; None: not recorded
    weighting: WeightingRecord | None = None  # None: equal

    @classmethod
    def of(
        cls,
        why: str,
        reason: str,
        method: type[Algorithm],
        options: Mapping[str, Any],
        setting: Setting,
        seed: int | None = None,
        default_options: Mapping[str, Any] | None = None,
        weighting: WeightingRecord | None = None,
    ) -> Absence:
        """Make the absence of `method` in a setting, for one seed or for all."""
        return cls(
            why,
            reason,
            algorithm=method.name,
            title=method.title,
            options=dict(options),
            scenario=setting.value("scenario"),
            preset=setting.value("preset"),
            data=setting.value("data"),
            rounds=setting.value("rounds"),
            setting=setting.key,
            seed=seed,
            default_options=None if default_options is None else dict(default_options),
            weighting=weighting,
        )


def refused_file(
    algorithm: str, options: Mapping[str, Any], setting: Setting, weighting: WeightingRecord | None = None
) -> Path:
    """Name the file of a refusal, below the output folder: by method, options and setting, whatever the reason."""
    chosen = [weighting["name"], weighting["options"]] if weighting else []
    identity = json.dumps([algorithm, options, setting.key, *chosen], sort_keys=True)
    data = f"{setting.value('preset')}-{setting.value('data')}"
    leaf = f"{data}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}{ABSENT}"
    return Path(setting.value("scenario")) / algorithm / leaf


def failed_file(folder: Path) -> Path:
    """Name the file that says why the run of this folder failed."""
    return folder.with_name(folder.name + ABSENT)


def absent_folder(file: Path) -> Path:
    """Name the folder that an absent run would have; of a refused method, one named like its file."""
    return file.with_name(file.name.removesuffix(ABSENT))


def read_absence(file: Path) -> Absence:
    """Read the file of an absent run; keys of a later version are left alone."""
    record: Any = read_record(file, Absence, whole=True)  # checked as one, but still as the file has it
    if record is None:
        raise DamagedRun(file.parent, f"{file.name} is not there any more")
    if record["why"] not in (REFUSED, FAILED):
        raise DamagedRun(file.parent, f"{file.name}: why: expected {REFUSED} or {FAILED}, got {record['why']!r}")
    values: dict[str, Any] = {field.name: record.get(field.name) for field in dataclasses.fields(Absence)}
    return Absence(**values)


def write_absence(file: Path, absence: Absence) -> None:
    """Write the file unless it says the same already."""
    record = with_format(dataclasses.asdict(absence))
    with contextlib.suppress(OSError, ValueError):
        if json.loads(file.read_bytes()) == record:
            return
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, record)
