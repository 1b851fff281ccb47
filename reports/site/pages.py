"""The index, and the page of one leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import FmtlbenchError
from ...base.words import say_count
from ..collect import Collection, RunRecord
from ..table import Row
from ..units import in_readable_units
from .data import Page, Site
from .figures import Drawn
from .legend import legend
from .markup import Html, document, join, tag
from .overview import DELTA, measured, overview
from .tables import html_table

HOME = "Leaderboards"
DOWNLOADS = {"csv": ("CSV", "csv"), "md": ("Markdown", "md"), "latex": ("LaTeX", "tex")}


def index_page(site: Site) -> Html:
    """Make the first page: one table of all methods and scenarios, and what each of its columns rests on."""
    settings = site.by_setting()
    scenarios = {page.scenario for page in site.pages}
    main: list[Any] = [
        tag("h1", "Federated multi-task learning leaderboards"),
        tag(
            "p",
            f"{say_count(len(site.run_files), 'finished run')}, {say_count(len(settings), 'setting')}, "
            f"{say_count(len(scenarios), 'scenario')}. A column compares runs of one setting; no column mixes two.",
            class_="lead-words",
        ),
        overview(site),
        tag("h2", "What was measured"),
        tag("div", [_card(pages) for pages in settings], class_="cards"),
    ]
    if site.left_out:
        items = [tag("li", problem) for problem in site.left_out]
        summary = tag("summary", f"{say_count(len(items), 'folder')} left out")
        main.append(tag("details", summary, tag("ul", join(items, "\n"), class_="notes")))
    return document("fmtlbench leaderboards", main, [(HOME, None)])


def _card(pages: Sequence[Page]) -> Html:
    page = pages[0]
    links = [tag("a", f"{p.split} test split", href=f"{p.slug}.html", class_="button") for p in pages]
    words = _described(page.runs[0])
    return tag(
        "article",
        tag("h3", page.scenario),
        tag("p", words) if words else None,
        tag("p", measured(page)),
        tag("p", links),
        tag("p", page.table.caption, class_="caption"),
    )


def _described(run: RunRecord) -> str:
    scenario = run.config.get("scenario")
    words = scenario.get("description") if isinstance(scenario, dict) else None
    return str(words) if words else ""


def scenario_page(
    page: Page, site: Site, collection: Collection, figures: Sequence[Drawn], refused: Sequence[str]
) -> Html:
    """Make the page of one setting and split: table, figures, tests, costs; `collection` has its runs alone."""
    splits = [
        tag("a", other.split, href=f"{other.slug}.html", aria_current="page" if other is page else None)
        for other in site.pages
        if other.setting == page.setting
    ]
    downloads = [
        tag("a", title, href=f"tables/{page.slug}.{ending}", download=True) for title, ending in DOWNLOADS.values()
    ]
    words = _described(page.runs[0])
    main = [
        tag("h1", page.scenario, " ", tag("small", f"{page.split} test split")),
        tag("p", words, class_="lead-words") if words else None,
        tag("p", measured(page)),
        tag("p", page.table.caption, class_="caption"),
        tag(
            "div",
            tag("nav", tag("span", "Test split"), splits, aria_label="Test split", class_="choice"),
            tag("p", "Download ", join(downloads, " "), class_="downloads"),
            class_="bar",
        ),
        leaderboard(page, site),
        _figures(figures, refused),
        _significance(page, site, collection),
        _costs(page, site, collection),
    ]
    title = f"{page.table.title} · fmtlbench"
    return document(title, main, [(HOME, "index.html"), (f"{page.scenario}, {page.split}", None)])


def leaderboard(page: Page, site: Site) -> Html:
    """Make the table, Δm first; a method leads to its run of the lowest seed, the last column to each of its runs."""

    def first(row: Row) -> str | None:
        runs = page.runs_of(row)
        return site.run_files[runs[0].name] if runs else None

    def seeds(row: Row) -> list[Html]:
        return [
            tag("a", str(run.summary["seed"]), href=site.run_files[run.name], aria_label=f"{run.label}, seed {seed}")
            for run in page.runs_of(row)
            for seed in [run.summary["seed"]]
        ]

    table = page.table.with_first(DELTA)
    return tag("section", html_table(table, first, ("runs", seeds), lead=True), legend(table), class_="wide")


def _figures(figures: Sequence[Drawn], refused: Sequence[str]) -> Html | None:
    if not figures and not refused:
        return None
    notes = [note for figure in figures for note in figure.notes]
    shared = [note for note in dict.fromkeys(notes) if notes.count(note) > 1]  # said once, below all
    drawn = []
    for f in figures:
        own = "; ".join((f.alt, *(note for note in f.notes if note not in shared)))  # notes begin in lower case
        words = tag("figcaption", f"{own}. ", tag("a", "PDF", href=f.print))
        drawn.append(tag("figure", tag("h3", f.title), f.drawing, words))
    below = tag("ul", [tag("li", note) for note in shared], class_="notes") if shared else None
    lines = tag("ul", [tag("li", line) for line in refused], class_="notes")
    missing = (
        tag("details", tag("summary", f"{say_count(len(refused), 'figure')} not drawn"), lines) if refused else None
    )
    return tag("section", tag("h2", "Figures"), tag("div", join(drawn, "\n"), class_="figures"), below, missing)


def _significance(page: Page, site: Site, collection: Collection) -> Html:
    from ..stats import analyse
    from ..stats.tables import pair_table, rank_table

    heading = tag("h2", "Significance")
    if page.too_many:
        return tag("section", heading, tag("p", f"Not tested: {page.too_many}."))
    try:
        reference = site.delta.reference if site.delta else None
        analysis = analyse(collection.frame, split=page.split, reference=reference)
    except FmtlbenchError as error:
        return tag("section", heading, tag("p", f"Not tested: {error}"))
    ranks, pairs = rank_table(analysis), pair_table(analysis)
    more = tag(
        "details",
        tag("summary", f"{pairs.title} ({len(pairs.rows)})"),
        tag("p", pairs.caption, class_="caption"),
        html_table(pairs, tools=False, number=3),
    )
    return tag(
        "section", heading, tag("p", ranks.caption, class_="caption"), html_table(ranks, tools=False, number=2), more
    )


def _costs(page: Page, site: Site, collection: Collection) -> Html | None:
    """Make the table of costs; None where no run says what it cost."""
    from ..cost import cost_tables

    heading = tag("h2", "Cost")
    try:
        if not any(run.cost for run in collection.runs):
            return None
        tables = cost_tables(collection, split=page.split, delta=site.delta)
    except FmtlbenchError as error:
        return tag("section", heading, tag("p", f"No cost table: {error}"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # files of other versions
        return tag("section", heading, tag("p", f"No cost table: {type(error).__name__}: {error}"))
    return tag(
        "section", heading, [html_table(in_readable_units(t), tools=False, number=n) for n, t in enumerate(tables, 4)]
    )
