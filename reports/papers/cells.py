"""Scores of runs in a paper's columns and scale, Δ over these columns, and printed values beside measured ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.words import dataset_title
from ..collect import RunRecord
from ..delta import Delta, Gain, Score, Unit, Units, gain
from ..table import Cell, Column, Row, mean_cell
from .published import Published, printed_cell

UNLIKE = "≠"  # behind what is not measured as the paper did
OfSeed = dict[str, dict[Score, float]]  # published column → scores of the clients that hold it


def in_columns(published: Published, runs: Mapping[int, RunRecord]) -> dict[int, OfSeed]:
    """Return what the run of each seed scored in the paper's columns and scale."""
    at = {(m.split, *m.key): (column, m.times) for column, m in published.scores.items()}
    seeds: dict[int, OfSeed] = {}
    for seed, run in runs.items():
        found = seeds[seed] = {column: {} for column in published.scores}
        for r in run.summary["scores"]:
            place = (r["split"], r["dataset"], r["task"], r["metric"])
            if place in at:
                column, times = at[place]
                value = math.nan if r["value"] is None else r["value"] * times
                found[column][Score(r["client"], *place[1:])] = value
    return seeds


def column_gain(
    published: Published, ours: Mapping[int, OfSeed], base: Mapping[int, OfSeed], split: str, title: str, delta: Delta
) -> Gain:
    """Return Δ over the paper's columns of one split, against the base called `title`."""
    columns = [column for column, m in published.scores.items() if m.split == split]

    def units(of_seed: OfSeed) -> Units:
        everything = {at: value for column in columns for at, value in of_seed[column].items()}
        lacking = {Unit(*published.scores[c].key): math.nan for c in columns if not of_seed[c]}
        return {**delta.units(everything), **lacking}

    up = {m.key[1:]: m.higher_is_better for m in published.scores.values()}
    mine, theirs = ({seed: units(of_seed) for seed, of_seed in side.items()} for side in (ours, base))
    return gain(mine, theirs, up, title, delta)


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


def measured_column(published: Published, name: str, mark: str = "") -> Column:
    """Return a paper's column of scores or Δ with its digits; `mark` stands behind its title."""
    if name not in published.scores:
        heading = f"{published.deltas[name]} test images" if len(published.deltas) > 1 else ""
        return published.column(name, heading, mark=mark)
    meaning = published.scores[name]
    digits = max(len(row[name].partition(".")[2]) for row in published.rows) or 2
    heading = dataset_title(meaning.dataset) + (f", {meaning.split}" if published.has_splits else "")
    return published.column(name, heading, digits, mark)


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


def _gap(column: Column, ours: Cell, theirs: Cell) -> Cell:
    if ours.value is None or theirs.value is None:
        return Cell()
    gap = ours.value - theirs.value
    return Cell(gap, printed=replace(column, signed=True).text(gap))
