"""A paper's table made of our runs: in the paper's own layout, and line by line beside what it prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .code_notes import code_notes
from .collect import Collection, RunRecord
from .compare import UNLIKE
from .cost import cost_tables
from .delta import Delta, Gain, Reference, Units, gain, mark_differences, primary_scores
from .paper_cells import (
    beside_rows,
    column_means,
    column_spreads,
    column_units,
    directions,
    in_columns,
    score_cell,
    score_column,
)
from .published import Published, paper_setting
from .recipes import COST, DELTAS, NETWORKS, SCORES, Recipe, Wanted
from .settings import describe, merge_settings, say_departures
from .table import Cell, Column, Row, Table


@dataclass(frozen=True)
class Made:
    """What became of the runs of one `Wanted`: finished ones by seed; `word` and `why` say it where there are none."""

    runs: Mapping[int, RunRecord]
    word: str = ""  # NULL, failed; empty: not run
    why: str = ""
    own: Sequence[str] = ()  # config values that the recipe itself sets


MadeRuns = Mapping[Wanted, Made]
ByRow = dict[tuple[int, str], dict[int, float]]  # (row, column) → value of each seed


@dataclass(frozen=True)
class Reproduced:
    """A table of ours: how it looks, and its values by seed; a value that no seed belongs to has seed 0."""

    recipe: Recipe
    columns: tuple[Column, ...]
    cells: Mapping[int, Sequence[Cell]]  # by number of the published row
    by_seed: ByRow
    caption: str
    notes: tuple[str, ...]
    unlike: tuple[str, ...]  # what is not as in the paper

    @property
    def published(self) -> Published:
        assert self.recipe.table is not None
        return self.recipe.table

    def values(self, number: int, column: str) -> dict[int, float]:
        """Return a cell's value of every seed; {} where nothing was measured."""
        return self.by_seed.get((number, column), {})

    def evidence(self) -> MeasuredEvidence:
        """Return the values for the papers' claims."""
        return MeasuredEvidence(self.published, self)

    def tables(self) -> list[Table]:
        """Return the table in the paper's layout, and the one with measured, published and gap."""
        return [self._in_layout(), self._beside()]

    def _in_layout(self) -> Table:
        rows = tuple(Row(self._labels(number), tuple(cells)) for number, cells in self.cells.items())
        table = self._table(self.recipe.name, rows, ())
        return table.marked(self.published.entry.get("blocks", 0))

    def _beside(self) -> Table:
        rows: list[Row] = []
        for number, cells in self.cells.items():
            rows += beside_rows(self._labels(number), self.columns, cells, self.published.rows[number])
        return self._table(f"{self.recipe.name}-beside", tuple(rows), ("Value",))

    def _labels(self, number: int) -> tuple[str, ...]:
        return tuple(self.published.rows[number][head] for head in self.published.heads)

    def _table(self, name: str, rows: tuple[Row, ...], more: tuple[str, ...]) -> Table:
        heads = (*(head.capitalize() for head in self.published.heads), *more)
        told = [f"{UNLIKE} not the paper's setting: {', '.join(self.unlike)}"] if self.unlike else []
        gap = ["gap: measured − published"] if more and self.published.is_printed else []
        title = f"{self.recipe.place}, {self.recipe.title}" + (": measured beside published" if more else "")
        return Table(name, title, self.caption, heads, self.columns, rows, (*told, *gap, *self.notes))


@dataclass(frozen=True)
class MeasuredEvidence:
    """The measured numbers of one published table, by seed, as `reports.claims` takes them."""

    table: Published
    made: Reproduced

    def values(self, row: Mapping[str, str], column: str) -> dict[int, float] | float | None:
        """Return a cell's numbers by seed, or one that is counted; None where there are none."""
        found = self.made.values(self.table.rows.index(dict(row)), column)
        if self.made.recipe.kind == NETWORKS:
            return found.get(0)
        return {seed: value for seed, value in found.items() if math.isfinite(value)} or None


def reproduce_table(recipe: Recipe, made: MadeRuns, collection: Collection, remarks: Sequence[str] = ()) -> Reproduced:
    """Make a table of finished runs.

    Args:
        recipe: Of a table.
        made: What became of the runs that it wants.
        collection: The finished ones.
        remarks: What else a reader must know; they stand among the first notes.
    """
    make = {SCORES: _scores, DELTAS: _deltas, COST: _cost}
    table = make[recipe.kind](recipe, made, collection, tuple(find_unlike(recipe, made.values())))
    return replace(table, notes=(*remarks, *table.notes))


