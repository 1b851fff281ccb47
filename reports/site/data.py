"""Which pages a site has: one per setting and split, one per run, each with a file name of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from ...base.errors import UsageError
from ..collect import Collection, RunRecord
from ..delta import Delta
from ..leaderboard import leaderboards
from ..settings import by_setting
from ..table import Row, Table

SPLITS = ("global", "personal", "unseen")  # others follow in alphabetical order
MOST_COMPARED = 40  # methods: 780 pairs to test; nobody reads more of them on a page


@dataclass
class Page:
    """One leaderboard, and the runs it was made of."""

    slug: str
    split: str
    table: Table
    runs: list[RunRecord]

    @property
    def scenario(self) -> str:
        return self.runs[0].summary["scenario"]

    @property
    def setting(self) -> tuple:
        """Return a key that is equal for the pages that show the same runs on other test images."""
        run = self.runs[0]
        return (self.scenario, run.summary.get("scenario_version"), run.setting, run.data_key)

    @property
    def tasks(self) -> list[str]:
        """Return the tasks in the order of the table's columns, which are called dataset/task/metric."""
        scored = [column.key.split("/") for column in self.table.columns if column.key.count("/") >= 2]
        return list(dict.fromkeys(words[-2] for words in scored))

    @property
    def too_many(self) -> str:
        """Say why pairs of methods are not tested here; "" where they are."""
        count = len(self.table.rows)
        if count <= MOST_COMPARED:
            return ""
        return f"{count} methods, and pages test up to {MOST_COMPARED}; `fmtlbench stats` compares any number"

    def runs_of(self, row: Row) -> list[RunRecord]:
        return sorted((run for run in self.runs if run.row == row.labels), key=lambda run: run.summary["seed"])


def own_collection(page: Page, collection: Collection) -> Collection:
    """Return the runs of a page alone."""
    names, runs = {run.name for run in page.runs}, []
    for run in page.runs:
        own = replace(run)
        for read in ("rounds", "timing"):  # several figures and tables of a page read the same rows
            setattr(own, read, cache(getattr(run, read)))
        runs.append(own)
    return Collection(collection.frame[collection.frame["run"].isin(names)], runs, [], heads=collection.heads)


@dataclass
class Site:
    """All pages, and what could not be shown."""

    pages: list[Page]
    run_files: dict[str, str]  # run → its page, from the site's root
    left_out: list[str]
    of_run: dict[str, list[Page]] = field(default_factory=dict)  # run → the leaderboards it stands in
    delta: Delta | None = None  # which Δm its tables and figures show

    def by_setting(self) -> list[list[Page]]:
        """Return the pages of each setting: the same runs on several test splits."""
        settings: dict[tuple, list[Page]] = {}
        for page in self.pages:
            settings.setdefault(page.setting, []).append(page)
        return list(settings.values())


def plan_site(
    collection: Collection,
    scenario: str | None = None,
    splits: Sequence[str] | None = None,
    delta: Delta | None = None,
    sort: str = "zoo",
    spread: str = "seeds",
    fair: bool = False,
) -> Site:
    """Plan the pages for these runs; the choices are those of `leaderboards`, and `splits` None means all.

    Raises:
        UsageError: No run has a score to show.
    """
    frame, taken = collection.frame, set()
    primary = frame[frame["primary"].astype(bool)]
    if scenario is not None:
        primary = primary[primary["scenario"] == scenario]
    there = set(primary["split"])
    if splits is None:
        splits = sorted(there, key=lambda s: (SPLITS.index(s) if s in SPLITS else len(SPLITS), s)) or SPLITS[:1]
    pages: list[Page] = []
    for split in splits:
        tables = leaderboards(collection, scenario, split, delta, sort, spread, fair)
        settings = by_setting(primary[primary["split"] == split], collection.runs)
        for table, (_, _, runs) in zip(tables, settings, strict=True):
            pages.append(Page(slug(table.name, taken), split, table, runs))
    pages.sort(key=lambda page: page.scenario)  # stable: settings and splits stay in their order
    site = Site(pages, {}, list(map(str, collection.problems)), delta=delta)
    for page in pages:
        for run in page.runs:
            site.of_run.setdefault(run.name, []).append(page)
    files: set[str] = set()
    for run in collection.runs:
        if run.name in site.of_run:
            site.run_files[run.name] = f"runs/{slug(run.name, files)}.html"
        elif scenario in (None, run.summary["scenario"]):
            site.left_out.append(f"{run.folder}: no primary score on the {' or '.join(splits)} split")
    if not pages:
        raise UsageError("no run has a score to show")
    return site


def slug(text: str, taken: set[str]) -> str:
    """Return a file name that every system takes and that no other page has."""
    name = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[-100:].strip("-") or "page"
    count, made = 1, "page-index" if name == "index" else name
    while made in taken:
        count += 1
        made = f"{name}-{count}"
    taken.add(made)
    return made
