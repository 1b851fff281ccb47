"""What belongs in one table, how a setting is told in words, and tables whose rows come from several settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base.errors import FmtlbenchError, UsageError, nearest
from ..base.words import inflect, say_count
from ..config.setting import Setting, check_axis, short_name
from .collect import Collection, RunRecord

if TYPE_CHECKING:
    import pandas as pd

MOST_TOLD = 4  # values that tell a setting from its neighbours
METHOD = ("algorithm", "algo", "method")  # how people call the axis that every table has
OTHER_DATA = {"scenario", "data", "size", "preset"}  # axes along which fingerprints differ
_TOLD = ("scenario", "preset", "data.source", "federation.rounds")  # a caption begins with these


def by_setting(rows: pd.DataFrame, runs: list[RunRecord]) -> list[tuple[str, pd.DataFrame, list[RunRecord]]]:
    """Split rows and runs into tables, (scenario, rows, runs) each; two runs for one place in a table are refused."""
    with_rows = set(rows["run"])
    settings: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        if run.name in with_rows:
            settings.setdefault(run.table, []).append(run)
    ordered = sorted(settings.items(), key=lambda item: tuple(map(str, item[0])))
    place = {run.name: number for number, (_, here) in enumerate(ordered) for run in here}
    numbers = rows["run"].map(place)
    found = []
    for number, (key, here) in enumerate(ordered):
        _refuse_twins(here)
        found.append((key[0], rows[numbers == number], here))
    return found


def _refuse_twins(runs: list[RunRecord]) -> None:
    seen: dict[tuple, RunRecord] = {}
    for run in runs:
        key = (run.summary["algorithm"], run.row, run.summary["seed"])
        if key in seen:
            raise FmtlbenchError(
                f"two runs of {', '.join(run.row)}, seed {run.summary['seed']}, in one setting: {seen[key].folder} and "
                f"{run.folder}; remove one, or name the folders you mean"
            )
        seen[key] = run


# -- several settings in one table -------------------------------------------------------------------------------------


def parse_axes(text: str) -> tuple[str, ...]:
    """Read `algorithm,architecture,backbone`: the axes beside the method, which every table has."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--rows {text}: expected names with commas between them, such as algorithm,architecture")
    return tuple(name for name in dict.fromkeys(names) if name not in METHOD)


def merge_settings(collection: Collection, axes: Sequence[str]) -> Collection:
    """Put the same runs into tables whose rows differ in `axes`, and say so, as well as in the method.

    Settings that differ in anything else stay apart; a row never holds two settings.
    """
    if not axes:
        return collection
    values = setting_values(collection.runs)
    known = {path for setting in values.values() for path in setting.values}
    for axis in axes:
        check_axis(axis, known, "--rows")
    other_data = OTHER_DATA & {axis.partition(".")[0] for axis in axes}
    merged = []
    for run in collection.runs:
        setting = values[run.setting, run.data_key]
        row = (run.label, *(axis_text(run, setting, axis) for axis in axes))
        rest = setting.apart_from(axes)
        scenario = "several scenarios" if "scenario" in axes else rest.value("scenario")
        table = (scenario, "" if other_data else run.data_key, rest.key)
        merged.append(replace(run, row=row, merged=table, label=", ".join(row)))
    _refuse_mixed_rows(merged, values)
    if "scenario" in axes:  # of the same data, other scenarios may use another part
        _refuse_other_data(merged)
    tables = {run.name: run for run in merged}
    names = collection.frame["run"]
    frame = collection.frame.assign(
        label=names.map({name: run.label for name, run in tables.items()}),
        scenario=names.map({name: run.table[0] for name, run in tables.items()}),
        data_key=names.map({name: run.table[1] for name, run in tables.items()}),
        setting=names.map({name: run.table[2] for name, run in tables.items()}),
    )
    last = [axis.rpartition(".")[2].capitalize() for axis in axes]
    heads = [word if last.count(word) == 1 else axis for word, axis in zip(last, axes)]
    return Collection(frame, merged, collection.problems, collection.absences, ("Method", *heads), tuple(axes))


