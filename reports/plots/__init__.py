"""Figures of finished runs: one file per kind, each with a function from runs to data and one from data to a Figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import FmtlbenchError, UsageError, unknown
from ._curves import PlotError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..collect import Collection, RunRecord
    from ..delta import Delta


@dataclass(frozen=True)
class Options:
    """What a figure can be asked for; each kind reads its own."""

    scenario: str | None = None
    split: str = "global"
    x: str = "rounds"
    task: str | None = None  # or all: a panel each
    dataset: str | None = None
    client: str | None = None
    option: str | None = None
    part: str | None = None  # of a figure of several: this one alone
    round: int | None = None
    updates: str = "encoder"
    normalise: bool = True
    method: str = "pca"
    cost: str = "seconds"
    alpha: float = 0.05
    correction: str = "holm"
    delta: Delta | None = None  # None: over columns, against the local runs


def make_figure(kind: str, collection: Collection, options: Options, notes: list[str]) -> Figure:
    """Draw one of `KINDS` from the runs; what a reader of the figure must know is added to `notes`."""
    if kind not in KINDS:
        raise unknown("kind of figure", kind, KINDS)
    if not collection.runs:
        raise UsageError("no finished run to draw")
    return KINDS[kind](collection, options, notes)


def files_read(kind: str, x: str = "rounds") -> tuple[str, ...]:
    """Return what a figure reads of a run beside its summary, as `collect` takes it; `x` is what it is drawn over."""
    if kind == "pareto":
        return ("cost",)
    if kind == "rounds" and x in ("kwh", "hours"):
        return ("rounds", "timing")
    return ("rounds",) if kind in ("rounds", "hyperweights", "grouping", "updates") else ()


def _rounds(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .rounds import rounds_curves, rounds_figure

    def draw(runs: list[RunRecord], title: str) -> list:
        found = [rounds_curves(runs, o.x, o.split, column, o.delta) for column in _asked(runs, o, notes)]
        notes.extend(filter(None, [found[0].left_out]))
        return [replace(curves, title="\n".join(filter(None, (title, curves.title)))) for curves in found]

    panels = _panels(collection, o, notes, draw)
    _say_spread([panel.rows for panel in panels], notes, "whiskers")
    return rounds_figure(panels)


def _drawable(runs: Sequence[RunRecord], notes: list[str], read: Callable[[RunRecord], Any]) -> list[RunRecord]:
    """Return the runs of which `read` finds what the figure needs; the others are left out, with a note each."""
    from ._curves import PlotError

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


def _clients(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from ...config.setting import scenario_family
    from .clients import clients_figure, clients_points, scaled

    names = {run.summary["scenario"] for run in collection.runs}
    if o.scenario is None and len(set(map(scenario_family, names))) > 1:
        _of_scenario(collection.runs, None)  # says which there are
    runs = [run for run in collection.runs if o.scenario in (None, scenario_family(run.summary["scenario"]))]
    runs = scaled(runs or _of_scenario(collection.runs, o.scenario), notes)
    kept = []
    for count in sorted({len(run.summary["clients"]) for run in runs}):
        same = [run for run in runs if len(run.summary["clients"]) == count]
        kept += _one_setting(collection, same, notes)
    panels = [clients_points(kept, o.split, o.delta, column) for column in _asked(kept, o, notes)]
    _say_spread([panel.rows for panel in panels], notes, "bars")
    return clients_figure(panels)


def _sweep(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .sweep import sweep_figure, sweep_points, swept

    if o.option is None:
        raise UsageError("sweep: which option? For example --option algo.friends, or --option train.lr")
    runs, sweep = swept(_of_scenario(collection.runs, o.scenario), o.option, notes)
    kept = []
    for table in dict.fromkeys(run.table for run in runs):
        kept += _one_setting(collection, [run for run in runs if run.table == table], notes)
    panels = [sweep_points(kept, sweep, o.split, o.delta, column) for column in _asked(kept, o, notes)]
    _say_spread([panel.rows for panel in panels], notes, "bars")
    return sweep_figure(panels, sweep)


def _asked(runs: Sequence[RunRecord], o: Options, notes: list[str]) -> Sequence:
    """Return the columns of the tables that are asked for; None, which is Δm, if there are none, with a note."""
    from ._columns import Choice, find_panels

    choice = Choice(o.task, o.dataset, o.client)
    if choice:
        return find_panels(runs, o.split, choice)
    notes.append(_say_delta(runs, o))
    return [None]


def _pareto(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .pareto import cost_of, pareto_figure, pareto_points

    def draw(runs: list[RunRecord], title: str) -> list:
        runs = _drawable(runs, notes, lambda run: cost_of(run, o.cost))
        points = pareto_points(runs, o.cost, o.split, o.delta)
        notes.append(_say_delta(runs, o))
        return [(title, points)]

    panels = _panels(collection, o, notes, draw)
    _say_spread([points for _, points in panels], notes, "bars")
    return pareto_figure(panels, o.cost)


def _hyperweights(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .hyperweights import NEEDS, hyperweights_data, hyperweights_figure, split_by_tasks

    _check_part(o, ("alpha", "beta"))
    run = _one_run(collection, o, notes, NEEDS)
    alpha, beta = hyperweights_data(run, o.round)
    if o.part is not None and (alpha if o.part == "alpha" else beta).empty:
        raise PlotError(f"--part {o.part}: {run.name} did not share what it weighs")
    alphas = {} if o.part == "beta" else split_by_tasks(run, alpha)
    return hyperweights_figure(alphas, beta.iloc[:0] if o.part == "alpha" else beta)


def _grouping(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .grouping import NEEDS, grouping_figure, grouping_frequency, layer_votes, votes_figure

    _check_part(o, ("frequency", "votes"))
    run = _one_run(collection, o, notes, NEEDS)
    if o.part == "frequency":
        return grouping_figure(grouping_frequency(run))
    if o.part is None:
        return grouping_figure(grouping_frequency(run), layer_votes(run, o.client))
    # One client of each kind, unless one is named.
    clients = [o.client] if o.client else list({group: name for name, group in reversed(run.groups.items())}.values())
    votes = [layer_votes(run, client) for client in sorted(clients, key=list(run.groups).index)]
    return votes_figure(votes)


def _check_part(o: Options, parts: Sequence[str]) -> None:
    if o.part is not None and o.part not in parts:
        raise unknown("part of this figure", o.part, parts, "--part")


def _updates(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .updates import updates_figure, updates_points

    run = _one_run(collection, o, notes)
    updates = updates_points(run, o.updates, o.round, o.normalise, o.method)
    length = "to length 1" if updates.normalised else "not normalised"
    notes.append(f"{updates.kind} updates of round {updates.round}, {length}: {updates.how} of {len(updates.points)}")
    return updates_figure(updates)


def _distribution(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from ..distribution import distribution
    from ..labels import dataset_titles

    runs = _of_scenario(collection.runs, o.scenario)
    federations = {
        repr(clients): clients
        for clients in (
            [{"dataset": c["dataset"], "tasks": c["tasks"], "images": c["samples"]} for c in run.summary["clients"]]
            for run in runs
        )
    }
    if len(federations) > 1:
        raise UsageError(f"the {len(runs)} runs have {len(federations)} different federations; name one run's folder")
    sources = {run.summary["data"] for run in runs}
    if len(sources) > 1:
        raise UsageError(f"the {len(runs)} runs have different data ({', '.join(sorted(sources))}); name one's folder")
    first = runs[0].summary
    return distribution(first["scenario"], next(iter(federations.values())), dataset_titles(first))


def _cd(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .cd import cd_figure

    analysis = _analysis(collection, o, notes)
    if analysis.nemenyi is None:
        raise PlotError(f"no critical-difference diagram: {analysis.refusal}")
    return cd_figure(analysis.ranks, analysis.nemenyi, analysis.cd, o.alpha)


def _pvalues(collection: Collection, o: Options, notes: list[str]) -> Figure:
    from .pvalues import pvalues_figure

    analysis = _analysis(collection, o, notes)
    notes += analysis.pair_notes
    return pvalues_figure(analysis.wilcoxon_table(), o.alpha, pvalues_label(o.correction))


def pvalues_label(correction: str) -> str:
    return f"Wilcoxon p, {correction.capitalize()}-corrected"


def _analysis(collection: Collection, o: Options, notes: list[str]):
    from ..code_notes import code_notes
    from ..stats import analyse

    scenarios = (o.scenario,) if o.scenario else ()
    reference = o.delta.reference if o.delta else None
    remarks = code_notes(collection.runs)
    analysis = analyse(
        collection.frame, scenarios, o.split, o.correction, o.alpha, reference=reference, remarks=remarks
    )
    notes += analysis.notes
    return analysis


KINDS: dict[str, Callable[[Collection, Options, list[str]], Figure]] = {
    "rounds": _rounds,
    "clients": _clients,
    "sweep": _sweep,
    "hyperweights": _hyperweights,
    "grouping": _grouping,
    "updates": _updates,
    "pareto": _pareto,
    "cd": _cd,
    "pvalues": _pvalues,
    "distribution": _distribution,
}


WITH_DELTA = ("rounds", "clients", "sweep", "pareto")

# -- which runs ------------------------------------------------------------------------------------------------------


def _of_scenario(runs: Sequence[RunRecord], scenario: str | None) -> list[RunRecord]:
    there = sorted({run.summary["scenario"] for run in runs})
    if scenario is None:
        if len(there) > 1:
            raise UsageError(f"the runs are of several scenarios; choose one with --scenario: {', '.join(there)}")
        return list(runs)
    if scenario not in there:
        raise unknown("scenario", scenario, there, "--scenario")
    return [run for run in runs if run.summary["scenario"] == scenario]


def _panels(collection: Collection, o: Options, notes: list[str], draw: Callable[..., list]) -> list:
    """Return what `draw(runs, title)` makes of each setting, as in the tables: one panel or more.

    A setting that cannot be drawn, such as one without the runs that Δm is against, is told; the last of them fails.
    """
    runs = collection.runs if o.scenario is None else _of_scenario(collection.runs, o.scenario)
    settings: dict[tuple, list[RunRecord]] = {}
    for run in sorted(runs, key=lambda run: tuple(map(str, run.table))):
        settings.setdefault(run.table, []).append(run)
    panels, refused = [], []
    for of, title in zip(settings.values(), _titles(collection, list(settings.values()))):
        told: list[str] = []
        try:
            panels += draw(_one_setting(collection, of, told), title if len(settings) > 1 else "")
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
    from ..settings import distinguishing

    told = distinguishing([runs[0] for runs in settings], collection.axes)
    return [f"{runs[0].table[0]}{f' ({words})' if words else ''}" for runs, words in zip(settings, told)]


def _one_setting(collection: Collection, runs: Sequence[RunRecord], notes: list[str]) -> list[RunRecord]:
    """Return runs of equal setting only, as in the tables, and each method and seed once."""
    from ..stats.blocks import comparable

    frame = collection.frame
    rows = comparable(frame[frame["run"].isin([run.name for run in runs])], notes)
    kept = {run.name: run for run in runs if run.name in set(rows["run"])}
    first = {(run.label, run.summary["seed"]): run for run in reversed(list(kept.values()))}
    return [run for run in kept.values() if first[run.label, run.summary["seed"]] is run]


def _one_run(collection: Collection, o: Options, notes: list[str], needs: Sequence[str] = ()) -> RunRecord:
    """Return the only run whose rounds tell what the figure needs; of several seeds the lowest."""
    runs = _of_scenario(collection.runs, o.scenario)
    if needs:
        from ._diagnostics import runs_that_tell

        runs = runs_that_tell(runs, needs)
    if len({(run.label, run.setting) for run in runs}) > 1:
        names = ", ".join(run.name for run in runs[:4]) + (", …" if len(runs) > 4 else "")
        raise UsageError(f"this figure shows one run; name one of the {len(runs)} folders: {names}")
    chosen = min(runs, key=lambda run: run.summary["seed"])
    if len(runs) > 1:
        notes.append(f"drawn is seed {chosen.summary['seed']} of {len(runs)} seeds: {chosen.name}")
    return chosen


def _say_delta(runs: Sequence[RunRecord], o: Options) -> str:
    from ..delta import Bases

    return Bases(runs, o.split, o.delta).words()


def _say_spread(tables: Sequence, notes: list[str], what: str) -> None:
    import pandas as pd

    seeds = pd.concat(tables).groupby("label")["seed"].nunique()
    if seeds.max() > 1:
        count = "" if seeds.min() == seeds.max() else f"{seeds.min()} to "
        notes.append(f"means over {count}{seeds.max()} seeds; {what}: one standard deviation")


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    from .style import save

    return save(figure, path)
