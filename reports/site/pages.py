"""The index, and the page of one leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import FmtlbenchError
from ...words import say_count
from ..collect import Collection, RunRecord
from ..table import Row, Table
from .data import Page, Site
from .figures import Drawn
from .markup import Html, document, join, tag
from .tables import html_table

HOME = "Leaderboards"
DOWNLOADS = {"csv": ("CSV", "csv"), "md": ("Markdown", "md"), "latex": ("LaTeX", "tex")}


def index_page(site: Site) -> Html:
    """Make the page that lists what there is, by scenario and setting."""
    settings: dict[tuple, list[Page]] = {}
    for page in site.pages:
        settings.setdefault(page.setting, []).append(page)
    sections: dict[str, list[Html]] = {}
    for pages in settings.values():
        sections.setdefault(pages[0].scenario, []).append(_card(pages))
    runs = len(site.run_files)
    main: list[Any] = [
        tag("h1", "Federated multi-task learning leaderboards"),
        tag(
            "p",
            f"{say_count(runs, 'finished run')}, {say_count(len(settings), 'setting')}, "
            f"{say_count(len(sections), 'scenario')}. Runs of different settings never share a table.",
            class_="lead",
        ),
    ]
    for scenario, cards in sections.items():
        words = next(filter(None, (_described(p.runs[0]) for p in site.pages if p.scenario == scenario)), "")
        main.append(
            tag("section", tag("h2", scenario), tag("p", words) if words else None, tag("div", cards, class_="cards"))
        )
    if site.left_out:
        items = [tag("li", problem) for problem in site.left_out]
        summary = tag("summary", f"{say_count(len(items), 'folder')} left out")
        main.append(tag("details", summary, tag("ul", join(items, "\n"), class_="notes")))
    return document("fmtlbench leaderboards", main, [(HOME, None)])


def _card(pages: Sequence[Page]) -> Html:
    page = pages[0]
    links = [tag("a", f"{p.split} test split", href=f"{p.slug}.html", class_="button") for p in pages]
    facts = [f"{say_count(len(page.table.rows), 'method')}, {say_count(len(page.runs), 'run')}"]
    for p in pages:
        best = _best(p.table)
        if best:
            facts.append(f"highest Δm on the {p.split} split: {best}")
    first = page.runs[0].summary
    heading = tag("h3", f"{first['preset']} · {first['data']} data · {say_count(first['rounds'], 'round')}")
    lines = tag("ul", [tag("li", fact) for fact in facts])
    return tag("article", heading, lines, tag("p", links), tag("p", page.table.caption, class_="caption"))


def _best(table: Table) -> str | None:
    at = next(i for i, column in enumerate(table.columns) if column.key == "delta_m")
    known = [(row.cells[at].value, ", ".join(row.labels)) for row in table.rows if row.cells[at].value is not None]
    if len(known) < 2:
        return None
    value, label = max(known, key=lambda pair: pair[0])
    return f"{label}, {table.columns[at].text(value)}\u00a0%"


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
        tag("p", words, class_="lead") if words else None,
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
    """Make the table; a method leads to its run of the lowest seed, the last column to each of its runs."""

    def first(row: Row) -> str | None:
        runs = page.runs_of(row)
        return site.run_files[runs[0].name] if runs else None

    def seeds(row: Row) -> list[Html]:
        return [
            tag("a", str(run.summary["seed"]), href=site.run_files[run.name], aria_label=f"{run.label}, seed {seed}")
            for run in page.runs_of(row)
            for seed in [run.summary["seed"]]
        ]

    return tag("section", html_table(page.table, first, ("runs", seeds)), class_="wide")


def _figures(figures: Sequence[Drawn], refused: Sequence[str]) -> Html | None:
    if not figures and not refused:
        return None
    drawn = [
        tag(
            "figure",
            tag("h3", f.title),
            tag("a", tag("img", src=f.image, alt=f.alt, loading="lazy"), href=f.image),
            tag("figcaption", f"{f.alt}. ", [f"{note}. " for note in f.notes], tag("a", "PDF", href=f.print)),
        )
        for f in figures
    ]
    lines = tag("ul", [tag("li", line) for line in refused], class_="notes")
    missing = (
        tag("details", tag("summary", f"{say_count(len(refused), 'figure')} not drawn"), lines) if refused else None
    )
    return tag("section", tag("h2", "Figures"), tag("div", join(drawn, "\n"), class_="figures"), missing)


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
    return tag("section", heading, [html_table(t, tools=False, number=n) for n, t in enumerate(tables, 4)])