def _refuse_mixed_rows(runs: Sequence[RunRecord], values: dict[tuple[str, str], Setting]) -> None:
    """Refuse rows of two settings: an axis may stand for several values (a backbone also for its drop path)."""
    seen: dict[tuple, RunRecord] = {}
    for run in runs:
        first = seen.setdefault((run.table, run.summary["algorithm"], run.row), run)
        if (first.setting, first.data_key) != (run.setting, run.data_key):
            one, other = (values[r.setting, r.data_key] for r in (first, run))
            paths = list(one.differences(other)) or ["their data" if first.setting == run.setting else "other values"]
            raise UsageError(
                f"--rows: {first.folder} and {run.folder} would share the row {', '.join(run.row)}, but differ in "
                f"{', '.join(paths[:MOST_TOLD])}; add that to --rows, or name the folders you mean"
            )


def _refuse_other_data(runs: Sequence[RunRecord]) -> None:
    seen: dict[tuple, tuple[str, RunRecord]] = {}
    for run in runs:
        for name, fingerprint in (run.summary.get("data_fingerprints") or {}).items():
            other, first = seen.setdefault((run.table, run.summary["data"], name), (fingerprint, run))
            if other != fingerprint:
                raise UsageError(f"--rows: {first.folder} and {run.folder} saw different {name} data: not in one table")


def setting_values(runs: Iterable[RunRecord]) -> dict[tuple[str, str], Setting]:
    """Read the values of every (setting, data) among the runs: from one config each, or a summary if all are lost."""
    found: dict[tuple[str, str], Setting] = {}
    read: set[tuple[str, str]] = set()
    for run in runs:
        key = (run.setting, run.data_key)
        if key not in read:
            found[key] = run.values
            if run.config:
                read.add(key)
    return found


def axis_text(run: RunRecord, setting: Setting, axis: str) -> str:
    """Say what a row says of an axis."""
    value = len(run.summary["clients"]) if axis == "clients" else setting.value(axis)
    return "unknown" if value is None else _whole_text(value)


# -- naming runs -------------------------------------------------------------------------------------------------------


def choose_runs(collection: Collection, text: str, flag: str) -> tuple[list[RunRecord], str]:
    """Find the runs of one method in one setting that `key=value,…` describes; return them and what to call them.

    Keys: algo (a registry name or a label), setting (the beginning of a hash), an axis, or a dotted path of the config.
    """
    wanted = _parse_choice(text, flag)
    runs = list(collection.runs)
    values = setting_values(runs)
    known = {path for setting in values.values() for path in setting.values}
    for key, value in wanted.items():
        if key not in ("algo", "setting"):
            check_axis(key, known, flag)

        def says(run: RunRecord, key: str = key) -> list[str]:
            if key == "algo":
                return [run.method, run.row[0]]
            if key == "setting":
                return [run.setting]
            return [axis_text(run, values[run.setting, run.data_key], key)]

        left = [run for run in runs if any(_is_meant(key, value, word) for word in says(run))]
        if not left:
            there = sorted({word for run in runs for word in says(run)})
            raise UsageError(f"{flag} {text}: no run has {key} {value!r} beside the rest; {nearest(value, there)}")
        runs = left
    groups: dict[tuple, list[RunRecord]] = {}
    for run in runs:
        groups.setdefault((run.row[0], run.setting, run.data_key), []).append(run)
    if len(groups) > 1:
        firsts = [members[0] for members in groups.values()]
        told = [", ".join(filter(None, (run.label, words))) for run, words in zip(firsts, distinguishing(firsts))]
        raise UsageError(f"{flag} {text}: means {len(groups)} different rows ({'; '.join(told[:6])}); say more of it")
    _refuse_twins([replace(run, row=(run.label,)) for run in runs])
    named = [f"{key} {value}" for key, value in wanted.items() if key not in ("algo", "scenario")]
    told = f" ({', '.join(named)})" if named else ""
    title = f"{runs[0].row[0]} of {runs[0].summary['scenario']}{told}"
    return runs, title


