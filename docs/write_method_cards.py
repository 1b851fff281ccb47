"""Write docs/methods/: a card for every built-in method, and their index.

Run: python docs/write_method_cards.py   writes all pages; a test fails while one is stale

What a card says is read from the code, the presets and the other pages (method_facts.py); its equations stand in
docs/methods/equations.yml.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import time
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from method_facts import (
    BILLED,
    NETWORK,
    RESULTS,
    ROOT,
    Beside,
    Bill,
    Method,
    World,
    asked_by_probes,
    built_in,
    deviations,
    deviations_of_all,
    find_beside,
    given_by_presets,
    has_nobody_else,
    load_equations,
    load_world,
    make_algorithm,
    make_bills,
    measured,
    needed_options,
    open_points,
    published_notes,
    published_standings,
    refusals,
    source_file,
)

from fmtlbench.algorithms import ALGORITHMS, Algorithm
from fmtlbench.base.words import say_count
from fmtlbench.cli._installed import method_titles
from fmtlbench.cli._tables import as_typed
from fmtlbench.cli.show import describe_options
from fmtlbench.engine.federation import EXTRA
from fmtlbench.exchange import TRAVELLING_KINDS, Party
from fmtlbench.scenarios import ROLES

FOLDER = Path(__file__).parent / "methods"
INDEX = FOLDER / "README.md"
WRITTEN = "<!-- written by docs/write_method_cards.py; the equations are in equations.yml -->"
LONG = 8  # numbers of one table that are shown without asking


def write_pages() -> dict[Path, str]:
    """Return the text of every page, by file."""
    pages = {FOLDER / f"{method.name}.md": write_card(method) for method in built_in()}
    return {**pages, INDEX: write_index()}


def write_card(method: Method) -> str:
    """Return the card of one method."""
    parts = [
        WRITTEN,
        f"# {method.title}",
        *_introduce(method),
        "## Equations",
        *_explain_equations(method),
        "## Options",
        *_list_options(method),
        "## What travels",
        *_bill(method),
        "## Where public code departs",
        *_list_deviations(method),
        "## Where it stands",
        *_rank(method),
        "## Probes",
        *_list_probes(method),
    ]
    return _join(parts)


def write_index() -> str:
    """Return the page that lists the cards."""
    world = load_world(BILLED[0])
    parts = [
        WRITTEN,
        "# The methods",
        "One card each: equations, options and what presets give them, bytes, where public code departs, published and "
        "own numbers, what probes expect. Roles are explained in [probes.md](../probes.md), a method of your own in "
        "[add-your-own.md](../add-your-own.md).",
        f"Up and down: per round, all clients of `{BILLED[0]}`, with default options and the network of preset "
        f"`{NETWORK}` ({_network(world)}), float32. Where rounds differ, it is the commonest kind; “more” travels "
        "beside rows.",
    ]
    for family in load_equations()["families"]:
        rows = [_index_row(ALGORITHMS[name], world) for name in family["methods"]]
        heads = ["method", "what it does", "roles", "travels", "up", "down"]
        parts += [f"## {family['title']}", family["about"], _table(heads, rows, "llllrr")]
    left_out = [f"- **{entry['methods']}**: {entry['why']}" for entry in load_equations()["left_out"]]
    return _join([*parts, "## What is left out, and why", "\n".join(left_out)])


def _index_row(method: Method, world: World) -> list[str]:
    bill = make_bills(method, world)[0]
    sums = [_total(bill, direction) for direction in ("up", "down")]
    card = f"[{method.title}]({method.name}.md)"
    return [card, _first_line(method), ", ".join(method.roles) or "–", _kinds(bill), *sums]


# -- sections ----------------------------------------------------------------------------------------------------------


def _introduce(method: Method) -> list[str]:
    roles = (
        "; ".join(f"`{role}`: {ROLES[role]}" for role in method.roles) or "none: it is what others are compared with"
    )
    file = source_file(method)
    needs = "".join(f" --set algo.{option}" for option in needed_options(method).split())
    lines = [
        f"- paper: {method.paper}",
        f"- roles: {roles}",
        f"- file: [{file}](../../{file})",
    ]
    return [
        _first_line(method),
        "\n".join(lines),
        f"```\nfmtlbench run --algo {method.name} --scenario {BILLED[0]}{needs}\n```",
    ]


def _first_line(method: Method) -> str:
    """Return the first sentence of a method's file, without the name that the title says."""
    line = inspect.cleandoc(inspect.getmodule(method).__doc__ or "").splitlines()[0]
    sentence = line.partition(": ")[2] or line
    first = sentence.split()[0]
    return (
        sentence if len(first) == 1 and first != "a" else sentence[0].upper() + sentence[1:]
    )  # a symbol stays as it is


