"""Check one run: is every file what it should be, does one follow from the other, do the scores come out again?

None of the run's own code is executed. A method or a weighting in a file of its author's decides how networks are
trained, not how they are scored, so its runs can be checked without it; whatever decides scores must be installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..algorithms import ALGORITHMS
from ..base.errors import FmtlbenchError, unknown
from ..config.presets import default_options
from ..config.resolve import find_departures, resolve_stored, resolve_without_method
from ..config.run_config import RunConfig
from ..config.setting import EQUAL
from ..runs.folder import RunFolder, everybody
from ..runs.records import RoundRow, Score, Summary
from ..runs.summary import describe_setting
from ..runs.sums_file import read_sums
from ..scenarios import scenario_files
from .rescoring import SubmissionError, find_difference, rescore

WEIGHTING = "weighting "  # how entries of `plugins` begin that only training asks


@dataclass(frozen=True)
class OwnFile:
    """A file of the author's that a run was trained by."""

    path: Path  # where it lay
    name: str  # below the folder of the run's code
    sha256: str


@dataclass
class Checked:
    """A run that holds what it promises, and what was found on the way."""

    folder: Path
    summary: Summary
    config: RunConfig
    own: list[OwnFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_run(folder: Path) -> Checked:
    """Check a finished run.

    Raises:
        SubmissionError: Something in it is missing, damaged, or contradicts something else; the first such thing.
    """
    run = RunFolder(folder)
    summary = _read(folder, run.summary)
    if summary is None:
        raise SubmissionError(f"{folder}: not finished: no summary.json")
    if not run.has_config():
        raise SubmissionError(f"{folder}: no config.yaml, so nobody could repeat it")
    config = _read(folder, run.run_config)
    checked = Checked(folder, summary, config)
    try:
        checked.own = list_own_files(config)
        _check_config(run, checked)
        _check_clients(checked)
        if summary.get("external") is None:
            _check_rounds(run, checked)
        else:
            checked.notes.append("external predictions: not trained by fmtlbench, so there are no rounds to check")
        _check_scores(run, checked)
    except FmtlbenchError as error:
        raise SubmissionError(f"{folder}: {error}") from None
    return checked


def list_own_files(config: RunConfig) -> list[OwnFile]:
    """List the files of the author's that a run was trained by.

    Raises:
        SubmissionError: A file of the author's decides scores or networks.
    """
    deciding = [entry for entry in config.plugins if not entry.startswith(WEIGHTING)]
    deciding += [f"dataset {name}" for name in config.data.files or ()]
    if config.model.code.source is not None:
        deciding.append(f"network {config.model.architecture}")
    if config.scenario.datasets:
        deciding += [f"dataset of the scenario, {name}" for name in config.scenario.datasets]
    if deciding:
        raise SubmissionError(
            f"{', '.join(sorted(set(deciding)))}: from a file; what decides scores or networks must be installed, so "
            "that whoever checks has it too (docs/add-your-own.md, entry points)"
        )
    files = []
    method = config.algorithm
    if method.source is not None and method.file is not None:
        path = Path(method.file)
        files.append(OwnFile(path, path.name, method.source))
        files += [OwnFile(path.parent / name, name, sha256) for name, sha256 in method.helpers.items()]
    for entry, sha256 in config.plugins.items():
        path = Path(config.plugin_files[entry])
        files.append(OwnFile(path, path.name, sha256))
    return files


def _check_config(run: RunFolder, checked: Checked) -> None:
    """Is the config the summary's and the manifest's, and does this version make the same of preset and scenario?"""
    config, summary = checked.config, checked.summary
    told = {"algorithm": config.algorithm.name, "options": config.algorithm.options, **describe_setting(config)}
    for key, expected in told.items():
        if (given := _plain(summary.get(key))) != _plain(expected):
            raise SubmissionError(
                f"summary.json: {key} is {given!r:.80}, but config.yaml says {_plain(expected)!r:.80}"
            )
    manifest = run.manifest()
    if manifest is not None and manifest["config_hash"] != config.hash():
        raise SubmissionError("manifest.json is of another config than config.yaml")
    if manifest is None and summary.get("external") is None:
        raise SubmissionError("no manifest.json, so nobody knows where the numbers came from")
    _check_scenario(checked)
    _check_labels(checked)
    departures = find_departures(config)
    if departures is None:
        checked.notes.append(f"preset {config.preset} is not this version's: what differs from it cannot be told")
    elif _plain(departures) != _plain(config.departures):
        raise SubmissionError(
            f"config.yaml: departures from preset {config.preset} are {_plain(config.departures)!r:.120}, "
            f"but the values differ from it in {_plain(departures)!r:.120}"
        )
    if summary.get("external") is not None:
        return
    if checked.own:
        names = ", ".join(file.name for file in checked.own)
        checked.notes.append(f"trained by code of its author's, to be read: {names}")
    else:
        resolve_stored(run.config())


def _check_labels(checked: Checked) -> None:
    """Does the run call itself, in tables, what it is?"""
    config, summary = checked.config, checked.summary
    name, title, method = config.algorithm.name, summary.get("title"), ALGORITHMS.get(config.algorithm.name)
    own = checked.own or summary.get("external") is not None
    if own and (method is not None or title in [known.title for known in ALGORITHMS.values()]):
        raise SubmissionError(f"summary.json: {name} ({title}): a method of the zoo has this name or title")
    if not own:
        if method is None:
            raise unknown("algorithm", name, ALGORITHMS, "config.yaml: algorithm.name")
        expected = {
            "title": method.title,
            "default_options": default_options(method, config.preset, config.preset_options),
        }
        for key, value in expected.items():
            if _plain(summary.get(key)) != _plain(value):
                raise SubmissionError(f"summary.json: {key} is {summary.get(key)!r:.80}, expected {value!r:.80}")
    told = summary.get("weighting") or {"name": EQUAL, "options": config.train.weighting_options}
    if (told["name"], _plain(told["options"])) != (config.train.weighting, _plain(config.train.weighting_options)):
        raise SubmissionError(
            f"summary.json: weighting is {told['name']}, but config.yaml says {config.train.weighting}"
        )


def _check_scenario(checked: Checked) -> None:
    """Say where a scenario is not the installed one of its name: its setting is another too, so no table mixes them."""
    stored = checked.config.scenario
    if stored.name not in scenario_files():
        checked.notes.append(f"scenario {stored.name} is its author's own; config.yaml has all of it")
        return
    overrides = {f"scenario.{name}": value for name, value in stored.parameters.items()}
    here = resolve_without_method(stored.name, "nano", overrides=overrides).scenario
    if here != stored:
        checked.notes.append(f"scenario {stored.name} has other values than the one that fmtlbench has under this name")


def _check_clients(checked: Checked) -> None:
    specs = checked.config.scenario.everybody()
    expected = {spec.id: (spec.dataset, sorted(spec.tasks)) for spec in specs}
    for client in everybody(checked.summary):
        if expected.get(client["id"]) != (client["dataset"], sorted(client["tasks"])):
            raise SubmissionError(
                f"summary.json: client {client['id']} is none of scenario {checked.summary['scenario']}"
            )
    missing = expected.keys() - {client["id"] for client in everybody(checked.summary)}
    if missing and checked.summary.get("external") is None:
        raise SubmissionError(f"summary.json: no client {', '.join(sorted(missing))}")


def _check_rounds(run: RunFolder, checked: Checked) -> None:
    """Are all rounds there, and is the summary the last one's?"""
    summary, rows = checked.summary, run.rounds()
    numbers = [row["round"] for row in rows]
    if numbers != list(range(1, summary["rounds"] + 1)):
        raise SubmissionError(
            f"metrics.jsonl has {len(rows)} rows, expected one for each of {summary['rounds']} rounds"
        )
    for key in ("bytes_up", "bytes_down"):
        if (total := sum(row[key] for row in rows)) != summary.get(key):
            raise SubmissionError(f"summary.json: {key} is {summary.get(key)}, but the rounds add up to {total}")
    _compare_last(rows[-1], summary)


def _compare_last(row: RoundRow, summary: Summary) -> None:
    for key in ("scores", "scores_before"):
        told, last = ([_without_trivial(score) for score in record.get(key) or []] for record in (summary, row))
        if wrong := find_difference(told, last):
            raise SubmissionError(f"summary.json: {key} are not those of the last round in metrics.jsonl: {wrong}")


def _without_trivial(score: Score) -> Any:
    return {key: value for key, value in score.items() if key != "trivial"}


def _check_scores(run: RunFolder, checked: Checked) -> None:
    """Do the scores come out of what the meters had summed up?"""
    sums = read_sums(run.sums)
    if sums is None:
        raise SubmissionError("no sums.npz, from which its scores could be computed again; make the run again for it")
    if wrong := find_difference(checked.summary["scores"], rescore(checked.config, sums)):
        raise SubmissionError(f"summary.json: scores do not come out of sums.npz: {wrong}")


def _read(folder: Path, read: Callable[[], Any]) -> Any:
    """Read a file of a run; whatever is wrong with it is said as a reason to refuse."""
    try:
        return read()
    except FmtlbenchError as error:
        raise SubmissionError(f"{folder}: {error}") from None


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, so that tuples and lists, 1 and 1.0 compare as they are written."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
