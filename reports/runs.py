"""A finished run as reports see it. No pandas here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..runs.folder import DamagedRun, RunFolder
from ..setting import Setting

_REQUIRED = ("algorithm", "scenario", "preset", "data", "seed", "rounds", "clients", "scores")
_KINDS = {
    "algorithm": str, "title": str, "options": dict, "scenario": str, "preset": str, "data": str, "seed": int,
    "rounds": int, "setting": str, "setting_text": dict, "versions": dict, "data_fingerprints": dict, "clients": list,
    "scores": list,
}  # fmt: skip
OF_SCORE = ("client", "split", "task", "metric", "primary", "value")  # what every score has


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
    summary: dict[str, Any]
    label: str = ""  # the method as tables print it
    setting: str = ""  # equal for runs that may be compared
    data_key: str = ""
    version: str | None = None  # of the fmtlbench that made the run
    groups: dict[str, str] = field(default_factory=dict)  # client id → the name it shares with alike ones
    row: tuple[str, ...] = ()  # what heads its row in a table: the label, and what else rows differ in
    table: tuple = ()  # equal for runs of one table

    @property
    def files(self) -> RunFolder:
        return RunFolder(self.folder)

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.yaml; {} where it is lost."""
        try:
            config = self.files.config()
        except UsageError:
            return {}
        return config if isinstance(config, dict) else {}

    @cached_property
    def values(self) -> Setting:
        """The run's setting, value by value; only what the summary tells where its config is lost."""
        return Setting.of(self.config) if self.config else Setting.of_summary(self.summary)

    def rounds(self) -> list[dict[str, Any]]:
        """What every round found; [] where the run does not tell."""
        return self.files.rounds()

    def timing(self) -> list[dict[str, Any]]:
        """What every round took; [] where the run does not tell."""
        return self.files.timing()

    @cached_property
    def cost(self) -> dict[str, Any]:
        """What the run took; {} where it does not tell."""
        return self.files.cost() or {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Where the numbers came from; {} where the run does not tell."""
        return self.files.manifest() or {}


def everybody(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The clients of a run: those that took part, then those that never did."""
    return [*summary["clients"], *(summary.get("unseen") or ())]


def check(folder: Path, summary: dict[str, Any]) -> None:
    missing = [key for key in _REQUIRED if summary.get(key) is None]
    if missing:
        raise DamagedRun(folder, f"summary.json lacks {', '.join(missing)}")
    for key, kind in _KINDS.items():
        if summary.get(key) is not None and not isinstance(summary[key], kind):
            raise DamagedRun(folder, f"summary.json has {key} {summary[key]!r}, expected {kind.__name__}")
    try:
        known = {client["id"] for client in everybody(summary) if client["dataset"] and client["tasks"]}
        scores = list(map(itemgetter(*OF_SCORE), summary["scores"]))
    except (KeyError, TypeError) as error:
        raise DamagedRun(folder, f"summary.json is not a run's summary: {type(error).__name__} {error}") from None
    strange = {score[0] for score in scores} - known
    if strange:
        raise DamagedRun(folder, f"summary.json scores {sorted(strange)}, which are not among its clients")
    if not all(isinstance(s.get("higher_is_better"), bool) for s in summary["scores"] if s["primary"]):
        raise DamagedRun(folder, "summary.json has primary scores without higher_is_better, true or false")
    values = [score[-1] for score in scores]
    if not set(map(type, values)) <= {float, int, type(None)}:
        odd = next(v for v in values if not isinstance(v, (float, int, type(None))))
        raise DamagedRun(folder, f"summary.json has the value {odd!r}, expected a number or null")
