"""Which runs a figure shows, which columns of them, and what its reader is told of that: what kinds share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...base.errors import FmtlbenchError, UsageError, unknown
from ..collect import Collection, RunRecord
from ..delta import Bases
from ..settings import distinguishing
from ._columns import Choice, Panel, find_panels
from ._curves import PlotError
from ._diagnostics import runs_that_tell

if TYPE_CHECKING:
    from ..stats.analysis import Analysis
    from . import Options


def runs_of_scenario(runs: Sequence[RunRecord], scenario: str | None) -> list[RunRecord]:
    there = sorted({run.summary["scenario"] for run in runs})
    if scenario is None:
        if len(there) > 1:
            raise UsageError(f"the runs are of several scenarios; choose one with --scenario: {', '.join(there)}")
        return list(runs)
    if scenario not in there:
        raise unknown("scenario", scenario, there, "--scenario")
    return [run for run in runs if run.summary["scenario"] == scenario]


def runs_of_one_setting(collection: Collection, runs: Sequence[RunRecord], notes: list[str]) -> list[RunRecord]:
    """Return runs of equal setting only, as in the tables, and each method and seed once."""
    from ..stats.blocks import comparable

    frame = collection.frame
    rows = comparable(frame[frame["run"].isin([run.name for run in runs])], notes)
    kept = {run.name: run for run in runs if run.name in set(rows["run"])}
    first = {(run.label, run.summary["seed"]): run for run in reversed(list(kept.values()))}
    return [run for run in kept.values() if first[run.label, run.summary["seed"]] is run]


def only_run(collection: Collection, options: Options, notes: list[str], needs: Sequence[str] = ()) -> RunRecord:
    """Return the only run whose rounds tell what the figure needs; of several seeds the lowest."""
    runs = runs_of_scenario(collection.runs, options.scenario)
    if needs:
        runs = runs_that_tell(runs, needs)
    if len({(run.label, run.setting) for run in runs}) > 1:
        names = ", ".join(run.name for run in runs[:4]) + (", …" if len(runs) > 4 else "")
        raise UsageError(f"this figure shows one run; name one of the {len(runs)} folders: {names}")
    chosen = min(runs, key=lambda run: run.summary["seed"])
    if len(runs) > 1:
        notes.append(f"drawn is seed {chosen.summary['seed']} of {len(runs)} seeds: {chosen.name}")
    return chosen


def drawable(runs: Sequence[RunRecord], notes: list[str], read: Callable[[RunRecord], Any]) -> list[RunRecord]:
    """Return the runs of which `read` finds what the figure needs; the others are left out, with a note each."""
    kept: list[RunRecord] = []
    reasons: list[PlotError] = []
    for run in runs:
        try:
            read(run)
        except PlotError as error:
            reasons.append(error)
        else:
            kept.append(run)
    if reasons and not kept:
        raise reasons[0]
    notes += [f"left out: {reason}" for reason in reasons]
    return kept


def draw_settings(collection: Collection, options: Options, notes: list[str], draw: Callable[..., list]) -> list:
    """Return what `draw(runs, title)` makes of each setting, as in the tables: one panel or more.

    A setting that cannot be drawn, such as one without the runs that Δm is against, is told; the last of them fails.
    """
    runs = collection.runs if options.scenario is None else runs_of_scenario(collection.runs, options.scenario)
    settings: dict[tuple, list[RunRecord]] = {}
    for run in sorted(runs, key=lambda run: tuple(map(str, run.table))):
        settings.setdefault(run.table, []).append(run)
    panels, refused = [], []
    for of, title in zip(settings.values(), _titles(collection, list(settings.values()))):
        told: list[str] = []
        try:
            panels += draw(runs_of_one_setting(collection, of, told), title if len(settings) > 1 else "")
        except FmtlbenchError as error:
            refused.append((title, error))
        else:
            notes += [note for note in told if note not in notes]
    if not panels:
        raise refused[0][1]
    notes[:] = dict.fromkeys(notes)
    notes += [f"{title} is not drawn: {error}" for title, error in refused]
    return panels


def _titles(collection: Collection, settings: Sequence[list[RunRecord]]) -> list[str]:
    """Name each setting by its scenario, and by what tells it from others of the same scenario."""
    told = distinguishing([runs[0] for runs in settings], collection.axes)
    return [f"{runs[0].table[0]}{f' ({words})' if words else ''}" for runs, words in zip(settings, told)]


def asked_columns(runs: Sequence[RunRecord], options: Options, notes: list[str]) -> Sequence[Panel | None]:
    """Return the columns of the tables that are asked for; None, which is Δm, if there are none, with a note."""
    choice = Choice(options.task, options.dataset, options.client)
    if choice:
        return find_panels(runs, options.split, choice)
    notes.append(say_delta(runs, options))
    return [None]


def check_part(options: Options, parts: Sequence[str]) -> None:
    if options.part is not None and options.part not in parts:
        raise unknown("part of this figure", options.part, parts, "--part")


def analyse_chosen(collection: Collection, options: Options, notes: list[str]) -> Analysis:
    """Test whether the methods of the chosen runs differ."""
    from ..code_notes import code_notes
    from ..stats import analyse

    analysis = analyse(
        collection.frame,
        (options.scenario,) if options.scenario else (),
        options.split,
        options.correction,
        options.alpha,
        reference=options.delta.reference if options.delta else None,
        remarks=code_notes(collection.runs),
    )
    notes += analysis.notes
    return analysis


def say_delta(runs: Sequence[RunRecord], options: Options) -> str:
    return Bases(runs, options.split, options.delta).words()


def say_spread(tables: Sequence[pd.DataFrame], notes: list[str], what: str) -> None:
    seeds = pd.concat(tables).groupby("label")["seed"].nunique()
    if seeds.max() > 1:
        count = "" if seeds.min() == seeds.max() else f"{seeds.min()} to "
        notes.append(f"means over {count}{seeds.max()} seeds; {what}: one standard deviation")
