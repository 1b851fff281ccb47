"""A paper's table made of our runs: in the paper's own layout, and line by line beside what it prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..code_notes import code_notes
from ..collect import Collection, RunRecord
from ..cost import cost_tables
from ..delta import Delta, Gain, Reference, Units, gain, mark_differences, primary_scores
from ..settings import describe, merge_settings, say_departures
from ..table import Cell, Column, Row, Table
from .cells import (
    UNLIKE,
    beside_rows,
    column_gain,
    column_means,
    column_spreads,
    in_columns,
    measured_column,
    score_cell,
)
from .published import Published, paper_setting
from .recipes import COST, DELTAS, NETWORKS, SCORES, Recipe, Wanted


@dataclass(frozen=True)
class Made:
    """What became of the runs of one `Wanted`: finished ones by seed; `word` and `why` say it where there are none."""

    runs: Mapping[int, RunRecord]
    word: str = ""  # NULL, failed; empty: not run
    why: str = ""
    own: Sequence[str] = ()  # config values that the recipe itself sets


MadeRuns = Mapping[Wanted, Made]
At = tuple[int, str]  # row and column of a table
Filled = dict[At, tuple[Cell, Mapping[int, float]]]  # a cell, and its value of each seed
Filling = tuple[Sequence[Column], Filled, list[str]]  # columns, what is known of their cells, notes


@dataclass(frozen=True)
class Reproduced:
    """A table of ours: how it looks, and its values by seed; a value that no seed belongs to has seed 0."""

    recipe: Recipe
    columns: tuple[Column, ...]
    cells: Mapping[int, Sequence[Cell]]  # by number of the published row
    by_seed: Mapping[At, Mapping[int, float]]
    caption: str
    notes: tuple[str, ...]
    unlike: tuple[str, ...]  # what is not as in the paper

    @property
    def table(self) -> Published:
        assert self.recipe.table is not None
        return self.recipe.table

    def values(self, row: Mapping[str, str], column: str) -> dict[int, float] | float | None:
        """Return a cell's numbers by seed, or one that is counted; None where there are none: evidence for claims."""
        found = self.by_seed.get((self.table.rows.index(dict(row)), column), {})
        if self.recipe.kind == NETWORKS:
            return found.get(0)
        return {seed: value for seed, value in found.items() if math.isfinite(value)} or None

    def tables(self) -> list[Table]:
        """Return the table in the paper's layout, and the one with measured, published and gap."""
        rows, beside = [], []
        for number, cells in self.cells.items():
            published = self.table.rows[number]
            labels = tuple(published[head] for head in self.table.heads)
            rows.append(Row(labels, tuple(cells)))
            beside += beside_rows(labels, self.columns, cells, published)
        layout = self._table(self.recipe.name, rows, ()).marked(self.table.entry.get("blocks", 0))
        return [layout, self._table(f"{self.recipe.name}-beside", beside, ("Value",))]

    def _table(self, name: str, rows: Sequence[Row], more: tuple[str, ...]) -> Table:
        heads = (*(head.capitalize() for head in self.table.heads), *more)
        told = [f"{UNLIKE} not the paper's setting: {', '.join(self.unlike)}"] if self.unlike else []
        gap = ["gap: measured − published"] if more and self.table.is_printed else []
        title = f"{self.recipe.place}, {self.recipe.title}" + (": measured beside published" if more else "")
        return Table(name, title, self.caption, heads, self.columns, tuple(rows), (*told, *gap, *self.notes))


def reproduce_table(recipe: Recipe, made: MadeRuns, collection: Collection, remarks: Sequence[str] = ()) -> Reproduced:
    """Make a table of finished runs.

    Args:
        recipe: Of a table.
        made: What became of the runs that it wants.
        collection: The finished ones.
        remarks: What else a reader must know; they stand among the first notes.
    """
    table, runs = recipe.table, collection.runs
    assert table is not None, recipe.name
    unlike = tuple(find_unlike(recipe, made.values()))
    fill = {SCORES: _scores, DELTAS: _deltas, COST: _cost}[recipe.kind]
    columns, filled, told = fill(recipe, table, made, collection, UNLIKE if unlike else "")
    cells: dict[int, list[Cell]] = {}
    for (number, only), asked in recipe.cells.items():
        absent = Cell(word=made[asked].word, note=made[asked].why)
        for column in [only] if only else table.columns:
            cells.setdefault(number, []).append(filled.get((number, column), (absent, {}))[0])
    by_seed = {at: values for at, (_, values) in filled.items()}
    measured = f"measured: {describe(runs, spread=recipe.spread)}" if runs else "nothing measured yet"
    notes = (*remarks, *dict.fromkeys([*told, *recipe.notes, *code_notes(runs)]))
    return Reproduced(recipe, tuple(columns), cells, by_seed, f"{recipe.source} · {measured}", notes, unlike)


