"""Gather what a method's card says: options, bytes, refusals, deviations, published ranks, own runs, probes.

Nothing is typed in here: all is read from the methods, presets, docs/deviations.md, docs/methods/equations.yml,
published tables and results/.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from toy_rounds import DECODER, ENCODER, layout, local_steps, measured_for

from fmtlbench.algorithms import ALGORITHMS, Algorithm
from fmtlbench.base.located import Tree, locate
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.config.presets import preset_files, read_preset
from fmtlbench.config.resolve import parse_overrides, resolve_options, resolve_without_method
from fmtlbench.config.run_config import RunConfig
from fmtlbench.data.views import name_parties
from fmtlbench.engine.admit import why_unfit
from fmtlbench.engine.client_models import build_shapes
from fmtlbench.engine.federation import EXTRA
from fmtlbench.engine.ledger import Ledger
from fmtlbench.exchange import TRAVELLING_KINDS, Owner, Party, Round, Rows, TensorSlice
from fmtlbench.exchange.hooks import build_options, refusal_of
from fmtlbench.networks.flat import FlatModel
from fmtlbench.reports.collect import collect
from fmtlbench.reports.delta import Delta
from fmtlbench.reports.labels import zoo_rank
from fmtlbench.reports.leaderboard import Board, boards
from fmtlbench.reports.papers.published import Published, as_table, load_published, number, published_names
from fmtlbench.reports.table import mean_cell
from fmtlbench.scenarios import Expectation, Scenario, load_scenario, probe_names, scenario_files

HERE = Path(__file__).parent
ROOT = HERE.parent

PACKAGE = "fmtlbench.algorithms."
RESULTS = ROOT / "results" / "leaderboard"
BILLED = ("st_mt_1", "iid1_sdmt")  # different tasks, decoder by decoder; the same tasks, whole models
NETWORK = "paper"  # the preset whose network is billed
DEFAULT = "nano"  # the preset that runs have by default
ABSENT = "`federation.participation` below 1"  # a place where a method may have no meaning

Method = type[Algorithm]


@cache
def load_equations() -> dict[str, Any]:
    """Return docs/methods/equations.yml: the common symbols, and what each method says."""
    return load_yaml(HERE / "methods" / "equations.yml")


def built_in() -> list[Method]:
    """Return the methods of the package, not those of entry points, in the order of the papers' tables."""
    names = [name for name in ALGORITHMS if ALGORITHMS.home_of(name).startswith(PACKAGE)]
    return [ALGORITHMS[name] for name in sorted(names, key=zoo_rank)]


def source_file(method: Method) -> str:
    """Return the file that implements a built-in method, from the repository's top."""
    return f"algorithms/{ALGORITHMS.home_of(method.name).removeprefix(PACKAGE)}.py"


def titled(text: str, title: str) -> bool:
    """Say whether a text names a method; a title of several words may begin with a small letter inside a sentence."""
    flags = re.IGNORECASE if " " in title else 0
    return re.search(rf"(?<![\w-]){re.escape(title)}(?![\w-])", text, flags) is not None


# -- options -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """The value that a preset gives an option in place of the default, and the comment that stands behind it."""

    preset: str
    option: str
    value: Any
    source: str


def given_by_presets(method: Method) -> list[Given]:
    """Return what the installed presets give a method."""
    found = []
    for preset, tree in _presets().items():
        for option, value in tree.get("algorithms", {}).get(method.name, {}).items():
            place = locate(tree, f"algorithms.{method.name}.{option}")
            found.append(Given(preset, option, value, _comment_at(place)))
    return found


@cache
def _presets() -> dict[str, Tree]:
    return {name: read_preset(name) for name in preset_files()}


def _comment_at(place: str) -> str:
    """Return the comment at the end of a line that is given as file:line."""
    file, _, line = place.rpartition(":")
    return Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1].partition(" # ")[2].strip()


# -- what travels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of a client's parameters as it would travel, without its values."""

    tensors: tuple[TensorSlice, ...]

    def count(self, home: Collection[TensorSlice] = ()) -> int:
        """Return how many numbers it has, but for tensors that stay home."""
        return self.tensors[-1].stop - sum(t.stop - t.start for t in home)


@dataclass(frozen=True)
class World:
    """A scenario under a preset: its clients and their rows."""

    config: RunConfig
    parties: tuple[Party, ...]
    rows: Mapping[int, Mapping[str, Row]]  # client → kind; all of its rows of a kind are alike
    channels: int  # of the encoder's deepest map


@cache
def load_world(scenario: str, preset: str = NETWORK) -> World:
    """Count the networks of a scenario's clients, once for all methods."""
    return make_world(resolve_without_method(scenario, preset))


