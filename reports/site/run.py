"""The page of one run: scores, curves, cost, and everything it was made with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...base.errors import FmtlbenchError
from ...base.words import say_bytes, say_duration, say_quantity
from ...runs.folder import everybody
from ...tasks import title_of
from ..collect import RunRecord
from .curves import draw, loss_curves, score_curves
from .data import SPLITS, Site
from .examples import show_examples
from .markup import Markup, fill, verbatim
from .pages import HOME


def run_page(run: RunRecord, site: Site) -> Markup:
    pages = site.of_run[run.name]
    same = [other for other in pages[0].runs if other.label == run.label]
    crumbs = [(HOME, "../index.html"), (f"{pages[0].scenario}, {pages[0].split}", f"../{pages[0].slug}.html")]
    return fill(
        "run.html",
        up="../",
        crumbs=[*crumbs, (run.label, None)],
        run=run,
        pages=pages,
        run_files=site.run_files,
        seeds=sorted(same, key=lambda other: other.summary["seed"]),
        examples=show_examples(run, site.run_files[run.name]),
        **{name: _read(read, run) for name, read in SECTIONS.items()},
    )


def _read(read: Callable[[RunRecord], dict[str, Any]], run: RunRecord) -> dict[str, Any]:
    """Return what a section shows; what a file of the run lacks or garbles is said in its place."""
    try:
        return read(run)
    except FmtlbenchError as error:
        return {"problem": str(error)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return {"problem": f"The run's files have something unexpected here: {type(error).__name__}: {error}"}


# -- the sections --------------------------------------------------------------------------------------------------


def _scores(run: RunRecord) -> dict[str, Any]:
    """Return the table of primary metrics beside the trivial prediction, and that of all metrics if there are more."""
    scores = run.summary["scores"]
    splits = sorted({r["split"] for r in scores}, key=lambda s: (SPLITS.index(s) if s in SPLITS else len(SPLITS), s))
    primary = [r for r in scores if r.get("primary")]
    known = {r["split"] for r in primary if r.get("trivial") is not None}
    beside = []
    for split in splits:
        beside.append((split, "value", f"{split} score"))
        if split in known:
            beside.append((split, "trivial", f"{split} trivial"))
    every = [(split, "value", split) for split in splits]
    return {
        "primary": _score_table(primary, beside),
        "every": _score_table(scores, every) if len(primary) < len(scores) else None,
    }


def _score_table(scores: Sequence[Mapping], columns: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a table with a row per client, task and metric; columns are (split, key of a score, head)."""
    values: dict[tuple, dict[str, Mapping]] = {}
    for r in scores:
        values.setdefault((r["client"], r["task"], r["metric"]), {})[r["split"]] = r
    rows = []
    for (client, task, metric), by_split in values.items():
        any_ = next(iter(by_split.values()))
        arrow = {True: " ↑", False: " ↓"}.get(any_.get("higher_is_better"), "")
        unit = f" ({any_['unit']})" if any_.get("unit") else ""
        numbers = [_number(by_split.get(split, {}), key) for split, key, _ in columns]
        rows.append(((client, title_of(task), f"{metric}{arrow}{unit}"), numbers))
    return {"words": ("Client", "Task", "Metric"), "numbers": [head for _, _, head in columns], "rows": rows}


def _number(score: Mapping, key: str) -> tuple[str, str]:
    """Return a number of a score as printed and for sorting; empty where it was not measured."""
    value = score.get(key)
    digits = 4 if score.get("unit") == "m" else 2
    return ("", "") if value is None else (f"{value:.{digits}f}", f"{value:.12g}")


def _curves(run: RunRecord) -> dict[str, Any]:
    rows = run.rounds()
    if not rows:
        return {"problem": "The run has no metrics.jsonl."}
    notes = [
        f"round {row['round']}: {note}"
        for row in rows
        for note in ([row["notes"]] if isinstance(row.get("notes"), str) else row.get("notes") or ())
    ]
    scores = {split: draw(curves) for split, curves in score_curves(rows).items()}
    return {"scores": scores, "losses": draw(loss_curves(rows)), "notes": notes}