def count_table(recipe: Recipe, values: Sequence[Mapping[str, float]], preset: str) -> Reproduced:
    """Make a table of networks, of which `values` are counted row by row; nothing is run for it."""
    table = recipe.table
    assert table is not None
    unlike = f"preset {preset} (paper: {recipe.preset}), with its networks in the places of the paper's"
    told = () if preset == recipe.preset else (unlike,)
    columns = tuple(table.column(name, mark=UNLIKE if told else "") for name in table.columns)
    cells = {number: [Cell(of.get(name)) for name in table.columns] for number, of in enumerate(values)}
    by_seed = {(n, name): {0: value} for n, of in enumerate(values) for name, value in of.items()}
    caption = f"{recipe.source} · scenario {', '.join(table.scenarios)} · preset {preset} · counted, nothing was run"
    return Reproduced(recipe, columns, cells, by_seed, caption, recipe.notes, told)


def find_unlike(recipe: Recipe, made: Iterable[Made]) -> list[str]:
    """List what keeps the runs from being a repetition of the paper's."""
    theirs, found = paper_setting(recipe.paper), []
    for one in made:
        for run in one.runs.values():
            for key in ("preset", "data", "rounds"):
                if run.summary[key] != theirs[key] and not (key == "rounds" and "federation.rounds" in one.own):
                    found.append(f"{key} {run.summary[key]} (paper: {theirs[key]})")
            departures = run.summary.get("departures")
            if departures is None:
                found.append("departures from the preset were not recorded")
                continue
            own = {p: v for p, v in departures.items() if p not in one.own and p != "federation.rounds"}
            found += [words] if (words := say_departures(own)) else []
    return list(dict.fromkeys(found))


def figure_notes(recipe: Recipe, made: MadeRuns) -> list[str]:
    """Say what is to be known of the runs that a figure shows: how they differ from the paper's, and what they are."""
    shown = [made[asked] for asked in recipe.lines]
    runs = [run for one in shown for run in one.runs.values()]
    unlike = find_unlike(recipe, shown)
    told = [f"not the paper's setting: {', '.join(unlike)}"] if unlike else []
    return [f"{recipe.source} · measured: {describe(runs)}", *told, *code_notes(runs)]


# -- kinds of tables ---------------------------------------------------------------------------------------------------


def _scores(recipe: Recipe, table: Published, made: MadeRuns, collection: Collection, mark: str) -> Filling:
    """Fill a table in whose rows stand scores, with their spread over clients, and Δ."""
    filled, notes = _row_gains(recipe, table, made)
    for (number, _), asked in recipe.cells.items():
        if seeds := in_columns(table, made[asked].runs):
            for column in table.scores:
                filled[number, column] = score_cell(column, seeds, recipe.spread), column_means(column, seeds)
                filled[number, f"{column}_std"] = Cell(), column_spreads(column, seeds)
    if recipe.spread == "clients":
        notes.insert(0, "± over clients: of their means over seeds (n - 1)")
    return [measured_column(table, name, mark) for name in table.columns], filled, notes


def _row_gains(recipe: Recipe, table: Published, made: MadeRuns) -> tuple[Filled, list[str]]:
    """Return Δ of every row and Δ column, and what Δ and its marks mean."""
    filled: Filled = {}
    notes: list[str] = []
    for column, split in table.deltas.items():
        gains: dict[str, Gain] = {}
        numbers: dict[str, int] = {}
        zeros, titles = set(), []
        for (number, _), asked in recipe.cells.items():
            if not made[asked].runs:
                continue
            name = table.row_name(table.rows[number])
            base = recipe.reference(number)
            gains[name], numbers[name] = _gain(recipe, table, made, asked, base, split), number
            titles.append(_name(base))
            if base is not None and _same(made[asked], made[base]):
                zeros.add(name)
        title = " or ".join(dict.fromkeys(titles))
        marked, marks = mark_differences(gains, zeros, title)
        filled |= {(numbers[name], column): (marked[name], gains[name].by_seed) for name in gains}
        notes += [Delta().words(title), *marks] if gains else []
    return filled, notes