def _explain_equations(method: Method) -> list[str]:
    known = load_equations()
    own = known["methods"][method.name]
    symbols = [known["symbols"][key] for key in own["uses"]] + own.get("symbols", [])
    return [
        "Numbers such as (FedHCA² 6) are those of the equations in that paper; all symbols are explained below.",
        "### A client minimises",
        own["client"].strip(),
        "### The server's step",
        own["server"].strip(),
        "### Symbols",
        "\n".join(f"- {' '.join(symbol.split())}" for symbol in symbols),
    ]


def _list_options(method: Method) -> list[str]:
    described = describe_options(method)
    if not described:
        return ["None."]
    fields, hints = dataclasses.fields(method.Params), typing.get_type_hints(method.Params)
    rows = []
    for field, option in zip(fields, described):
        kind, allowed = _describe_type(hints[field.name], option["type"], field.metadata)
        default = f"`{as_typed(option['default'])}`"
        rows.append([f"`{option['option']}`", kind, default, allowed, option["meaning"]])
    parts = [_table(["option", "type", "default", "allowed", "meaning"], rows)]
    given = [
        [f"[{g.preset}](../../fmtlbench/presets/{g.preset}.yml)", f"`algo.{g.option}={as_typed(g.value)}`", g.source]
        for g in given_by_presets(method)
    ]
    if not given:
        return [*parts, "No preset gives it other values."]
    words = "Presets that give values; the source is the comment behind a value, in the words that its file explains."
    return [*parts, words, _table(["preset", "value", "source"], given)]


def _describe_type(hint: Any, type_: str, bounds: Mapping[str, Any]) -> tuple[str, str]:
    """Return the type of an option and which values it takes."""
    if typing.get_origin(hint) is typing.Literal:
        return "word", ", ".join(f"`{value}`" for value in typing.get_args(hint))
    if hint is bool:
        return "bool", "`true`, `false`"
    signs = {"low": "≥", "above": ">", "high": "≤", "below": "<"}
    said = [f"{sign} {bounds[key]:g}" for key, sign in signs.items() if bounds.get(key) is not None]
    null = ["`null`"] if type(None) in typing.get_args(hint) else []
    return type_.replace(" | ", " or "), ", ".join([*said, *null]) or "any"


def _bill(method: Method) -> list[str]:
    world = load_world(BILLED[0])
    usual = {scenario: make_bills(method, load_world(scenario)) for scenario in BILLED}
    parts = ["Nothing: no client sends or gets anything."]
    if any(bill.up for bill in usual[BILLED[0]]):
        rows = [row for name, bills in usual.items() if bills for row in _bill_rows(name, bills[0])]
        heads = ["scenario", "who", "encoder", "decoders", "heads", "beside", "up", "down"]
        if not any(row[5] for row in rows):
            heads, rows = heads[:5] + heads[6:], [row[:5] + row[6:] for row in rows]
        options = " ".join(f"`algo.{option}`" for option in needed_options(method).split()) or "default options"
        parts = [
            f"Per round, float32, with the network of preset `{NETWORK}` ({_network(world)}) and {options}; "
            "1 MB is a million bytes.",
            _table(heads, rows, "llrrl" + "r" * (len(heads) - 5)),
            *_explain_bill(method),
        ]
        if others := [line for name, bills in usual.items() for line in _sum_up(name, bills) if len(bills) > 1]:
            words = "This is the commonest kind of round. All kinds, of all clients together:"
            parts += [words, _table(["scenario", "rounds", "travels", "up", "down"], others, "lllrr")]
    further = load_equations()["methods"][method.name].get("bills", [])
    variants = []
    for option in ([method.encoder_only] if method.encoder_only else []) + further:
        for name in BILLED:
            lines = _sum_up(name, make_bills(method, load_world(name), option))
            if lines != _sum_up(name, usual[name]):  # the option is what is default anyway
                variants += [[f"`algo.{option}`", *line] for line in lines]
    if variants:
        heads = ["option", "scenario", "rounds", "travels", "up", "down"]
        parts += ["All clients together, with other options:", _table(heads, variants, "llllrr")]
    refused = [f"NULL with {', '.join(places)}: {reason}." for reason, places in refusals(method).items()]
    return [*parts, *refused]


