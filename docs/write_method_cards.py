"""Write docs/methods/: a card for every built-in method, and their index.

Run: python docs/write_method_cards.py   writes all pages; a test fails while one is stale

What a card says is read from the code, the presets and the other pages (method_facts.py); its equations stand in
docs/methods/equations.yml, the words around all this in docs/templates/method.md.j2.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import time
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
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
from page_parts import fill, wrap_lines

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
LONG = 8  # numbers of one table that are shown without asking


def write_pages() -> dict[Path, str]:
    """Return the text of every page, by file."""
    pages = {FOLDER / f"{method.name}.md": write_card(method) for method in built_in()}
    return {**pages, INDEX: write_index()}


def write_card(method: Method) -> str:
    """Return the card of one method."""
    known = load_equations()
    own = known["methods"][method.name]
    page = fill(
        "method.md.j2",
        method=method,
        does=_first_line(method),
        roles=[f"`{role}`: {ROLES[role]}" for role in method.roles],
        file=source_file(method),
        scenario=BILLED[0],
        needs=needed_options(method).split(),
        equations=own,
        symbols=[known["symbols"][key] for key in own["uses"]] + own.get("symbols", []),
        options=_list_options(method),
        given=_list_given(method),
        **_bill(method),
        about_all=say_count(len(deviations_of_all()), "row"),
        deviations=[
            [_from_here(text) for text in (row.where, row.public, row.ours, row.reproduce or "–")]
            for row in deviations(method)
        ],
        open_points=list(map(_from_here, open_points(method))),
        published=_list_published(method),
        measured=_list_measured(method),
        results=RESULTS.relative_to(ROOT),
        probes=_list_probes(method),
    )
    return wrap_lines(page)


def write_index() -> str:
    """Return the page that lists the cards."""
    world = load_world(BILLED[0])
    page = fill(
        "methods.md.j2",
        scenario=BILLED[0],
        preset=NETWORK,
        network=_network(world),
        families=load_equations()["families"],
        list_rows=lambda family: [_index_row(ALGORITHMS[name], world) for name in family["methods"]],
        left_out=load_equations()["left_out"],
    )
    return wrap_lines(page)


def _index_row(method: Method, world: World) -> list[str]:
    bill = make_bills(method, world)[0]
    sums = [_total(bill, direction) for direction in ("up", "down")]
    card = f"[{method.title}]({method.name}.md)"
    return [card, _first_line(method), ", ".join(method.roles) or "–", _kinds(bill), *sums]


# -- sections ----------------------------------------------------------------------------------------------------------


def _first_line(method: Method) -> str:
    """Return the first sentence of a method's file, without the name that the title says."""
    line = inspect.cleandoc(inspect.getmodule(method).__doc__ or "").splitlines()[0]
    sentence = line.partition(": ")[2] or line
    first = sentence.split()[0]
    return (
        sentence if len(first) == 1 and first != "a" else sentence[0].upper() + sentence[1:]
    )  # a symbol stays as it is


def _list_options(method: Method) -> list[list[str]]:
    described = describe_options(method)
    if not described:
        return []
    fields, hints = dataclasses.fields(method.Params), typing.get_type_hints(method.Params)
    rows = []
    for field, option in zip(fields, described):
        kind, allowed = _describe_type(hints[field.name], option["type"], field.metadata)
        default = f"`{as_typed(option['default'])}`"
        rows.append([f"`{option['option']}`", kind, default, allowed, option["meaning"]])
    return rows


def _list_given(method: Method) -> list[list[str]]:
    """Return what presets give a method."""
    return [
        [
            f"[{g.preset}](../../fmtlbench/config/presets/{g.preset}.yml)",
            f"`algo.{g.option}={as_typed(g.value)}`",
            g.source,
        ]
        for g in given_by_presets(method)
    ]


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