def _deltas(recipe: Recipe, table: Published, made: MadeRuns, collection: Collection, mark: str) -> Filling:
    """Fill a table whose cells are Δ and whose columns are methods."""
    filled: Filled = {}
    for (number, column), asked in recipe.cells.items():
        if made[asked].runs:
            found = _gain(recipe, table, made, asked, recipe.target, recipe.split(table.rows[number]))
            filled[number, column] = found.cell, found.by_seed
    columns = [Column(name, f"{name} {mark}".strip(), "Δ %") for name in table.columns]
    return columns, filled, [Delta().words(_name(recipe.target))]


def _cost(recipe: Recipe, table: Published, made: MadeRuns, collection: Collection, mark: str) -> Filling:
    """Fill a table of costs: the cells of `fmtlbench cost` under the paper's convention, in the paper's order."""
    if not collection.runs:
        return [table.column(name) for name in table.columns], {}, []
    target, keys = recipe.target, recipe.entry["values"]
    assert target is not None
    merged = merge_settings(collection, ["architecture"])
    places = {run.folder: run.row for run in merged.runs}
    reference = Reference(dict(made[target].runs), _name(target)) if made[target].runs else None
    costs = _count_costs(recipe, merged, reference)
    seeds = sorted({run.summary["seed"] for run in merged.runs})
    each = {seed: _count_costs(recipe, _of_seed(merged, seed), reference) for seed in seeds}
    filled: Filled = {}
    for (number, _), asked in recipe.cells.items():
        if runs := made[asked].runs:
            place = places[next(iter(runs.values())).folder]
            for column in table.columns:
                of = {seed: _find_cell(each[seed], place, keys[column]).value for seed in runs}
                by_seed = {seed: value for seed, value in of.items() if value is not None}
                filled[number, column] = _find_cell(costs, place, keys[column]), by_seed
    columns = []
    for name in table.columns:
        own = costs.columns[costs.column(keys[name])]
        columns.append(Column(name, f"{own.title} {mark}".strip(), "", own.heading, own.digits))
    return columns, filled, list(costs.notes)


def _count_costs(recipe: Recipe, collection: Collection, reference: Reference | None) -> Table:
    targets, convention = recipe.entry["targets"], recipe.entry["convention"]
    (costs,) = cost_tables(collection, targets, convention=convention, delta=Delta(reference=reference))
    return costs


def _of_seed(collection: Collection, seed: int) -> Collection:
    runs = [run for run in collection.runs if run.summary["seed"] == seed]
    frame = collection.frame[collection.frame["run"].isin([run.name for run in runs])]
    return replace(collection, runs=runs, frame=frame)


def _find_cell(table: Table, labels: tuple[str, ...], key: str) -> Cell:
    row = next(row for row in table.rows if row.labels == labels)
    return row.cells[table.column(key)]


# -- Δ of runs ---------------------------------------------------------------------------------------------------------


def _gain(recipe: Recipe, table: Published, made: MadeRuns, asked: Wanted, base: Wanted | None, split: str) -> Gain:
    """Return Δ of runs over the paper's columns, or over all primary scores where it prints none."""
    ours, title = made[asked].runs, _name(base)
    if base is None or not made[base].runs:
        return Gain(Cell(note=f"no Δ: no run of {title}"))
    if _same(made[asked], made[base]):
        return Gain.zero(ours)
    theirs = made[base].runs
    # Compared with runs of another table, columns that those do not have are left out, as for a named reference.
    rule = Delta(reference=Reference(dict(theirs), title) if base == recipe.target else None)
    if table.scores:
        return column_gain(table, in_columns(table, ours), in_columns(table, theirs), split, title, rule)
    up: dict[tuple[str, str], bool] = {}

    def units(run: RunRecord) -> Units:
        scores, directions = primary_scores(run.summary["scores"], split)
        up.update(directions)
        return rule.units(scores)

    mine, base_units = ({seed: units(run) for seed, run in side.items()} for side in (ours, theirs))
    return gain(mine, base_units, up, title, rule)


def _same(one: Made, other: Made) -> bool:
    return {run.folder for run in one.runs.values()} == {run.folder for run in other.runs.values()}


def _name(base: Wanted | None) -> str:
    if base is None:
        return "the reference"
    told = [str(value).upper() if key == "model.architecture" else str(value) for key, value in base.overrides.items()]
    return f"{base.label} of {base.scenario}" + (f" ({', '.join(told)})" if told else "")