def _is_meant(key: str, given: str, there: str) -> bool:
    """Whether a value of a run is the one that was given: as text, or as the same number (1e-4 is 0.0001)."""
    if key == "setting":
        return there.startswith(given)
    if given == there:
        return True
    try:
        return float(given) == float(there)
    except ValueError:
        return False


def _parse_choice(text: str, flag: str) -> dict[str, str]:
    wanted: dict[str, str] = {}
    for part in re.split(r",(?![^(]*\))", text):  # a label may have commas, in parentheses
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not key or not value:
            raise UsageError(f"{flag} {text}: expected key=value,…, for example algo=local,scenario=iid1_sdmt")
        wanted["algo" if key in METHOD else key] = value
    if "algo" not in wanted:
        raise UsageError(f"{flag} {text}: which method? For example algo=local,{text}")
    return wanted


# -- words -------------------------------------------------------------------------------------------------------------


def table_name(runs: Sequence[RunRecord], split: str) -> str:
    """Make a name for files and labels: scenario, preset, data, split and the beginning of the setting's hash."""
    words = [runs[0].table[0], listed({run.summary["preset"] for run in runs}), _sources(runs), split]
    return re.sub(r"[ ,]+", "-", "-".join([*words, runs[0].table[-1].removeprefix("older-")[:8]]))


def table_scenarios(runs: Sequence[RunRecord]) -> str:
    """Name the scenarios of a table, and their version where it is the same."""
    versions = {run.summary.get("scenario_version") for run in runs} - {None}
    version = f" version {versions.pop()}" if len(versions) == 1 else ""
    return f"{listed({run.summary['scenario'] for run in runs})}{version}"


def _sources(runs: Sequence[RunRecord]) -> str:
    return listed({run.summary["data"] for run in runs})


def describe(runs: Sequence[RunRecord], words: str = "", spread: str = "seeds") -> str:
    """Tell the setting of a table in one line; `words` tell it from its neighbours, `spread` is what its ± is over."""
    s = runs[0].summary
    keys = sorted({run.data_key for run in runs})
    data = f"{_sources(runs)} data" + (f" {', '.join(keys)}" if all(keys) else " (no fingerprint)")
    seeds = sorted({run.summary["seed"] for run in runs})
    over = f"{inflect('seed', len(seeds))} {listed(seeds)}"
    if spread == "clients":
        over = f"mean ± standard deviation over clients, {over}"
    elif len(seeds) > 1:
        over = f"mean ± standard deviation over {over}"
    parameters = ", ".join(f"{k}={v}" for k, v in scenario_parameters(runs[0]).items())
    several = sorted({run.setting for run in runs})
    setting = f"setting {several[0][:14]}" if len(several) == 1 else f"{len(several)} settings, told apart by the rows"
    presets, rounds = ({run.summary[key] for run in runs} for key in ("preset", "rounds"))
    departing = _departing(runs)
    told = say_count(s["rounds"], "round") if len(rounds) == 1 else f"{listed(rounds)} rounds"
    parts = [
        *([f"scenario with {parameters}"] if parameters and len(several) == 1 else []),
        f"preset {listed(presets)}{departing}",
        data,
        *([] if told in departing.removeprefix(" with ").split(", ") else [told]),
        listed({run.summary.get("device") or "unknown device" for run in runs}),
        "scores of the last round",
        over,
        f"{setting}{f' ({words})' if words else ''}",
        f"fmtlbench {listed({run.version or 'unknown version' for run in runs})}",
    ]
    return " · ".join(parts)


