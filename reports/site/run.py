"""The page of one run: scores, curves, cost, and everything it was made with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...base.errors import FmtlbenchError
from ...base.words import say_bytes, say_duration, say_quantity
from ...runs.folder import everybody
from ...tasks import title_of
from ..collect import RunRecord
from .curves import draw, loss_curves, score_curves
from .data import SPLITS, Site
from .examples import show_examples
from .markup import Html, document, join, tag, verbatim
from .pages import HOME

Facts = Mapping[str, Any]
HASHES = ("Setting", "Config hash", "Command")


def run_page(run: RunRecord, site: Site) -> Html:
    s, pages = run.summary, site.of_run[run.name]
    same = [other for other in pages[0].runs if other.label == run.label]
    seeds = [
        tag(
            "a",
            str(other.summary["seed"]),
            href=f"../{site.run_files[other.name]}",
            aria_current="page" if other is run else None,
        )
        for other in sorted(same, key=lambda other: other.summary["seed"])
    ]
    boards = [tag("a", f"{p.scenario}, {p.split} split", href=f"../{p.slug}.html", class_="button") for p in pages]
    main = [
        tag("h1", run.label, " ", tag("small", f"{s['scenario']}, seed {s['seed']}")),
        tag("p", run.name, class_="caption"),
        tag(
            "div",
            tag("nav", tag("span", "Seed"), seeds, aria_label="Seed", class_="choice"),
            tag("p", boards),
            class_="bar",
        ),
        _section("Scores of the last round", _scores, run),
        _section("Learning curves", _curves, run),
        _examples(run, site),
        _section("Cost", _cost, run),
        _section("Set-up", _setup, run),
        _section("Clients", _clients, run),
        _section("Versions and data", _versions, run),
        _section("Configuration", _configuration, run),
    ]
    crumbs = [(HOME, "../index.html"), (f"{pages[0].scenario}, {pages[0].split}", f"../{pages[0].slug}.html")]
    return document(f"{run.label}, seed {s['seed']} · {s['scenario']}", main, [*crumbs, (run.label, None)], "../")


def _section(title: str, make: Callable[[RunRecord], Any], run: RunRecord) -> Html:
    """Make a section; what a file of the run lacks or garbles is said in its place."""
    try:
        content = make(run)
    except FmtlbenchError as error:
        content = tag("p", str(error))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        content = tag("p", f"The run's files have something unexpected here: {type(error).__name__}: {error}")
    return tag("section", tag("h2", title), content)


# -- the sections --------------------------------------------------------------------------------------------------


def _scores(run: RunRecord) -> Html:
    """Make the table of primary metrics beside the trivial prediction, and below it that of all metrics."""
    scores = run.summary["scores"]
    splits = sorted({r["split"] for r in scores}, key=lambda s: (SPLITS.index(s) if s in SPLITS else len(SPLITS), s))
    primary = [r for r in scores if r.get("primary")]
    note = "Score: of the last round. Trivial: the best constant prediction, which a network must beat."
    parts = [_score_table(primary, splits, True, "Scores of the last round"), tag("p", note, class_="caption")]
    if len(primary) < len(scores):
        every = _score_table(scores, splits, False, "All metrics of the last round")
        parts.append(tag("details", tag("summary", "All metrics"), every))
    return join(parts, "\n")


def _score_table(scores: Sequence[Mapping], splits: Sequence[str], trivial: bool, name: str) -> Html:
    """Make a table with a row per client, task and metric; what was not measured is an empty cell."""
    values: dict[tuple, dict[str, Mapping]] = {}
    for r in scores:
        values.setdefault((r["client"], r["task"], r["metric"]), {})[r["split"]] = r
    shown = [(split, "value", split if not trivial else f"{split} score") for split in splits]
    if trivial:
        known = {r["split"] for r in scores if r.get("trivial") is not None}
        shown = [
            column
            for split, key, title in shown
            for column in [(split, key, title), (split, "trivial", f"{split} trivial")]
            if column[1] == "value" or split in known
        ]
    heads = [tag("th", head, scope="col", data_sort="text") for head in ("Client", "Task", "Metric")]
    heads += [tag("th", title, scope="col", class_="num", data_sort="down") for _, _, title in shown]
    rows = []
    for (client, task, metric), by_split in values.items():
        any_ = next(iter(by_split.values()))
        arrow = {True: " ↑", False: " ↓"}.get(any_.get("higher_is_better"), "")
        unit = f" ({any_['unit']})" if any_.get("unit") else ""
        cells = [tag("th", client, scope="row"), tag("td", title_of(task)), tag("td", f"{metric}{arrow}{unit}")]
        for split, key, _ in shown:
            record = by_split.get(split, {})
            value = record.get(key)
            text = "" if value is None else f"{value:.{4 if record.get('unit') == 'm' else 2}f}"
            cells.append(tag("td", text, class_="num", data_value=None if value is None else f"{value:.12g}"))
        rows.append(tag("tr", cells))
    return _grid(heads, rows, name)


def _curves(run: RunRecord) -> Html:
    rows = run.rounds()
    if not rows:
        return tag("p", "The run has no metrics.jsonl.")
    parts: list[Any] = []
    for split, curves in score_curves(rows).items():
        drawn = draw(curves) or tag("p", "Scored in one round only.")
        parts += [tag("h3", f"Scores, {split} test split"), drawn]
    losses = draw(loss_curves(rows))
    notes = [
        f"round {row['round']}: {note}"
        for row in rows
        for note in ([row["notes"]] if isinstance(row.get("notes"), str) else row.get("notes") or ())
    ]
    if losses:
        parts.append(tag("details", tag("summary", "Training losses"), losses))
    if notes:
        items = tag("ul", [tag("li", note) for note in notes], class_="notes")
        parts.append(tag("details", tag("summary", "Notes of the rounds"), items))
    return join(parts, "\n")


def _examples(run: RunRecord, site: Site) -> Html | None:
    shown = show_examples(run, site.run_files[run.name])
    return tag("section", tag("h2", "Example predictions"), shown) if shown else None


def _cost(run: RunRecord) -> Html:
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
    known = ((name, value) for name, value in _flat(cost) if value != "null")
    everything = tag("details", tag("summary", "cost.json"), _pairs(known)) if cost else None
    return join([_facts(facts), everything], "\n")


def _energy(energy: Mapping[str, Any]) -> str | None:
    if energy.get("kwh") is not None:
        return _joined(say_quantity(energy["kwh"] * 1000, "Wh"), energy.get("source"))
    return f"not measured: {energy['reason']}" if energy.get("reason") else None


def _setup(run: RunRecord) -> Html:
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
    parts: list[Any] = [_facts(facts)]
    for title, values in (
        ("Options of the method", s.get("options")),
        ("Options of the weighting", (s.get("weighting") or {}).get("options")),
        ("Setting in words", s.get("setting_text")),
    ):
        if values:
            parts += [tag("h3", title), _pairs(_flat(values))]
    return join(parts, "\n")


def _clients(run: RunRecord) -> Html:
    heads = [tag("th", head, scope="col", data_sort="text") for head in ("Client", "Dataset", "Tasks")]
    heads += [tag("th", head, scope="col", class_="num", data_sort="down") for head in ("Images", "Parameters")]
    rows = []
    taking_part = len(run.summary["clients"])
    for place, c in enumerate(everybody(run.summary)):
        name = c["id"] + " (unseen)" * (place >= taking_part)
        parameters = c.get("parameters")
        total = sum(parameters.values()) if isinstance(parameters, dict) else parameters
        cells = [
            tag("th", name, scope="row"),
            tag("td", c["dataset"]),
            tag("td", ", ".join(map(title_of, c["tasks"]))),
        ]
        for number in (c.get("samples"), total):
            text = "" if number is None else f"{number:,}".replace(",", " ")
            cells.append(tag("td", text, class_="num", data_value=number))
        rows.append(tag("tr", cells))
    return _grid(heads, rows, "Clients")


def _versions(run: RunRecord) -> Html:
    sessions = run.manifest.get("sessions") or [{}]
    parts = []
    for title, values in (
        ("Versions", run.summary.get("versions") or sessions[-1].get("versions")),
        ("Code", _code(run, sessions[-1])),
        ("Hardware", sessions[-1].get("hardware")),
        ("Data fingerprints", run.summary.get("data_fingerprints") or run.manifest.get("data")),
    ):
        if values:
            parts += [tag("h3", title), _pairs(_flat(values))]
    return join(parts, "\n") if parts else tag("p", "The run's files say nothing of them.")


def _code(run: RunRecord, session: Mapping[str, Any]) -> dict[str, Any]:
    """Return which code made a run, without the list of its files."""
    where = {key: value for key, value in (session.get("code") or {}).items() if key in ("version", "commit", "clean")}
    return {**(run.code or {}), **where}


def _configuration(run: RunRecord) -> Html:
    try:
        text = run.files.config_text()
    except OSError as error:
        return tag("p", f"config.yaml cannot be read: {error.strerror}")
    return tag("details", tag("summary", "config.yaml"), tag("pre", verbatim(text), tabindex="0"))


# -- small pieces --------------------------------------------------------------------------------------------------


def _grid(heads: list[Html], rows: list[Html], name: str) -> Html:
    body = [tag("thead", tag("tr", heads)), tag("tbody", join(rows, "\n"))]
    table = tag("table", tag("caption", name, class_="out"), body, class_="grid")
    return tag("div", table, class_="frame", tabindex="0", role="region", aria_label=name)


def _facts(facts: Facts) -> Html:
    """List what is known."""
    rows = [
        tag("div", tag("dt", name), tag("dd", str(value), class_="hash" if name in HASHES else None))
        for name, value in facts.items()
        if value is not None
    ]
    return tag("dl", join(rows, "\n"), class_="facts") if rows else tag("p", "The run's files say nothing of it.")


def _pairs(pairs: Iterable[tuple[str, str]]) -> Html:
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in pairs]
    return tag("table", tag("tbody", join(rows, "\n")), class_="pairs")


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested values by their dotted names."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _joined(*words: Any) -> str:
    return ", ".join(str(word) for word in words if word)