def count_table(recipe: Recipe, values: Sequence[Mapping[str, float]], preset: str) -> Reproduced:
    """Make a table of networks, of which `values` are counted row by row; nothing is run for it."""
    table = recipe.table
    assert table is not None
    own = preset == recipe.preset
    unlike = (
        () if own else (f"preset {preset} (paper: {recipe.preset}), with its networks in the places of the paper's",)
    )
    columns = tuple(Column(name, name.replace("_", " ") + ("" if own else f" {UNLIKE}")) for name in table.columns)
    cells = {number: [Cell(of.get(name)) for name in table.columns] for number, of in enumerate(values)}
    by_seed = {(n, name): {0: value} for n, of in enumerate(values) for name, value in of.items()}
    caption = f"{recipe.source} · scenario {', '.join(table.scenarios)} · preset {preset} · counted, nothing was run"
    return Reproduced(recipe, columns, cells, by_seed, caption, recipe.notes, unlike)


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


def _scores(recipe: Recipe, made: MadeRuns, collection: Collection, unlike: tuple[str, ...]) -> Reproduced:
    table = recipe.table
    assert table is not None
    mark = UNLIKE if unlike else ""
    columns = [_column(table, name, mark) for name in table.columns]
    cells: dict[int, list[Cell]] = {}
    by_seed: ByRow = {}
    gains, notes = _row_gains(recipe, made)
    for (number, _), asked in recipe.cells.items():
        one = made[asked]
        seeds = {seed: in_columns(table, run) for seed, run in one.runs.items()}
        cells[number] = []
        for column in table.columns:
            if not seeds:
                cells[number].append(_absent(one))
            elif column in table.scores:
                cells[number].append(score_cell(column, seeds, recipe.spread))
                by_seed[number, column] = column_means(column, seeds)
                by_seed[number, f"{column}_std"] = column_spreads(column, seeds)
            else:
                cell, values = gains[number, column]
                cells[number].append(cell)
                by_seed[number, column] = values
    return _finish(recipe, columns, cells, by_seed, collection, notes, unlike)


def _row_gains(
    recipe: Recipe, made: MadeRuns
) -> tuple[dict[tuple[int, str], tuple[Cell, dict[int, float]]], list[str]]:
    """Return Δ of every row and Δ column, with its values by seed, and what Δ and its marks mean."""
    table, rule = recipe.table, Delta()
    assert table is not None
    found: dict[tuple[int, str], tuple[Cell, dict[int, float]]] = {}
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
            gains[name], numbers[name] = _gain(recipe, made, asked, base, split), number
            titles.append(_name(base))
            if base is not None and _same(made[asked], made[base]):
                zeros.add(name)
        title = " or ".join(dict.fromkeys(titles))
        marked, marks = mark_differences(gains, zeros, title)
        found |= {(numbers[name], column): (marked[name], dict(gains[name].by_seed)) for name in gains}
        notes += [rule.words(title), *marks] if gains else []
    return found, list(dict.fromkeys(notes))


def _deltas(recipe: Recipe, made: MadeRuns, collection: Collection, unlike: tuple[str, ...]) -> Reproduced:
    """Make a table whose cells are Δ and whose columns are methods."""
    table = recipe.table
    assert table is not None
    columns = [Column(name, name + (f" {UNLIKE}" if unlike else ""), "Δ %") for name in table.columns]
    cells: dict[int, list[Cell]] = {}
    by_seed: ByRow = {}
    for (number, column), asked in recipe.cells.items():
        of_row = cells.setdefault(number, [])
        if not made[asked].runs:
            of_row.append(_absent(made[asked]))
            continue
        found = _gain(recipe, made, asked, recipe.target, recipe.split(table.rows[number]))
        of_row.append(found.cell)
        by_seed[number, column] = dict(found.by_seed)
    notes = [Delta().words(_name(recipe.target))]
    return _finish(recipe, columns, cells, by_seed, collection, notes, unlike)


