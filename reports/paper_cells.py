"""Scores of runs in a paper's columns and scale, and printed values beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..base.words import dataset_title
from ..tasks import title_of
from .collect import RunRecord
from .delta import Delta, Score, Unit, Units
from .published import Meaning, Published, number
from .table import Cell, Column, Row, mean_cell

OfSeed = dict[str, dict[Score, float]]  # published column → scores of the clients that hold it


def in_columns(published: Published, run: RunRecord) -> OfSeed:
    """Return what a run scored in the paper's columns and scale."""
    at = {(m.split, *m.key): (column, m.times) for column, m in published.scores.items()}
    found: OfSeed = {column: {} for column in published.scores}
    for r in run.summary["scores"]:
        place = (r["split"], r["dataset"], r["task"], r["metric"])
        if place in at:
            column, times = at[place]
            value = math.nan if r["value"] is None else r["value"] * times
            found[column][Score(r["client"], *place[1:])] = value
    return found


def column_units(published: Published, of_seed: OfSeed, split: str, delta: Delta) -> Units:
    """Return what Δ averages of a run's scores in the paper's columns of one split; a column without any is NaN."""
    columns = [column for column, m in published.scores.items() if m.split == split]
    everything = {at: value for column in columns for at, value in of_seed[column].items()}
    lacking = {Unit(*published.scores[c].key): math.nan for c in columns if not of_seed[c]}
    return {**delta.units(everything), **lacking}


def directions(published: Published) -> dict[tuple[str, str], bool]:
    """Return whether more is better, by task and metric."""
    return {m.key[1:]: m.higher_is_better for m in published.scores.values()}


def column_means(column: str, seeds: Mapping[int, OfSeed]) -> dict[int, float]:
    """Return a column's value of every seed: the mean over the clients that hold it; NaN where nobody does."""
    units = {seed: Delta().units(of_seed[column]) for seed, of_seed in seeds.items()}
    return {seed: next(iter(of.values()), math.nan) for seed, of in units.items()}


def column_spreads(column: str, seeds: Mapping[int, OfSeed]) -> dict[int, float]:
    """Return a column's standard deviation over the clients that hold it, of every seed; NaN for one client."""
    spreads = {seed: mean_cell(list(of_seed[column].values())).std for seed, of_seed in seeds.items()}
    return {seed: math.nan if spread is None else spread for seed, spread in spreads.items()}


def score_cell(column: str, seeds: Mapping[int, OfSeed], spread: str = "seeds") -> Cell:
    """Return the cell of a paper's column: mean over the clients that hold it and over seeds; ± over one of the two."""
    cell = mean_cell(list(column_means(column, seeds).values()))
    if cell.value is None:
        return Cell(note="this metric was not measured on this split")
    if spread != "clients":
        return cell
    shared = set.intersection(*(set(of_seed[column]) for of_seed in seeds.values()))
    clients = {at: [of_seed[column][at] for of_seed in seeds.values()] for at in sorted(shared)}
    over = mean_cell([math.fsum(values) / len(values) for values in clients.values()], "clients")
    return replace(cell, std=over.std, n=over.n)


def score_column(published: Published, name: str, meaning: Meaning, mark: str = "") -> Column:
    """Return a paper's column of scores with its digits; `mark` stands behind its title."""
    digits = max(len(row[name].partition(".")[2]) for row in published.rows) or 2
    title = title_of(meaning.task) + (f" {mark}" if mark else "")
    metric = meaning.metric + (f" ×{meaning.times:g}" if meaning.times != 1 else "")
    splits = {m.split for m in published.scores.values()}
    heading = dataset_title(meaning.dataset) + (f", {meaning.split}" if len(splits) > 1 else "")
    return Column(name, title, metric, heading, digits, meaning.higher_is_better)


def beside_rows(
    labels: tuple[str, ...], columns: Sequence[Column], ours: Sequence[Cell], row: Mapping[str, str]
) -> list[Row]:
    """Return three rows: measured, published, and the gap; the last two only where something is printed."""
    theirs = [printed_cell(row[column.key]) for column in columns]
    rows = [Row((*labels, "measured"), tuple(ours))]
    if not any(cell.says_something for cell in theirs):
        return rows
    gaps = [_gap(column, mine, their) for column, mine, their in zip(columns, ours, theirs)]
    return [*rows, Row((*labels, "published"), tuple(theirs)), Row((*labels, "gap"), tuple(gaps))]


def printed_cell(text: str) -> Cell:
    """Return a cell of a published table as it is printed."""
    value = number(text)
    return Cell(word=text) if value is None else Cell(value, printed=text)


def _gap(column: Column, ours: Cell, theirs: Cell) -> Cell:
    if ours.value is None or theirs.value is None:
        return Cell()
    gap = ours.value - theirs.value
    return Cell(gap, printed=replace(column, signed=True).text(gap))
