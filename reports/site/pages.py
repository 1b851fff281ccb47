"""The index, and the page of one leaderboard: what their templates show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...base.errors import FmtlbenchError
from ...base.words import say_count
from ..collect import Collection
from ..table import Row
from ..units import in_readable_units
from .data import Page, Site
from .figures import Drawn
from .legend import legend
from .markup import Markup, fill
from .overview import DELTA, measured, overview
from .tables import Link, html_table

HOME = "Leaderboards"
DOWNLOADS = {"csv": ("CSV", "csv"), "md": ("Markdown", "md"), "latex": ("LaTeX", "tex")}


def index_page(site: Site) -> Markup:
    """Make the first page: one table of all methods and scenarios, and what each of its columns rests on."""
    settings = site.by_setting()
    scenarios = {page.scenario for page in site.pages}
    counts = ((site.run_files, "finished run"), (settings, "setting"), (scenarios, "scenario"))
    return fill(
        "index.html",
        up="",
        crumbs=[(HOME, None)],
        counts=", ".join(say_count(len(them), name) for them, name in counts),
        described=_described,
        measured=measured,
        left_out=site.left_out,
        **overview(settings),
    )


def _described(page: Page) -> str:
    scenario = page.runs[0].config.get("scenario")
    words = scenario.get("description") if isinstance(scenario, dict) else None
    return str(words) if words else ""


def scenario_page(
    page: Page, site: Site, collection: Collection, figures: Sequence[Drawn], refused: Sequence[str]
) -> Markup:
    """Make the page of one setting and split; `collection` has its runs alone.

    Δm comes first in the table. A method leads to its run of the lowest seed, the last column to each of its runs.
    """

    def first(row: Row) -> str | None:
        runs = page.runs_of(row)
        return site.run_files[runs[0].name] if runs else None

    def seeds(row: Row) -> list[Link]:
        runs = [(run, str(run.summary["seed"])) for run in page.runs_of(row)]
        return [(seed, site.run_files[run.name], f"{run.label}, seed {seed}") for run, seed in runs]

    notes = [note for figure in figures for note in figure.notes]
    table = page.table.with_first(DELTA)
    return fill(
        "scenario.html",
        up="",
        crumbs=[(HOME, "index.html"), (f"{page.scenario}, {page.split}", None)],
        page=page,
        described=_described(page),
        measured=measured(page),
        splits=[other for other in site.pages if other.setting == page.setting],
        downloads=DOWNLOADS.values(),
        table=html_table(table, first, ("runs", seeds), lead=True),
        plain_table=partial(html_table, tools=False),
        legend=legend(table),
        figures=figures,
        shared=[note for note in dict.fromkeys(notes) if notes.count(note) > 1],
        refused=refused,
        tests=_tests(page, site, collection),
        costs=_costs(page, site, collection),
    )


def _tests(page: Page, site: Site, collection: Collection) -> dict[str, Any]:
    """Return the tables of ranks and pairs, or why nothing was tested."""
    from ..stats import analyse
    from ..stats.tables import pair_table, rank_table

    if page.too_many:
        return {"untested": f"{page.too_many}."}
    try:
        reference = site.delta.reference if site.delta else None
        analysis = analyse(collection.frame, split=page.split, reference=reference)
    except FmtlbenchError as error:
        return {"untested": str(error)}
    return {"ranks": rank_table(analysis), "pairs": pair_table(analysis)}


def _costs(page: Page, site: Site, collection: Collection) -> dict[str, Any]:
    """Return the tables of costs, or why there are none; nothing where no run says what it cost."""
    from ..cost import cost_tables

    try:
        if not any(run.cost for run in collection.runs):
            return {}
        tables = cost_tables(collection, split=page.split, delta=site.delta)
    except FmtlbenchError as error:
        return {"problem": str(error)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # files of other versions
        return {"problem": f"{type(error).__name__}: {error}"}
    return {"tables": list(map(in_readable_units, tables))}