def _explain_bill(method: Method) -> list[str]:
    """Say what the table of bytes does not: what travels beside rows, and what becomes of what comes down."""
    said, world = [], load_world(BILLED[0])
    algorithm = make_algorithm(method, world)
    if beside := find_beside(algorithm):
        lines = [f"- {entry.way}, {_say_span(entry, algorithm.rounds)}: {entry.what}" for entry in beside]
        said += ["Beside rows, which a run's ledger books as `extra`:", "\n".join(lines)]
    if not method.installs and method.local_objective is not Algorithm.local_objective:
        said.append("What comes down is an anchor of the local objective; it replaces nothing.")
    elif not method.installs:
        said.append("What comes down replaces nothing by itself: the client decides before it trains.")
    if method.kept_home is not Algorithm.kept_home:
        said.append(f"What stays home of a row is not billed: {_say_home(algorithm, world)}.")
    note = load_equations()["methods"][method.name].get("bill_note")
    return [*said, *([note] if note else [])]


def _say_home(algorithm: Algorithm, world: World) -> str:
    """Return how much of each kind of row stays home."""
    sizes = []
    for kind in algorithm.shared(0):
        row = world.rows[0][kind]
        home = row.count() - row.count(algorithm.kept_home(kind, row.tensors))
        sizes.append(f"{_megabytes(4 * home) if home else 'nothing'} of each {kind}")
    return ", ".join(sizes)


def _say_span(entry: Beside, rounds: int) -> str:
    """Return in which rounds something travels."""
    if entry.first == entry.last:
        return f"in round {entry.first}"
    if entry.first == 1:
        return "in every round" if entry.last == rounds else f"until round {entry.last}"
    return f"from round {entry.first} on" if entry.last == rounds else f"in rounds {entry.first} to {entry.last}"


def _sum_up(scenario: str, bills: Sequence[Bill]) -> list[list[str]]:
    """Return a line for each kind of round, of all clients together, in the order in which they come first."""
    every = sum(len(bill.rounds) for bill in bills)
    return [
        [f"`{scenario}`", _say_rounds(bill.rounds, every), _kinds(bill), _total(bill, "up"), _total(bill, "down")]
        for bill in sorted(bills, key=lambda bill: bill.rounds)
    ]


def _say_rounds(indices: Sequence[int], every: int) -> str:
    """Return which rounds of a run these are: all, the first few, or how many."""
    first, last = indices[0] + 1, indices[-1] + 1
    if len(indices) == every:
        return "all"
    if last - first + 1 > len(indices):
        return f"{len(indices)} of {every}"
    return f"{first}" if first == last else f"{first} to {last}"


def _bill_rows(scenario: str, bill: Bill) -> list[list[str]]:
    """Return a line for each kind of client, and one for all of them."""
    world = load_world(scenario)
    groups: dict[str, list[Party]] = {}
    for party in world.parties:
        entry = bill.ledger.clients.get(party.id, {"up": {}, "down": {}})
        groups.setdefault(repr((entry, bill.rows[party.index], len(party.tasks))), []).append(party)
    lines = []
    for members in groups.values():
        one = members[0]
        entry = bill.ledger.clients.get(one.id, {"up": {}, "down": {}})
        who = f"{say_count(len(members), 'client')} with {say_count(len(one.tasks), 'task')}"
        parts = [_several(entry["up"].get(kind, 0), bill.rows[one.index].get(kind, 0)) for kind in TRAVELLING_KINDS]
        heads = "in the decoders' row" if entry["up"].get("decoder") and world.config.heads_travel else "home"
        beside = " and ".join(
            f"{_megabytes(entry[way][EXTRA])} {way}" for way in ("up", "down") if entry[way].get(EXTRA)
        )
        sums = [_megabytes(sum(entry[direction].values())) for direction in ("up", "down")]
        ends = ", each" if len(members) > 1 else ""
        lines.append([who + ends, *parts, heads, beside, *sums])
    lines.append([f"**all {len(world.parties)}**", "", "", "", "", _total(bill, "up"), _total(bill, "down")])
    return [[f"`{scenario}`", *line] for line in lines]


def _several(size: int, count: int) -> str:
    """Return the bytes of rows: each one's, and how many there are."""
    if not size:
        return "home"
    return _megabytes(size) if count == 1 else f"{count} × {_megabytes(size / count)}"


def _total(bill: Bill, direction: str) -> str:
    return _megabytes(bill.ledger.total(direction))


def _megabytes(count: float) -> str:
    if 0 < count < 1e5:
        return f"{count / 1e3:.1f} kB" if count >= 1e3 else f"{count:.0f} B"
    return f"{count / 1e6:.1f} MB" if count else "0"


def _kinds(bill: Bill) -> str:
    more = any(EXTRA in entry[way] for entry in bill.ledger.clients.values() for way in ("up", "down"))
    return ", ".join([*(f"{kind}s" for kind in bill.up), *(["more"] * more)]) or "nothing"


def _network(world: World) -> str:
    return f"`{world.config.model.architecture}` on `{world.config.model.backbone}`"