def _cost(recipe: Recipe, made: MadeRuns, collection: Collection, unlike: tuple[str, ...]) -> Reproduced:
    """Make a table of costs: the cells of `fmtlbench cost` under the paper's convention, in the paper's order."""
    table, target = recipe.table, recipe.target
    assert table is not None and target is not None
    keys = recipe.entry["values"]
    if not collection.runs:
        columns = [Column(name, name.replace("_", " ")) for name in table.columns]
        cells = {number: [_absent(made[asked])] * len(columns) for (number, _), asked in recipe.cells.items()}
        return _finish(recipe, columns, cells, {}, collection, [], unlike)
    merged = merge_settings(collection, ["architecture"])
    places = {run.folder: run.row for run in merged.runs}
    reference = Reference(dict(made[target].runs), _name(target)) if made[target].runs else None
    costs = _count_costs(recipe, merged, reference)
    seeds = sorted({run.summary["seed"] for run in merged.runs})
    each = {seed: _count_costs(recipe, _of_seed(merged, seed), reference) for seed in seeds}
    cells: dict[int, list[Cell]] = {}
    by_seed: ByRow = {}
    for (number, _), asked in recipe.cells.items():
        one = made[asked]
        if not one.runs:
            cells[number] = [_absent(one)] * len(table.columns)
            continue
        place = places[next(iter(one.runs.values())).folder]
        cells[number] = [_find_cell(costs, place, keys[column]) for column in table.columns]
        for column in table.columns:
            of = {seed: _find_cell(each[seed], place, keys[column]).value for seed in one.runs}
            by_seed[number, column] = {seed: value for seed, value in of.items() if value is not None}
    columns = []
    for name in table.columns:
        own = costs.columns[costs.column(keys[name])]
        columns.append(Column(name, own.title + (f" {UNLIKE}" if unlike else ""), "", own.heading, own.digits))
    return _finish(recipe, columns, cells, by_seed, collection, list(costs.notes), unlike)


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


# -- cells and words ---------------------------------------------------------------------------------------------------


def _gain(recipe: Recipe, made: MadeRuns, asked: Wanted, base: Wanted | None, split: str) -> Gain:
    """Return Δ of runs over the paper's columns, or over all primary scores where it prints none."""
    ours = made[asked].runs
    if base is None or not made[base].runs:
        return Gain(Cell(note=f"no Δ: no run of {_name(base)}"))
    if _same(made[asked], made[base]):
        return Gain(Cell(0.0, n=len(ours)), dict.fromkeys(ours, 0.0))
    # Compared with runs of another table, columns that those do not have are left out, as for a named reference.
    rule = Delta(reference=Reference(dict(made[base].runs), _name(base)) if base == recipe.target else None)
    table, up = recipe.table, {}
    assert table is not None

    def units(run: RunRecord) -> Units:
        if table.scores:
            return column_units(table, in_columns(table, run), split, rule)
        scores, directions_there = primary_scores(run.summary["scores"], split)
        up.update(directions_there)
        return rule.units(scores)

    theirs = {seed: units(run) for seed, run in made[base].runs.items()}
    mine = {seed: units(run) for seed, run in ours.items()}
    return gain(mine, theirs, up or directions(table), _name(base), rule)


def _same(one: Made, other: Made) -> bool:
    return {run.folder for run in one.runs.values()} == {run.folder for run in other.runs.values()}


def _name(base: Wanted | None) -> str:
    if base is None:
        return "the reference"
    told = [str(value).upper() if key == "model.architecture" else str(value) for key, value in base.overrides.items()]
    return f"{base.label} of {base.scenario}" + (f" ({', '.join(told)})" if told else "")


def _absent(one: Made) -> Cell:
    return Cell(word=one.word, note=one.why)


def _column(table: Published, name: str, mark: str) -> Column:
    if name in table.scores:
        return score_column(table, name, table.scores[name], mark)
    split = table.deltas.get(name, "")
    heading = f"{split} test images" if len(table.deltas) > 1 else ""
    return Column(name, "Δm %" + (f" {mark}" if mark else ""), "", heading, 2, True)


def _finish(
    recipe: Recipe,
    columns: Sequence[Column],
    cells: Mapping[int, Sequence[Cell]],
    by_seed: ByRow,
    collection: Collection,
    notes: Sequence[str],
    unlike: tuple[str, ...],
) -> Reproduced:
    runs = collection.runs
    measured = f" · measured: {describe(runs, spread=recipe.spread)}" if runs else " · nothing measured yet"
    more = [*notes, *recipe.notes, *code_notes(runs)]
    if recipe.spread == "clients" and recipe.kind == SCORES:
        more.insert(0, "± over clients: of their means over seeds (n - 1)")
    caption = f"{recipe.source}{measured}"
    return Reproduced(recipe, tuple(columns), cells, by_seed, caption, tuple(dict.fromkeys(more)), unlike)