def make_world(config: RunConfig) -> World:
    """Count the networks of a config's clients, which are built without storage."""
    specs = config.scenario.parties()
    parties = tuple(name_parties(config, specs, [1] * len(specs)))
    merged = () if config.federation.exchange == "decoders" else ("decoder", *(["head"] * config.heads_travel))
    flats: dict[tuple, FlatModel] = {}
    rows = {}
    for party in parties:
        kind_of_client = (party.dataset, party.tasks)
        if kind_of_client not in flats:
            travel = config.federation.statistics == "travel"
            flats[kind_of_client] = FlatModel(build_shapes(config, party), merged, travel)
        flat = flats[kind_of_client]
        rows[party.index] = {kind: Row(flat.layout(kind)) for kind in TRAVELLING_KINDS}
    return World(config, parties, rows, flat.model.encoder.channels[-1])


@dataclass(frozen=True)
class Bill:
    """What travels in one kind of round."""

    rounds: tuple[int, ...]  # indices of those of the run that are such
    up: tuple[str, ...]  # kinds
    down: tuple[str, ...]
    rows: Mapping[int, Mapping[str, int]]  # client → kind → how many rows of it travel
    ledger: Ledger


def make_bills(method: Method, world: World, options: str = "") -> list[Bill]:
    """Bill the rounds of a run in which everybody is there, an entry for every kind of round, the commonest first.

    The method is asked with rows of a toy size what it sends back, and with rows of the real size what stays home.
    What travels beside rows is what equations.yml says. Where the method has no meaning there is no bill. `options` are
    as --set takes them, beside those that the method needs.
    """
    algorithm = make_algorithm(method, world, options)
    if refusal_of(method, algorithm.params, world.config.scenario, world.config.federation):
        return []
    sent: dict[tuple, tuple[str, ...]] = {}  # by what went up: what comes down
    found: dict[str, list[Bill]] = {}
    for index in range(algorithm.rounds):
        owners = {kind: tuple(_owners(algorithm, index, kind)) for kind in algorithm.shared(index)}
        key = tuple(owners.items())
        # Which rows travel may depend on what clients have told so far: such a method is told round by round.
        if key not in sent or method.rows_sent is not Algorithm.rows_sent:
            sent[key] = tuple(algorithm.aggregate(_make_toy_round(algorithm, index, owners))) if owners else ()
        bill = _bill_round(algorithm, world, index, owners, sent[key])
        found.setdefault(repr(bill.ledger.clients), []).append(bill)
    bills = [replace(alike[0], rounds=tuple(bill.rounds[0] for bill in alike)) for alike in found.values()]
    return sorted(bills, key=lambda bill: -len(bill.rounds))


def make_algorithm(method: Method, world: World, options: str = "") -> Algorithm:
    """Make a method for a scenario's clients, with the options that its card needs and others."""
    given = parse_overrides([*needed_options(method).split(), *options.split()])
    algorithm = method(build_options(method, given), world.parties)
    algorithm.rounds = world.config.federation.rounds
    return algorithm


def needed_options(method: Method) -> str:
    """Return the options without which the card's first scenario is refused, as --set takes them; as a rule none."""
    return load_equations()["methods"][method.name].get("needs", "")


def _owners(algorithm: Algorithm, index: int, kind: str) -> Iterator[Owner]:
    """Go through the rows of a kind that travel in a round."""
    for party in algorithm.parties:
        names = algorithm.rows_sent(index, party, kind)
        if names is None:
            names = [("main", task) for task in ([None] if kind == "encoder" or party.merged else party.tasks)]
        for track, task in names:
            yield Owner(party.index, task, track)


def _make_toy_round(algorithm: Algorithm, index: int, owners: Mapping[str, Sequence[Owner]]) -> Round:
    """Return a round with small random rows, and with what its clients would have told."""
    generator = torch.Generator().manual_seed(index)
    made = {}
    for kind, of_kind in owners.items():
        tensors = layout(ENCODER if kind == "encoder" else DECODER)
        before, step = (torch.randn(len(of_kind), tensors[-1].stop, generator=generator) for _ in range(2))
        made[kind] = Rows(tuple(of_kind), before, before + step / 10, tensors)
    rnd = Round(index, algorithm.parties, **made, steps=local_steps(algorithm.parties))
    if algorithm.name == "mas":
        told = {party.index: _part_tasks(party) for party in algorithm.parties if len(party.tasks) > 1}
    else:
        told = measured_for(algorithm.name, algorithm.parties, rnd)
    return replace(rnd, measured=told)


def _part_tasks(party: Party) -> dict[str, torch.Tensor]:
    """Return affinities by which every second task of a client helps the others of these, and harms the rest."""
    signs = torch.tensor([(-1.0) ** place for place in range(len(party.tasks))])
    return {"affinity": torch.outer(signs, signs)}


