"""Finished runs → one tidy frame: a row per run × client × split × task × metric.

Everything printed about runs is a view of this frame. Only what the folders hold is read; nothing is filled in.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import UsageError
from ..base.stored import DamagedRun
from ..base.words import say_count
from ..config.setting import OWN_FILES, flatten
from ..runs.absence import FAILED, Absence, absent_folder, read_absence
from ..runs.find import locate_runs
from ..runs.folder import RunFolder, everybody
from .labels import Labels, client_groups
from .runs import Problem, RunRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "Collection", "DamagedRun", "RunRecord", "collect", "find_runs"]

_OF_RUN = (
    "run", "algorithm", "label", "scenario", "scenario_version", "preset", "data", "data_key", "setting", "rounds",
    "seed", "device", "config_hash", "version", "code",
)  # fmt: skip
COLUMNS = (
    *_OF_RUN,
    "client", "group", "dataset", "split", "task", "metric", "value", "unit", "higher_is_better", "primary", "trivial",
)  # fmt: skip
_OF_SCORE = ("client", "dataset", "split", "task", "metric", "primary", "value")  # what every score has


@dataclass
class Collection:
    """The frame, the runs it was made of, and the folders that could not be used, each with its reason."""

    frame: pd.DataFrame
    runs: list[RunRecord]
    problems: list[str]
    absences: list[tuple[str, Absence]] = field(default_factory=list)  # label of a method, why it has no run
    heads: tuple[str, ...] = ("Method",)  # what the rows of its tables say of a run
    axes: tuple[str, ...] = ()  # what rows of one table differ in beside the method

    def of_setting(self, start: str) -> Collection:
        """Return the runs of one setting, given as tables print it: the beginning of its hash."""
        runs = [run for run in self.runs if run.setting.startswith(start)]
        settings = sorted({run.setting for run in runs or self.runs})
        if len(settings) != 1 or not runs:
            why = "several settings begin so" if runs else "no run has it; there are"
            raise UsageError(f"--setting {start}: {why}: {', '.join(map(self._told, settings))}")
        mine = self.frame["run"].isin([run.name for run in runs])
        absences = [(label, absence) for label, absence in self.absences if absence.setting == settings[0]]
        return Collection(self.frame[mine].reset_index(drop=True), runs, self.problems, absences)

    def _told(self, setting: str) -> str:
        runs = [run.summary for run in self.runs if run.setting == setting]
        scenario, preset, rounds = (runs[0][key] for key in ("scenario", "preset", "rounds"))
        return f"{setting[:14]} ({scenario}, {preset}, {say_count(rounds, 'round')}, {say_count(len(runs), 'run')})"


def find_runs(paths: Iterable[str | Path] = ("runs",)) -> list[Path]:
    """Run folders, finished or not, among `paths` and at any depth below them; sorted, each once.

    Raises:
        UsageError: A path that does not exist, or has no run in it.
    """
    return [folder for folder, _ in locate_runs(paths)[0]]


def collect(paths: Iterable[str | Path] = ("runs",), reading: Iterable[str] = ()) -> Collection:
    """Read the finished runs; unfinished and damaged ones become `problems`.

    Args:
        paths: Run folders, or folders that hold runs at any depth.
        reading: What the report will read beside the summaries ("rounds", "timing", "cost", "manifest"): a run where
            one of them is damaged is left out too. They are not looked at otherwise: most tables need none of them.
    """
    with _no_garbage():
        return _collect(paths, tuple(reading))


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Switch garbage collection off: looking through thousands of parsed summaries costs as much as parsing them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _collect(paths: Iterable[str | Path], reading: tuple[str, ...]) -> Collection:
    runs, problems = [], []
    folders, files = locate_runs(paths)
    absent = _absent(files, problems)
    for folder, name in folders:
        try:
            summary = RunFolder(folder).summary()
            if summary is None:
                problems += [] if folder in absent else [Problem(folder, "not finished")]
                continue
            absent.pop(folder, None)
            runs.append(RunRecord.read(folder, name, summary, reading))
        except DamagedRun as error:
            problems.append(Problem(folder, error.reason))
    problems += [Problem(f, f"failed: {a.reason}", absence=True) for f, a in absent.items() if a.why == FAILED]
    labels = Labels([*(run.summary for run in runs), *map(vars, absent.values())])
    shapes: dict[tuple, dict[str, str]] = {}
    for run in runs:
        run.label, run.groups = labels.of(run.summary), _groups(run, shapes)
    _tell_apart(runs)
    for run in runs:
        run.row = (run.label,)
    absences = [(labels.of(vars(absence)), absence) for absence in absent.values()]
    return Collection(_frame(runs), runs, problems, absences)


def empty_collection() -> Collection:
    """Return a collection without any run."""
    return Collection(_frame([]), [], [])


def relabel(collection: Collection, labels: Mapping[Path, str]) -> Collection:
    """Return the collection with its runs called by other labels, given by their folders."""
    runs = []
    for run in collection.runs:
        label = labels.get(run.folder.resolve(), run.label)
        runs.append(replace(run, label=label, row=(label, *run.row[1:])))
    named = collection.frame["run"].map({run.name: run.label for run in runs})
    return replace(collection, frame=collection.frame.assign(label=named), runs=runs)


def _absent(files: Iterable[Path], problems: list[str]) -> dict[Path, Absence]:
    """Return why there is no run, by the folder that it would have had, or a name like it."""
    found = {}
    for file in files:
        folder = absent_folder(file)
        try:
            found[folder] = read_absence(file)
        except DamagedRun as error:
            problems.append(Problem(folder, error.reason))
    return found


def _groups(run: RunRecord, shapes: dict[tuple, dict[str, str]]) -> dict[str, str]:
    """Return the groups of a run's clients; `shapes` remembers those of other runs with the same clients."""
    clients, everyone = run.summary["clients"], everybody(run.summary)
    told = [(c["id"], c["dataset"], *c["tasks"], str(c.get("relabel")), str(c.get("label_noise"))) for c in everyone]
    shape = (len(clients), *told)
    if shape not in shapes:  # who is unseen is like nobody that took part
        shapes[shape] = client_groups(clients) | client_groups(everyone[len(clients) :])
    return shapes[shape]


