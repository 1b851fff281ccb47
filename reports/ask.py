"""What the verbs of reports do, for Python and for the command line alike: folders of runs in, tables and figures out.

Keywords are the verbs' flags (`--task-weights` is `task_weights`); where a flag takes names with commas between them, a
list or a mapping will do as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import UsageError
from .collect import Collection, collect
from .table import Tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .cost import Convention
    from .delta import Delta
    from .stability import Stability
    from .stats.analysis import Analysis

Folder = str | Path
Words = str | Iterable[str] | Mapping[str, Any]
Tell = Callable[[str], None]
DEFAULT = "runs"  # the folder that is meant where none is given


def leaderboard(
    *runs: Folder,
    setting: str | None = None,
    scenario: str | None = None,
    split: str = "global",
    baseline: str = "local",
    sort: str = "zoo",
    delta_over: str = "columns",
    task_weights: Words | None = None,
    reference: Words | None = None,
    rows: Words | None = None,
    spread: str = "seeds",
    fairness: bool = False,
    tell: Tell | None = None,
) -> Tables:
    """Make tables of finished runs, methods × tasks: one for every scenario and setting.

        >>> import fmtlbench
        >>> tables = fmtlbench.leaderboard("results/nano-3", scenario="st_mt_1")
        >>> [(table.title, len(table.rows)) for table in tables]
        [('st_mt_1 version 1, global test split', 4)]
        >>> [row.labels[0] for row in tables[0].rows]
        ['Local', 'FedAvg', 'FedPer', 'FedHCA²']

    Printed, or as the last line of a notebook's cell, they are shown as tables.

    Args:
        *runs: Folders of runs, or folders that hold some at any depth; by default ./runs.
        setting: Only runs of this setting, by the beginning of its hash.
        scenario: Only this one.
        split: Whose test images: "global", "personal", "unseen", as the runs have them.
        baseline: The method that Δm is against.
        sort: "zoo" (the papers' order), "delta", "name", or a column's key.
        delta_over: What Δm averages: "columns" or "clients".
        task_weights: Of tasks in Δm: {"semseg": 2}; the others weigh 1.
        reference: One method's runs in one setting that all are compared with: {"algo": "local", …}.
        rows: What the rows of one table may differ in: ["algorithm", "backbone"].
        spread: What ± is over: "seeds" or "clients".
        fairness: With columns of the worst client, the worst tenth of clients and the spread over clients.
        tell: Hears what could not be used; by default there are warnings.

    Raises:
        UsageError: No finished run, or a scenario, split, baseline or column that none has.
    """
    from .leaderboard import leaderboards

    everything, chosen = _find(runs, setting, tell)
    delta = _delta(everything, delta_over, task_weights, reference, baseline)
    return leaderboards(_merge(chosen, rows), scenario, split, delta, sort, spread, fairness)


def write_pages(
    *runs: Folder,
    output: Path,
    setting: str | None = None,
    scenario: str | None = None,
    split: str | None = None,
    sort: str = "zoo",
    rows: Words | None = None,
    spread: str = "seeds",
    fairness: bool = False,
    tell: Tell | None = None,
    **delta: Any,
) -> Path:
    """Write what `leaderboard` makes as linked pages below the folder `output`; without `split` those of all splits."""
    from .site import write_site

    everything, chosen = _find(runs, setting, tell, ("rounds", "timing", "cost", "manifest"))
    meant, splits = _delta(everything, **delta), [split] if split else None
    return write_site(_merge(chosen, rows), output, scenario, splits, meant, sort, spread, fair=fairness)


def stats(*runs: Folder, noise: bool = False, tell: Tell | None = None, **asked: Any) -> Tables:
    """Test whether differences between methods are more than chance; with `noise`, how large the noise is beside them.

        >>> import fmtlbench
        >>> ranks, pairs = fmtlbench.stats("results/nano-3", scenario="st_mt_1")
        >>> [row.labels[0] for row in ranks.rows]
        ['Local', 'FedHCA²', 'FedPer', 'FedAvg']
        >>> fmtlbench.stats("results/nano-3", scenario="st_mt_1", noise=True)[0].title
        'st_mt_1 version 1, global test split: noise over seeds'

    Args:
        *runs: As `leaderboard` takes them.
        noise: Tell the noise of seeds and reruns, and how many seeds tell two methods apart.
        tell: Hears what could not be used; by default there are warnings.
        **asked: `setting`, `scenario`, `split`, `pair` and `reference`, as the flags of `fmtlbench stats`; beside them
            `correction`, `alpha` and `rows`, with `noise` instead `baseline`, `delta_over`, `task_weights`, `power` and
            `published`.
    """
    if noise:
        from .stability_tables import stability_tables

        return Tables(stability_tables(measure_noise(*runs, tell=tell, **asked)))
    from .stats.tables import pair_table, rank_table

    analysis = analyse_runs(*runs, tell=tell, **asked)
    return Tables([rank_table(analysis), pair_table(analysis)])


def analyse_runs(
    *runs: Folder,
    setting: str | None = None,
    scenario: str | Sequence[str] = (),
    split: str = "global",
    correction: str = "holm",
    alpha: float = 0.05,
    pair: Words | None = None,
    reference: Words | None = None,
    rows: Words | None = None,
    tell: Tell | None = None,
) -> Analysis:
    """Do the tests of `stats` and return all that they found."""
    from .code_notes import code_notes
    from .delta import find_reference
    from .stats.analysis import analyse, find_pair

    everything, chosen = _find(runs, setting, tell)
    against = find_reference(everything, _words(reference)) if reference else None
    collection = _merge(chosen, rows)
    two = find_pair(_words(pair), collection.frame) if pair else None
    scenarios = [scenario] if isinstance(scenario, str) else scenario
    remarks = code_notes(collection.runs)
    return analyse(collection.frame, scenarios, split, correction, alpha, two, against, remarks)


def measure_noise(
    *runs: Folder,
    setting: str | None = None,
    scenario: str | None = None,
    split: str = "global",
    baseline: str = "local",
    pair: Words | None = None,
    power: float = 0.8,
    published: str | None = None,
    tell: Tell | None = None,
    **delta: Any,
) -> list[Stability]:
    """Find out how large the noise of runs is beside the effects they are meant to show: an entry for every setting."""
    from ..config.installed import Installed
    from .reruns import set_reruns_aside
    from .stability import Question, stability
    from .stats.analysis import find_pair

    everything, reruns, notes = set_reruns_aside(_find(runs, None, tell, ("manifest",))[0])
    meant = _delta(everything, baseline=baseline, **delta)
    chosen = everything if setting is None else everything.of_setting(setting)
    two = find_pair(_words(pair), chosen.frame) if pair else None
    return stability(chosen, Question(scenario, split, meant, two, power, published, Installed()), reruns, notes)


def cost(*runs: Folder, **asked: Any) -> Tables:
    """Say what finished runs cost: per round, and until Δm reaches a target. See `count_cost`."""
    return count_cost(*runs, **asked)[0]


def count_cost(
    *runs: Folder,
    setting: str | None = None,
    scenario: str | None = None,
    split: str = "global",
    target: Sequence[float] | None = None,
    convention: str | None = None,
    over: Folder | None = None,
    rows: Words | None = None,
    tell: Tell | None = None,
    **delta: Any,
) -> tuple[Tables, Convention]:
    """Return the tables of what finished runs cost, and the way in which it is counted.

    Args:
        *runs: As `leaderboard` takes them, and so are the keywords that are not told here.
        setting: Only runs of this one.
        scenario: Only this one.
        split: Whose Δm.
        target: The Δm to reach; by default -30 and -10.
        convention: "ours", or "fmtl-bench": as that paper's Table 8 counts.
        over: A file of machines and lines that time is counted on instead.
        rows: What the rows of one table may differ in.
        tell: Hears what could not be used.
        **delta: Which Δm: `delta_over`, `task_weights` and `reference`.
    """
    from .cost import CONVENTIONS, TARGETS, cost_tables
    from .over import cost_over

    if over and convention:
        raise UsageError(f"--over {over}: counts time in a way of its own, not by --convention {convention}")
    everything, chosen = _find(runs, setting, tell, ("rounds", "timing", "cost"))
    meant = _delta(everything, **delta)
    way = cost_over(over, everything) if over else CONVENTIONS[convention or "ours"]
    return Tables(cost_tables(_merge(chosen, rows), target or TARGETS, scenario, split, way, meant)), way


def compare(
    *runs: Folder,
    published: str,
    setting: str | None = None,
    tell: Tell | None = None,
    **delta: Any,
) -> Tables:
    """Put finished runs beside a paper's table, with the gap in every cell."""
    from ..config.installed import Installed
    from .papers.compare import compare as compare_runs

    everything, chosen = _find(runs, setting, tell)
    meant = _delta(everything, **delta)
    return Tables(compare_runs(chosen, published, Installed(), meant))


def frame(*runs: Folder, setting: str | None = None, tell: Tell | None = None) -> pd.DataFrame:
    """Return every score of the finished runs as a tidy frame: a row per run, client, split, task and metric.

        >>> import fmtlbench
        >>> scores = fmtlbench.frame("results/nano-3")
        >>> chosen = scores.query("primary and split == 'global' and algorithm == 'fedavg'")
        >>> chosen.groupby("task")["value"].mean().round(1).to_dict()
        {'depth': 0.4, 'edge': 67.9, 'human_parts': 29.9, 'normals': 20.1, 'sal': 68.4, 'semseg': 25.2}

    Args:
        *runs: Folders of runs, or folders that hold some at any depth; by default ./runs.
        setting: Only runs of this setting, by the beginning of its hash.
        tell: Hears what could not be used; by default there are warnings.
    """
    return _find(runs, setting, tell)[1].frame


def plot(
    kind: str,
    *runs: Folder,
    output: Folder | None = None,
    setting: str | None = None,
    rows: Words | None = None,
    delta_over: str = "columns",
    task_weights: Words | None = None,
    reference: Words | None = None,
    raw: bool = False,
    tell: Tell | None = None,
    **options: Any,
) -> Figure:
    """Draw a figure of finished runs.

        >>> import fmtlbench
        >>> figure = fmtlbench.plot("pvalues", "results/nano-3", scenario="st_mt_1", output="pvalues.pdf")

    Args:
        kind: Which: "rounds", "clients", "sweep", … (`fmtlbench plot --help`).
        *runs: As `leaderboard` takes them.
        output: Also written there: a name that ends in .pdf, .png or .svg, or without an ending .pdf and .png.
        setting: Only runs of this one.
        rows: What may differ where only runs of equal setting are shown together.
        delta_over: What Δm averages.
        task_weights: Of tasks in Δm.
        reference: One method's runs in one setting that all are compared with.
        raw: Of "updates": with their lengths, not normalised.
        tell: Hears what could not be used, and what a reader of the figure must know; by default there are warnings.
        **options: `scenario`, `split`, `x`, `task`, …: the other flags of `fmtlbench plot`.
    """
    from . import plots
    from .figure_style import targets

    plots.check_kind(kind)
    if (delta_over != "columns" or task_weights) and not plots.shows_delta(kind):
        others = ", ".join(filter(plots.shows_delta, plots.find_kinds()))
        raise UsageError(f"--delta-over and --task-weights are for {others}: {kind} shows no Δm")
    if output is not None:
        targets(output)  # refuse a bad name before the work
    asked = plots.Options(**options, normalise=not raw)
    everything, chosen = _find(runs, setting, tell, plots.files_read(kind, asked))
    asked = replace(asked, delta=_delta(everything, delta_over, task_weights, reference))
    notes: list[str] = []
    figure = plots.make_figure(kind, _merge(chosen, rows), asked, notes)
    for note in notes:
        (tell or _warn)(note)
    if output is not None:
        plots.save_figure(figure, output)
    return figure


# -- what they share ---------------------------------------------------------------------------------------------------


def _find(
    runs: Sequence[Folder], setting: str | None, tell: Tell | None, reading: Sequence[str] = ()
) -> tuple[Collection, Collection]:
    """Collect the finished runs; return all of them, among which a reference may be, and those of the setting.

    `reading` names what is read of a run in addition to its summary.
    """
    paths = runs or (DEFAULT,)
    collection = collect(paths, reading)
    for problem in collection.problems:
        (tell or _warn)(f"left out: {problem}")
    if not collection.runs:
        raise UsageError(f"{', '.join(map(str, paths))}: no finished run in it")
    return collection, collection if setting is None else collection.of_setting(setting)


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=4)