def _bill(method: Method) -> dict[str, Any]:
    """Return what travels: by scenario, by kind of round, with other options; and where the method is refused."""
    own, world = load_equations()["methods"][method.name], load_world(BILLED[0])
    usual = {scenario: make_bills(method, load_world(scenario)) for scenario in BILLED}
    algorithm = make_algorithm(method, world)
    variants = []
    for option in [*filter(None, [method.encoder_only]), *own.get("bills", [])]:
        for name in BILLED:
            lines = _sum_up(name, make_bills(method, load_world(name), option))
            if lines != _sum_up(name, usual[name]):  # the option is what is default anyway
                variants += [[f"`algo.{option}`", *line] for line in lines]
    return {
        "preset": NETWORK,
        "network": _network(world),
        "bill": _bill_table(usual) if any(bill.up for bill in usual[BILLED[0]]) else None,
        "beside": find_beside(algorithm),
        "say_span": lambda entry: _say_span(entry, algorithm.rounds),
        "anchors": method.local_objective is not Algorithm.local_objective,
        "home": _say_home(algorithm, world) if method.kept_home is not Algorithm.kept_home else [],
        "note": own.get("bill_note", ""),
        "kinds": [line for name, bills in usual.items() for line in _sum_up(name, bills) if len(bills) > 1],
        "variants": variants,
        "refused": refusals(method),
    }


def _bill_table(usual: Mapping[str, Sequence[Bill]]) -> dict[str, Any]:
    """Return heads and rows of the commonest kind of round; "beside" has a column where it says something."""
    rows = [row for name, bills in usual.items() if bills for row in _bill_rows(name, bills[0])]
    heads = ["scenario", "who", "encoder", "decoders", "heads", "beside", "up", "down"]
    if not any(row[5] for row in rows):
        heads, rows = heads[:5] + heads[6:], [row[:5] + row[6:] for row in rows]
    return {"heads": heads, "rows": rows}


def _say_home(algorithm: Algorithm, world: World) -> list[str]:
    """Return how much of each kind of row stays home."""
    sizes = []
    for kind in algorithm.shared(0):
        row = world.rows[0][kind]
        home = row.count() - row.count(algorithm.kept_home(kind, row.tensors))
        sizes.append(f"{_megabytes(4 * home) if home else 'nothing'} of each {kind}")
    return sizes


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


def _from_here(text: str) -> str:
    """Return text of docs/deviations.md with links as a card has them."""
    return re.sub(r"\]\((?!\.\./|https?:)", "](../", text)


def _list_published(method: Method) -> dict[str, Any]:
    """Return published numbers; what fills pages, or compares the method with itself alone, is to be folded up."""
    rows, folded, notes = [], [], {}
    for published, standings in published_standings(method):
        lines = [[published.source, f"`{s.scenario}`", s.row, s.column, s.printed, s.rank] for s in standings]
        for note in published_notes(published, method):
            notes.setdefault(note, []).append(published.entry["table"])
        if len(lines) > LONG or has_nobody_else(published, method):
            folded.append((published, [line[1:] for line in lines]))
        else:
            rows += lines
    return {"rows": rows, "folded": folded, "notes": notes}


def _list_measured(method: Method) -> dict[str, Any]:
    """Return own numbers."""
    rows, notes = [], {}
    for result in measured(method):
        scenario = f"`{result.board.runs[0].summary['scenario']}`"
        rows.append([scenario, f"`{result.preset}`", result.delta, str(result.seeds)])
        for note in result.board.marks:
            notes.setdefault(note, []).append(scenario)
    return {"rows": rows, "notes": notes}


def _list_probes(method: Method) -> list[list[str]]:
    titles = method_titles()
    rows = []
    for scenario, expectation in asked_by_probes(method):
        roles = ", ".join(f"`{role}`" for role in expectation.who if role in method.roles)
        rows.append([f"`{scenario.name}`", roles, expectation.words(titles, scenario.probe.family)])
    return rows


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