def _departing(runs: Sequence[RunRecord]) -> str:
    """Say in what all runs of a table depart from their preset; in what only some do, rows or neighbours tell."""
    told = [run.summary.get("departures") for run in runs]
    known = [departures for departures in told if departures is not None]
    if len(known) < len(told):
        return " (departures from it were not recorded)"
    common = {path: value for path, value in known[0].items() if all(path in of and of[path] == value for of in known)}
    return f" with {words}" if (words := say_departures(common)) else ""


_IMAGES = {"data.train_samples": "training images", "data.test_samples": "test images"}


def say_departures(departures: Mapping[str, Any]) -> str:
    """Say in words which values of a run are not its preset's: "32 training images, 3 rounds, train.lr 0.001"."""
    by_domain: dict[str, dict[str, Any]] = {}
    for path, value in departures.items():
        section, _, domain = path.rpartition(".")
        if section in _IMAGES:
            by_domain.setdefault(section, {})[domain] = value
    words = []
    for section, counts in by_domain.items():
        each = [str(next(iter(counts.values())))] if len(set(map(str, counts.values()))) == 1 else []
        each = each or [f"{count} {domain}" for domain, count in counts.items()]
        words.append(f"{' and '.join(each)} {_IMAGES[section]}")
    for path, value in departures.items():
        if path == "federation.rounds":
            words.append(say_count(value, "round"))
        elif path.rpartition(".")[0] not in _IMAGES:
            words.append(f"{short_name(path)} {_text(value)}")
    return ", ".join(words)


def scenario_parameters(run: RunRecord) -> dict[str, Any]:
    """Return the numbers that the scenario's file leaves open, as this run had them."""
    return (run.summary.get("setting_text") or {}).get("scenario_parameters") or {}


def distinguishing(runs: Sequence[RunRecord], axes: Sequence[str] = ()) -> list[str]:
    """Return, for one run of each setting, what sets it apart from the others of its scenario; rows tell `axes`."""
    told = []
    for run in runs:
        mine = _told_values(run, axes)
        others = [_told_values(o, axes) for o in runs if o.summary["scenario"] == run.summary["scenario"]]
        keys = [k for k in mine if any(other and other.get(k) != mine[k] for other in others)]
        told.append(", ".join(f"{k} {_text(mine[k])}" for k in keys))
    alike: dict[tuple, list[int]] = {}
    for i, run in enumerate(runs):
        alike.setdefault((*run.table[:-1], repr(scenario_parameters(run)), told[i]), []).append(i)
    for numbers in alike.values():
        if len(numbers) > 1:  # the summaries do not say it: their configs do
            words = _by_config([runs[i] for i in numbers], axes)
            for i, more in zip(numbers, words):
                told[i] = ", ".join(filter(None, (told[i], more)))
    return told


def _told_values(run: RunRecord, axes: Sequence[str]) -> dict[str, Any]:
    apart = {"scenario_parameters", *axes}
    return {k: v for k, v in (run.summary.get("setting_text") or {}).items() if k not in apart}


def _by_config(runs: Sequence[RunRecord], axes: Sequence[str]) -> list[str]:
    if not all(run.config for run in runs):
        return [""] * len(runs)
    rest = [run.values.apart_from([*_TOLD, *axes]).values for run in runs]
    keys = [k for k in dict.fromkeys(k for values in rest for k in values) if len({repr(v.get(k)) for v in rest}) > 1]
    more = f" and {len(keys) - MOST_TOLD} more" if len(keys) > MOST_TOLD else ""
    return [", ".join(f"{short_name(k)} {_text(values.get(k))}" for k in keys[:MOST_TOLD]) + more for values in rest]


def _text(value: Any) -> str:
    text = _whole_text(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _whole_text(value: Any) -> str:
    text = " and ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return text.lower() if isinstance(value, bool) else text


def listed(items: Iterable[Any]) -> str:
    """Join sorted items with commas."""
    return ", ".join(map(str, sorted(items, key=lambda i: (str(type(i)), i))))