def _list_deviations(method: Method) -> list[str]:
    count = say_count(len(deviations_of_all()), "row")
    others = f"{count} there are about all methods, others about training, scoring and data."
    parts = [f"No row of [deviations.md](../deviations.md) names it; {others}"]
    if rows := deviations(method):
        heads = ["where", "what the public code does", "what fmtlbench does", "to reproduce"]
        cells = [[row.where, row.public, row.ours, row.reproduce or "–"] for row in rows]
        source = f"From [deviations.md](../deviations.md), which names the tests too; {others}"
        parts = [source, _table(heads, cells)]
    if points := open_points(method):
        parts += ["What is left open, and how it is read here:", "\n".join(f"- {point}" for point in points)]
    return [re.sub(r"\]\((?!\.\./|https?:)", "](../", part) for part in parts]


def _rank(method: Method) -> list[str]:
    """Show published and own numbers; what fills pages, or compares the method with itself alone, is folded up."""
    heads = ["table", "scenario", "row", "number", "printed", "rank"]
    rows, folded, notes = [], [], {}
    for published, standings in published_standings(method):
        lines = [[published.source, f"`{s.scenario}`", s.row, s.column, s.printed, s.rank] for s in standings]
        for note in published_notes(published, method):
            notes.setdefault(note, []).append(published.entry["table"])
        if len(lines) > LONG or has_nobody_else(published, method):
            folded += [f"<details><summary>{published.source}: {published.title}</summary>"]
            folded += [_table(heads[1:], [line[1:] for line in lines], "lllrr"), "</details>"]
        else:
            rows += lines
    parts = ["**Published**, as printed; the rank is among the rows of the same block that have a number."]
    parts += [_table(heads, rows, "llllrr")] if rows else []
    parts += [*folded, *([_list_notes(notes)] if notes else [])]
    if not rows and not folded:
        parts = ["**Published**: no table of the papers at hand ([reports.md](../reports.md)) has it."]
    return [*parts, *_say_measured(method)]


def _say_measured(method: Method) -> list[str]:
    folder = RESULTS.relative_to(ROOT)
    results = measured(method)
    if not results:
        return [f"**Measured**: no run of it lies in [{folder}](../leaderboard/README.md)."]
    rows, notes = [], {}
    for result in results:
        scenario = f"`{result.board.runs[0].summary['scenario']}`"
        rows.append([scenario, f"`{result.preset}`", result.delta, str(result.seeds)])
        for note in result.board.marks:
            notes.setdefault(note, []).append(scenario)
    return [
        f"**Measured** in [{folder}](../leaderboard/README.md), on the embedded data: Δm % against Local, mean ± "
        "standard deviation over seeds, [95 % interval].",
        _table(["scenario", "preset", "Δm %", "seeds"], rows, "llrr"),
        _list_notes(notes),
    ]


def _list_notes(notes: Mapping[str, Sequence[str]]) -> str:
    """Return a list of notes, each with the places it is about."""
    return "\n".join(f"- {', '.join(places)}: {note}" for note, places in notes.items())


def _list_probes(method: Method) -> list[str]:
    titles = method_titles()
    rows = []
    for scenario, expectation in asked_by_probes(method):
        roles = ", ".join(f"`{role}`" for role in expectation.who if role in method.roles)
        rows.append([f"`{scenario.name}`", roles, expectation.words(titles, scenario.probe.family)])
    if not rows:
        return ["Nothing is expected of it: it has no roles."]
    return [
        "What [probes](../probes.md) expect, by role:",
        _table(["probe", "as it", "expected"], rows),
    ]


def _join(parts: Iterable[str]) -> str:
    """Put a page together: sentences and lists in lines of 120 characters, tables and the rest as they are."""
    return "\n\n".join(_wrap(part) for part in parts) + "\n"


def _wrap(part: str) -> str:
    if part.startswith(("|", "<", "#", "```")) or "$$" in part:
        return part
    return "\n".join(_wrap_line(line) for line in part.splitlines())


def _wrap_line(line: str) -> str:
    whole = re.sub(
        r"`[^`]*`|\$[^$]*\$", lambda span: span[0].replace(" ", "\0"), line
    )  # neither code nor math is split
    lines = wrap(
        whole, 120, subsequent_indent="  " * line.startswith("- "), break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """Return a Markdown table; `align` has l or r for each column."""
    dashes = [{"l": "---", "r": "---:"}[side] for side in align or "l" * len(heads)]
    lines = [heads, dashes, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Write all pages, remove cards of methods that are gone, and say how long it took."""
    start = time.perf_counter()
    pages = write_pages()
    for file in set(FOLDER.glob("*.md")) - set(pages):
        file.unlink()
    for file, text in pages.items():
        file.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(pages)} pages in {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()