def _delta(
    collection: Collection,
    delta_over: str = "columns",
    task_weights: Words | None = None,
    reference: Words | None = None,
    baseline: str = "local",
) -> Delta:
    """Return the Δm that is asked for; its reference is looked for among all the runs given."""
    from .delta import Delta, find_reference, parse_task_weights

    words = _words(task_weights)
    weights = {} if task_weights is None else parse_task_weights(words)
    tasks = {task for run in collection.runs for client in run.summary["clients"] for task in client["tasks"]}
    for task in sorted(weights.keys() - tasks):
        raise UsageError(f"--task-weights {words}: no run has {task}; there are {', '.join(sorted(tasks))}")
    against = find_reference(collection, _words(reference)) if reference else None
    if against is not None and baseline != "local":
        raise UsageError("--baseline and --reference both say what Δm is against; give one of them")
    return Delta(delta_over, weights, baseline, against)


def _merge(collection: Collection, rows: Words | None) -> Collection:
    """Return the collection with settings merged into the tables whose rows may differ in `rows`."""
    if rows is None:
        return collection
    from .settings import merge_settings, parse_axes

    return merge_settings(collection, parse_axes(_words(rows)))


def _words(given: Words | None) -> str:
    """Return names, or names with values, as a flag has them."""
    if given is None or isinstance(given, str):
        return given or ""
    if isinstance(given, Mapping):
        given = (f"{name}={value}" for name, value in given.items())
    return ",".join(given)
