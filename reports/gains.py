"""Δm of the methods of one table: scores by method and seed, what each is compared with, cells and their marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..base.errors import UsageError
from .collect import RunRecord
from .delta import Delta, Gain, Score, Scores, Units, gain, mark_differences, primary_scores
from .labels import is_plain, zoo_rank
from .settings import listed
from .table import Cell

Method = tuple[str, tuple[str, ...]]  # as --algo takes it, what heads the row


class Base(NamedTuple):
    """What a row's Δm is against; `units` None: nothing."""

    method: Method | None  # its own row, where it has one in this table
    units: dict[int, Units] | None
    title: str
    scores: dict[int, Scores] | None = None  # what the units are made of


def method_of(run: RunRecord) -> Method:
    """Say which row of a table a run belongs to."""
    return run.method, run.row


def zoo_order(method: Method) -> tuple:
    """Sort key: by what else rows differ in, then in the papers' order."""
    return (method[1][1:], zoo_rank(method[0]), method[1])


class Gains:
    """The runs of one table on one split, compared as `delta` asks for."""

    def __init__(self, runs: Sequence[RunRecord], split: str, delta: Delta) -> None:
        self.runs, self.split, self.delta = runs, split, delta
        self.scores, self.up = _scores(runs, split)
        self.units = {
            method: {seed: delta.units(of_seed) for seed, of_seed in seeds.items()}
            for method, seeds in self.scores.items()
        }
        self.bases = self._find_bases()
        self.gains = self._compute()
        own = {base.method for base in self.bases.values() if base.method is not None}
        title = "its reference" if len(own) > 1 else next((base.title for base in self.bases.values()), "")
        self.cells, self.marks = mark_differences(self.gains, own, title)

    @property
    def methods(self) -> list[Method]:
        """Return those with scores, in the papers' order."""
        return sorted(self.scores, key=zoo_order)

    def _find_bases(self) -> dict[Method, Base]:
        """Find what each row is compared with: the named reference, or the baseline among rows of its setting."""
        reference = self.delta.reference
        if reference is not None:
            names = {run.name for run in reference.runs.values()}
            mine = next((method_of(run) for run in self.runs if run.name in names), None)
            scores = {s: primary_scores(run.summary["scores"], self.split)[0] for s, run in reference.runs.items()}
            units = {seed: self.delta.units(of_seed) for seed, of_seed in scores.items()}
            return dict.fromkeys(self.scores, Base(mine, units, reference.title, scores))
        found = {}
        codes: dict[Method, set[tuple]] = {}
        for run in self.runs:
            codes.setdefault(method_of(run), set()).add(run.shared_code)
        for method in self.scores:
            alike = [m for m in self.methods if m[1][1:] == method[1][1:]]
            # Where runs of several codes are shown, the baseline by the row's own code comes first.
            own = [m for m in alike if codes[m] == codes[method]]
            base = find_baseline(own, self.delta.baseline) or find_baseline(alike, self.delta.baseline)
            found[method] = Base(None, None, self.delta.baseline)
            if base:
                found[method] = Base(base, self.units[base], base[1][0], self.scores[base])
        return found

    def _compute(self) -> dict[Method, Gain]:
        gains = {}
        for method, seeds in self.units.items():
            base = self.bases[method]
            if base.units is None:
                gains[method] = Gain(Cell(note=f"no Δm: no {self.delta.baseline} run in this setting"))
            elif method == base.method:
                gains[method] = Gain.zero(seeds)
            else:
                gains[method] = gain(seeds, base.units, self.up, base.title, self.delta)
        return gains

    def notes(self, rows_differ: bool = False) -> list[str]:
        """Say what Δm means in this table, and what its interval and marks do."""
        titles = {base.title for base in self.bases.values() if base.units is not None}
        if not titles:
            return []
        same = " of the same setting" if rows_differ and self.delta.reference is None else ""
        return [self.delta.words(f"{listed(titles)}{same}"), *self.marks]


def _scores(runs: Sequence[RunRecord], split: str) -> tuple[dict[Method, dict[int, dict[Score, float]]], dict]:
    """Return method → seed → score → value, all scores of its scenario in every seed; directions by (task, metric)."""
    scores: dict[Method, dict[int, dict[Score, float]]] = {}
    up: dict[tuple[str, str], bool] = {}
    everything: dict[str, dict[Score, float]] = {}  # by scenario
    scenario: dict[Method, str] = {}
    for run in sorted(runs, key=lambda run: run.summary["seed"]):
        found, directions = primary_scores(run.summary["scores"], split)
        if found:
            up |= directions
            scenario[method_of(run)] = run.summary["scenario"]
            everything.setdefault(run.summary["scenario"], {}).update(dict.fromkeys(found, math.nan))
            scores.setdefault(method_of(run), {})[run.summary["seed"]] = found
    return {
        method: {seed: {**everything[scenario[method]], **found} for seed, found in seeds.items()}
        for method, seeds in scores.items()
    }, up


def find_baseline(methods: Sequence[Method], name: str) -> Method | None:
    """Find the row that Δm is against, by registry name or label; of several variants the plain one."""
    labelled = [m for m in methods if m[1][0] == name]
    named = labelled or [m for m in methods if m[0] == name]
    plain = [m for m in named if is_plain(m[1][0])]
    if len(named) > 1 and len(plain) != 1:
        labels = listed(m[1][0] for m in named)
        raise UsageError(f"--baseline {name}: several variants, name one by its label: {labels}")
    return (named if len(named) == 1 else plain or [None])[0]