def _bill_round(
    algorithm: Algorithm, world: World, index: int, owners: Mapping[str, Sequence[Owner]], down: tuple[str, ...]
) -> Bill:
    """Bill one round as the engine does: rows without what stays home, and what travels beside them."""
    ledger = Ledger(algorithm.billed_copies())
    rows: dict[int, dict[str, int]] = {party.index: dict.fromkeys(owners, 0) for party in world.parties}
    for kind, of_kind in owners.items():
        for owner in of_kind:
            rows[owner.client][kind] += 1
            whole = world.rows[owner.client][kind]
            row = torch.empty(whole.count(algorithm.kept_home(kind, whole.tensors)), device="meta")
            for way in ("up", "down") if kind in down else ("up",):
                ledger.book(world.parties[owner.client].id, way, kind, [row])
    for entry in find_beside(algorithm):
        for party in world.parties if entry.first <= index + 1 <= entry.last else ():
            numbers = {kind: count * world.rows[party.index][kind].count() for kind, count in rows[party.index].items()}
            if count := entry.count(algorithm, world, party, numbers):
                ledger.book_bytes(party.id, entry.way, EXTRA, count * entry.bytes)
    return Bill((index,), tuple(owners), down, rows, ledger)


@dataclass(frozen=True)
class Beside:
    """What travels beside rows, as equations.yml says it."""

    way: str  # up or down
    what: str
    numbers: str  # how many they are, by a formula
    bytes: int  # of each
    first: int  # round
    last: int

    def count(self, algorithm: Algorithm, world: World, party: Party, numbers: Mapping[str, int]) -> int:
        """Return how many numbers it is for a client whose rows have so many by kind."""
        known = {
            "encoder": numbers.get("encoder", 0),
            "decoders": numbers.get("decoder", 0),
            "tasks": len(party.tasks),
            "channels": world.channels,
            "clients": len(world.parties),
        }
        return _calculate(self.numbers, algorithm, **known)


def find_beside(algorithm: Algorithm) -> list[Beside]:
    """Return what a method sends beside rows."""
    return [
        Beside(
            entry["way"],
            entry["what"],
            str(entry["numbers"]),
            entry.get("bytes", 4),
            _calculate(entry.get("from", 1), algorithm),
            _calculate(entry.get("until", algorithm.rounds), algorithm),
        )
        for entry in load_equations()["methods"][algorithm.name].get("beside", [])
    ]


def _calculate(formula: str | int, algorithm: Algorithm, **known: int) -> int:
    """Return what arithmetic in our own equations.yml comes to."""
    names = {"min": min, "method": algorithm, **vars(algorithm.params), **known}
    return eval(str(formula), {"__builtins__": {}}, names)


def refusals(method: Method) -> dict[str, list[str]]:
    """Return why a method has no meaning somewhere, and where: scenarios with the default preset, absent clients."""
    options = resolve_options(method.name, DEFAULT, {})[1]
    found: dict[str, list[str]] = {}
    for place, config in _places().items():
        reason = why_unfit(config, method, options)
        if reason and not (place == ABSENT and f"`{BILLED[0]}`" in found.get(reason, ())):  # absence is not why
            found.setdefault(reason, []).append(place)
    return found


@cache
def _places() -> dict[str, RunConfig]:
    """Return all scenarios with the default preset, and one of them with clients that miss rounds."""
    places = {f"`{name}`": resolve_without_method(name, DEFAULT) for name in scenario_files()}
    first = places[f"`{BILLED[0]}`"]
    return {**places, ABSENT: replace(first, federation=replace(first.federation, participation=0.5))}


# -- deviations --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deviation:
    """A row of docs/deviations.md about methods."""

    where: str
    public: str
    ours: str
    reproduce: str


def deviations(method: Method) -> list[Deviation]:
    """Return the rows that name a method; what stands in brackets there is whose code it is."""
    return [row for row in _deviation_rows() if titled(re.sub(r"\(.*?\)", "", row.where), method.title)]


def deviations_of_all() -> list[Deviation]:
    """Return the rows that are about every method."""
    return [row for row in _deviation_rows() if row.where.split()[0] == "all"]


def open_points(method: Method) -> list[str]:
    """Return what docs/deviations.md says of a method where its paper leaves something open."""
    section = _deviation_section("Where a paper leaves something open")
    points = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    return [" ".join(point.split()) for point in points if titled(point, method.title)]


@cache
def _deviation_rows() -> list[Deviation]:
    found = []
    for title in ("Methods", "Other public implementations"):
        where = ""
        for line in _deviation_section(title).splitlines():
            if not line.startswith("| ") or line.startswith(("| Method", "| Code")):
                continue
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            where = cells[0] or where  # an empty cell repeats the one above
            found.append(Deviation(where, cells[1], cells[2], cells[3] if len(cells) > 4 else ""))
    return found