def _tell_apart(runs: list[RunRecord]) -> None:
    """Add to labels what tells two methods of one label, two versions of a user's file, or of our code apart."""
    methods: dict[str, set[str]] = {}
    places: dict[tuple, set[str | None]] = {}
    codes: dict[tuple, set[str]] = {}
    for run in runs:
        s = run.summary
        methods.setdefault(run.label, set()).add(run.method)
        place = (run.method, run.label, run.setting, run.data_key, s["seed"])
        places.setdefault(place, set()).add(s.get("config_hash"))
        codes.setdefault((*place, s.get("config_hash")), set()).add(run.code_key)
    edited = {place[:2] for place, hashes in places.items() if len(hashes) > 1}
    recoded = {place[:2] for place, keys in codes.items() if len(keys) > 1}
    for run in runs:
        label, name = run.label, run.method
        if len(methods[label]) > 1:
            run.label += f" [{name}]"
        if (name, label) in edited:
            config = flatten(run.config)
            sources = [config.get("algorithm.source"), *(config[path] for path in config if path.startswith(OWN_FILES))]
            if told := "+".join(str(source)[:6] for source in sources if source):
                run.label += f" [file {told}]"
        if (name, label) in recoded:
            words = "+".join(key[:6] for key in run.code_key.split("+")) or "not recorded"
            run.label += f" [code {words}]"


def _frame(runs: list[RunRecord]) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    of_run: dict[str, list] = {name: [] for name in _OF_RUN}
    columns: dict[str, Any] = {name: [] for name in COLUMNS[len(_OF_RUN) :]}
    counts = []
    for run in runs:
        s, scores = run.summary, run.summary["scores"]
        values = (
            run.name,
            run.method,
            run.label,
            s["scenario"],
            s.get("scenario_version"),
            s["preset"],
            s["data"],
            run.data_key,
            run.setting,
            s["rounds"],
            s["seed"],
            s.get("device"),
            s.get("config_hash"),
            run.version,
            run.code_key or None,
        )
        for name, value in zip(_OF_RUN, values):
            of_run[name].append(value)
        counts.append(len(scores))
        for name, values in zip(_OF_SCORE, zip(*map(itemgetter(*_OF_SCORE), scores))):
            columns[name] += values
        columns["group"] += map(run.groups.__getitem__, columns["client"][len(columns["group"]) :])
        for name in ("unit", "higher_is_better", "trivial"):
            columns[name] += map(dict.get, scores, repeat(name))
    for name in ("value", "trivial"):
        columns[name] = np.array(columns[name], dtype=float)  # None becomes NaN
    versions = pd.Series(of_run["scenario_version"], dtype=object)  # None among numbers must not make floats of them
    per_run = pd.DataFrame({**of_run, "scenario_version": versions})
    repeated = per_run.take(np.repeat(np.arange(len(runs)), counts)).reset_index(drop=True)
    return pd.concat([repeated, pd.DataFrame(columns)], axis=1)[list(COLUMNS)]
