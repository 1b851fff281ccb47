"""Run folders: finding them, and reading the files of one. No pandas here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..bench.absent import SUFFIX
from ..errors import FmtlbenchError, UsageError
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


class DamagedRun(FmtlbenchError):
    """A file of a run folder that cannot be read as what it should be."""


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

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.yaml; {} where it is lost."""
        from ..yamlfile import load_yaml

        try:
            config = load_yaml(self.folder / "config.yaml")[0]
        except UsageError:
            return {}
        return config if isinstance(config, dict) else {}

    @cached_property
    def values(self) -> Setting:
        """The run's setting, value by value; only what the summary tells where config.yaml is lost."""
        return Setting.of(self.config) if self.config else Setting.of_summary(self.summary)

    def rows(self, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
        """The complete lines of a .jsonl file; [] where the run has none."""
        try:
            lines = (self.folder / name).read_bytes().split(b"\n")[:-1]
            return [json.loads(line) for line in lines]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise DamagedRun(f"{self.folder / name} cannot be read: {error}") from None

    @cached_property
    def cost(self) -> dict[str, Any]:
        """cost.json; {} where the run has none."""
        return read_json(self.folder / "cost.json") or {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """manifest.json; {} where the run has none."""
        return read_json(self.folder / "manifest.json") or {}


def located(paths: Iterable[str | Path]) -> tuple[list[tuple[Path, str]], list[Path]]:
    """Runs as (folder, name relative to the path it was found under), and files of absent ones; both sorted.

    A name found twice gets its root.
    """
    found: dict[str, tuple[str, str]] = {}
    names: dict[str, str] = {}
    absent: dict[str, str] = {}
    for root in map(Path, paths):
        if not root.is_dir():
            raise UsageError(f"{root}: {'not a folder' if root.exists() else 'no such folder'}; expected runs in it")
        real_root = str(root.resolve())  # the walk follows no links, so what lies below needs no resolving
        notes: list[str] = []
        below = list(_walk(str(root), notes))
        absent |= {f"{real_root}{file[len(str(root)) :]}": file for file in notes}
        if not below and not notes:
            raise UsageError(f"{root}: no run in it or below it; `fmtlbench run` keeps its runs in ./runs unless told")
        for folder in below:  # as text: thousands of path objects would cost as much as reading the summaries
            relative = folder[len(str(root)) :].lstrip(os.sep)
            real = f"{real_root}{os.sep}{relative}".rstrip(os.sep)
            if real in found:
                continue
            name = relative.replace(os.sep, "/") or real_root.rpartition(os.sep)[2]
            if names.setdefault(name, real) != real:
                name = folder.replace(os.sep, "/")
            found[real] = (folder, name)
    return [(Path(folder), name) for folder, name in sorted(found.values())], sorted(map(Path, absent.values()))


def _walk(root: str, absent: list[str]) -> Iterable[str]:
    for here, folders, files in os.walk(root):
        if _is_run(files):
            folders.clear()  # what a run keeps inside is its own
            yield here
        else:
            folders[:] = sorted(f for f in folders if not f.startswith("."))
            absent += [f"{here}{os.sep}{f}" for f in files if f.endswith(SUFFIX) and not f.startswith(".")]


def _is_run(files: list[str]) -> bool:
    return "summary.json" in files or ("config.yaml" in files and (".lock" in files or "manifest.json" in files))


def read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DamagedRun(f"{path.name} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise DamagedRun(f"{path.name} holds {type(value).__name__}, expected an object")
    return value


def everybody(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The clients of a run: those that took part, then those that never did."""
    return [*summary["clients"], *(summary.get("unseen") or ())]


def check(summary: dict[str, Any]) -> None:
    missing = [key for key in _REQUIRED if summary.get(key) is None]
    if missing:
        raise DamagedRun(f"summary.json lacks {', '.join(missing)}")
    for key, kind in _KINDS.items():
        if summary.get(key) is not None and not isinstance(summary[key], kind):
            raise DamagedRun(f"summary.json has {key} {summary[key]!r}, expected {kind.__name__}")
    try:
        known = {client["id"] for client in everybody(summary) if client["dataset"] and client["tasks"]}
        scores = list(map(itemgetter(*OF_SCORE), summary["scores"]))
    except (KeyError, TypeError) as error:
        raise DamagedRun(f"summary.json is not a run's summary: {type(error).__name__} {error}") from None
    strange = {score[0] for score in scores} - known
    if strange:
        raise DamagedRun(f"summary.json scores {sorted(strange)}, which are not among its clients")
    if not all(isinstance(s.get("higher_is_better"), bool) for s in summary["scores"] if s["primary"]):
        raise DamagedRun("summary.json has primary scores without higher_is_better, true or false")
    values = [score[-1] for score in scores]
    if not set(map(type, values)) <= {float, int, type(None)}:
        odd = next(v for v in values if not isinstance(v, (float, int, type(None))))
        raise DamagedRun(f"summary.json has the value {odd!r}, expected a number or null")