@cache
def _deviation_section(title: str) -> str:
    text = (HERE / "deviations.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


# -- published and own numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """One number of a method in a published table, and its rank among the rows of its block."""

    scenario: str
    row: str
    column: str
    printed: str
    rank: str


def published_standings(method: Method) -> Iterator[tuple[Published, list[Standing]]]:
    """Go through the tables that have a method: by Δ where they print one, else by each score.

    Left out is a table without Δ that has no other method.
    """
    for published in map(load_published, published_names()):
        found = _of_columns(published, method) if method.title in published.deltas else _of_rows(published, method)
        if found and (published.deltas or not has_nobody_else(published, method)):
            yield published, found


def has_nobody_else(published: Published, method: Method) -> bool:
    """Say whether all rows of a table are variants of one method."""
    return all(_is_variant(published.label(row), method) for row in published.rows)


def _is_variant(label: str, method: Method) -> bool:
    return re.fullmatch(rf"{re.escape(method.title)}(-E)?( \(.*\))?", label) is not None


def _of_columns(published: Published, method: Method) -> list[Standing]:
    """Rank a method among its neighbours in a row, where columns are methods."""
    found = []
    for row in published.rows:
        printed = row[method.title]
        rank = _rank(printed, [row[name] for name in published.deltas])
        found.append(Standing(published.scenario(row), published.row_name(row), "Δ", printed, rank))
    return found


def _of_rows(published: Published, method: Method) -> list[Standing]:
    table, block = as_table(published), published.entry.get("blocks", 0)
    places = [i for i, c in enumerate(table.columns) if c.key in (published.deltas or published.scores)]
    standings = []
    for source, row in zip(published.rows, table.rows):
        label = published.label(source)
        if not _is_variant(label, method):
            continue
        rivals = [other for other in table.rows if other.labels[:block] == row.labels[:block]]
        name, printed = published.row_name(source), source.get("method", "")
        if label != published.index["labels"].get(printed, printed):
            name += f" (here {label})"
        for place in places:
            column = table.columns[place]
            texts = [other.cells[place].printed or other.cells[place].word for other in (row, *rivals)]
            title = "Δ" if column.key in published.deltas else f"{column.title} {column.metric}"
            if len(published.deltas) > 1:
                title += f" {column.heading}"
            rank = _rank(texts[0], texts[1:], column.higher_is_better)
            standings.append(Standing(published.scenario(source), name, title, texts[0], rank))
    return standings


def _rank(mine: str, everybody: Sequence[str], up: bool | None = True) -> str:
    """Return a printed number's place among those of its block; a word has none."""
    numbers = [value for value in map(number, everybody) if value is not None]
    if (own := number(mine)) is None:
        return "–"
    better = sum(value < own if up is False else value > own for value in numbers)
    return f"{better + 1} of {len(numbers)}"


def published_notes(published: Published, method: Method) -> list[str]:
    """Return the notes of a table that are about a method."""
    about = re.compile(rf"{re.escape(method.title)}:|inferred: .*? as {re.escape(method.title)}(-E)?:")
    return [note for note in published.notes if about.match(note)]


@dataclass(frozen=True)
class Measured:
    """Δm of a method in runs that lie under results/."""

    board: Board
    preset: str
    delta: str
    seeds: int


def measured(method: Method) -> list[Measured]:
    """Return what own runs say of a method, scenario by scenario."""
    found = []
    for board in _boards():
        for key in (key for key in board.methods if key[0] == method.name):
            cell, by_seed = board.cells[key], board.gains[key].by_seed
            spread = mean_cell(list(by_seed.values())).std
            text = f"{cell.value:.2f}{cell.signs}"
            if cell.interval is not None:
                text += f" ± {spread:.2f} [{cell.interval[0]:.2f}, {cell.interval[1]:.2f}]"
            found.append(Measured(board, board.runs[0].summary["preset"], text, len(by_seed)))
    return found


@cache
def _boards() -> list[Board]:
    return boards(collect([RESULTS]), None, "global", Delta())


# -- probes ------------------------------------------------------------------------------------------------------------


def asked_by_probes(method: Method) -> Iterator[tuple[Scenario, Expectation]]:
    """Go through what probes expect of a method's roles."""
    for scenario in _probes():
        for expectation in scenario.probe.expect:
            if set(expectation.who) & set(method.roles) and expectation.than != method.name:
                yield scenario, expectation


@cache
def _probes() -> list[Scenario]:
    return [load_scenario(name) for name in probe_names()]
