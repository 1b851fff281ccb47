"""A finished run as reports see it. No pandas here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..base.errors import UsageError
from ..base.stored import DamagedRun
from ..config.setting import Setting
from ..runs.code_identity import OF_METHOD
from ..runs.folder import RunFolder
from ..runs.recorded_code import code_as_today
from ..runs.records import Cost, Manifest, RoundRow, Summary, SummaryCode, TimingRow, Tuning
from ..runs.summary import name_method


class Problem(str):
    """Why a folder could not be used, as text; it remembers which scenario the folder belongs to."""

    scenario: str
    absence: bool  # tables tell it from the `Absence`, which knows the setting too

    def __new__(cls, folder: Path, reason: str, absence: bool = False) -> Problem:
        problem = super().__new__(cls, f"{folder}: {reason}")
        problem.scenario = folder.parent.parent.name  # <scenario>/<method>/<run>
        problem.absence = absence
        return problem


@dataclass
class RunRecord:
    """One finished run: its summary, and the other files when asked for."""

    folder: Path
    name: str  # the folder, relative to where it was found
    summary: Summary
    tuning: Tuning | None = None  # how its config was chosen, if a bench tuned it
    label: str = ""  # the method as tables print it
    row: tuple[str, ...] = ()  # what heads its row in a table: the label, and what else rows differ in
    groups: dict[str, str] = field(default_factory=dict)  # client id → the name it shares with alike ones
    merged: tuple = ()  # equal for runs of one table where tables hold several settings

    @classmethod
    def read(cls, folder: Path, name: str, summary: Summary, reading: Iterable[str] = ()) -> RunRecord:
        """Make the record of a run, and look at the files that will be read of it.

        Raises:
            DamagedRun: One of its files cannot be read.
        """
        run = cls(folder, name, summary, RunFolder(folder).tuning())
        for told in ("version", "setting"):  # by other files where the summary does not tell
            getattr(run, told)
        for file in reading:
            getattr(run.files, file)()
        return run

    @property
    def table(self) -> tuple:
        """Return what all runs of a table have in common."""
        if self.merged:
            return self.merged
        s = self.summary
        rounds = f"{s['rounds']:09}"  # so that text sorts as numbers do
        return s["scenario"], s.get("scenario_version"), s["preset"], s["data"], rounds, self.data_key, self.setting

    @cached_property
    def setting(self) -> str:
        """Return what runs must agree in to share a table: the setting's hash; of tuned runs, without what was tried.

        For summaries without one: what the config says, and what must agree where that is lost.
        """
        told = self.summary.get("setting")
        if told:
            return told if self.tuning is None else self.values.key
        agree = {**self.values.values, "data_fingerprints": self.summary.get("data_fingerprints")}
        return "older-" + _short_hash(agree)

    @cached_property
    def data_key(self) -> str:
        """Return a short hash of the data's fingerprints; "" where the summary names none."""
        fingerprints = self.summary.get("data_fingerprints")
        return _key_of(tuple((name, str(fingerprints[name])) for name in sorted(fingerprints))) if fingerprints else ""

    @cached_property
    def version(self) -> str | None:
        """Return the version of fmtlbench that made the run; older summaries leave it to the manifest."""
        versions = self.summary.get("versions")
        if versions is None:
            sessions = self.manifest.get("sessions") or [{}]
            versions = sessions[-1].get("versions") or {}
        return versions.get("fmtlbench")

    @property
    def method(self) -> str:
        """Return the method as `--algo` takes it, with its weighting: `fedavg+uw`."""
        return name_method(self.summary)

    @property
    def code(self) -> SummaryCode | None:
        """Return which code made the run, as the one that took its place; None: not recorded."""
        code = self.summary.get("code")
        return code and code_as_today(code)

    @property
    def code_key(self) -> str:
        """Return the sha256 of the code that made the run; of several, all of them; "" where none is recorded."""
        code = self.code
        if code is None:
            return ""
        earlier = [one["sha256"] if one else "unknown" for one in code.get("earlier") or ()]
        return "+".join([*earlier, code["sha256"]])

    @property
    def shared_code(self) -> tuple[tuple[str, str], ...]:
        """Return the parts of the code that are not the method's own: name and sha256 each; (): not recorded."""
        parts = self.code["parts"] if self.code is not None else {}
        return tuple((part, parts[part]) for part in sorted(parts) if part not in OF_METHOD)

    @property
    def files(self) -> RunFolder:
        return RunFolder(self.folder)

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return the config as nested plain values; {} where it is lost or cannot be read."""
        try:
            config = self.files.config()
        except (UsageError, DamagedRun):
            return {}
        return config if isinstance(config, dict) else {}

    @cached_property
    def values(self) -> Setting:
        """Return the run's setting, value by value; only what the summary tells where its config is lost.

        Runs of one tuning have one setting: in place of the values that were tried it has the tuning.
        """
        own = Setting.of(self.config) if self.config else Setting.of_summary(self.summary)
        if self.tuning is None:
            return own
        return Setting({**own.apart_from(self.tuning["keys"]).values, "tuning": self.tuning["tuning"]})

    def rounds(self) -> list[RoundRow]:
        """Return what every round found; [] where the run does not tell."""
        return self.files.rounds()

    def timing(self) -> list[TimingRow]:
        """Return what every round took; [] where the run does not tell."""
        return self.files.timing()

    @cached_property
    def cost(self) -> Cost | dict[str, Any]:
        """Return what the run took; {} where it does not tell."""
        return self.files.cost() or {}

    @cached_property
    def manifest(self) -> Manifest | dict[str, Any]:
        """Return where the numbers came from; {} where the run does not tell."""
        return self.files.manifest() or {}


def _short_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


@lru_cache(maxsize=256)  # most runs of a collection have the same data
def _key_of(fingerprints: tuple[tuple[str, str], ...]) -> str:
    return _short_hash(dict(fingerprints))[:8]