def _cost(run: RunRecord) -> dict[str, Any]:
    cost, s = run.cost, run.summary
    energy = cost.get("energy") or {}
    grams = energy.get("co2e_g")
    seconds = cost.get("seconds_total")
    memory = cost.get("memory") or {}
    traffic = {way: s.get(f"bytes_{way}", cost.get(f"bytes_{way}")) for way in ("up", "down")}
    facts = {
        "Time": None if seconds is None else say_duration(seconds),
        "Energy": _energy(energy),
        "CO₂e": None if grams is None else say_quantity(grams, "g"),
        "Sent by clients": None if traffic["up"] is None else say_bytes(traffic["up"]),
        "Sent to clients": None if traffic["down"] is None else say_bytes(traffic["down"]),
        "Peak memory": None if memory.get("process") is None else say_bytes(memory["process"]),
        "Peak device memory": None if memory.get("device") is None else say_bytes(memory["device"]),
    }
    everything = [(name, value) for name, value in _flat(cost) if value != "null"] if cost else []
    return {"facts": _known(facts), "everything": everything}


def _energy(energy: Mapping[str, Any]) -> str | None:
    if energy.get("kwh") is not None:
        return _joined(say_quantity(energy["kwh"] * 1000, "Wh"), energy.get("source"))
    return f"not measured: {energy['reason']}" if energy.get("reason") else None


def _setup(run: RunRecord) -> dict[str, Any]:
    s = run.summary
    sessions = run.manifest.get("sessions") or []
    facts = {
        "Method": run.method,
        "Scenario": _joined(s["scenario"], f"version {s.get('scenario_version')}"),
        "Preset": s["preset"],
        "Data": _joined(s["data"], run.data_key),
        "Rounds": s["rounds"],
        "Seed": s["seed"],
        "Device": s.get("device"),
        "fmtlbench": run.version,
        "Setting": run.setting,
        "Config hash": s.get("config_hash"),
        "Started": sessions[0].get("started") if sessions else None,
        "Command": sessions[0].get("command") if sessions else None,
    }
    lists = {
        "Options of the method": s.get("options"),
        "Options of the weighting": (s.get("weighting") or {}).get("options"),
        "Setting in words": s.get("setting_text"),
    }
    return {"facts": _known(facts), "lists": _flat_lists(lists)}


def _clients(run: RunRecord) -> dict[str, Any]:
    rows = []
    taking_part = len(run.summary["clients"])
    for place, c in enumerate(everybody(run.summary)):
        name = c["id"] + " (unseen)" * (place >= taking_part)
        parameters = c.get("parameters")
        total = sum(parameters.values()) if isinstance(parameters, dict) else parameters
        numbers = [("" if n is None else f"{n:,}".replace(",", " "), n) for n in (c.get("samples"), total)]
        rows.append(((name, c["dataset"], ", ".join(map(title_of, c["tasks"]))), numbers))
    return {"words": ("Client", "Dataset", "Tasks"), "numbers": ("Images", "Parameters"), "rows": rows}


def _versions(run: RunRecord) -> dict[str, Any]:
    sessions = run.manifest.get("sessions") or [{}]
    lists = {
        "Versions": run.summary.get("versions") or sessions[-1].get("versions"),
        "Code": _code(run, sessions[-1]),
        "Hardware": sessions[-1].get("hardware"),
        "Data fingerprints": run.summary.get("data_fingerprints") or run.manifest.get("data"),
    }
    return {"lists": _flat_lists(lists)}


def _code(run: RunRecord, session: Mapping[str, Any]) -> dict[str, Any]:
    """Return which code made a run, without the list of its files."""
    where = {key: value for key, value in (session.get("code") or {}).items() if key in ("version", "commit", "clean")}
    return {**(run.code or {}), **where}


def _configuration(run: RunRecord) -> dict[str, Any]:
    try:
        return {"text": verbatim(run.files.config_text())}
    except OSError as error:
        return {"problem": f"config.yaml cannot be read: {error.strerror}"}


SECTIONS: dict[str, Callable[[RunRecord], dict[str, Any]]] = {  # as run.html calls them
    "scores": _scores,
    "curves": _curves,
    "cost": _cost,
    "setup": _setup,
    "clients": _clients,
    "versions": _versions,
    "configuration": _configuration,
}


# -- small pieces --------------------------------------------------------------------------------------------------


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _flat_lists(lists: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the lists that are not empty, with flat names."""
    return [(title, list(_flat(values))) for title, values in lists.items() if values]


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested values by their dotted names."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _joined(*words: Any) -> str:
    return ", ".join(str(word) for word in words if word)
