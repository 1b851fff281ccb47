"""The site's first table: methods by scenarios, Δm as bars around zero; and a sentence about what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...base.words import inflect, say_count
from ..collect import RunRecord
from ..fences import find_fences
from ..formats._words import cell_text
from ..labels import dataset_titles
from ..settings import distinguishing, listed
from ..table import Cell
from .data import Page
from .markup import Markup, fill

WIDTH, HEIGHT, ARROW = 120, 10, 5  # of a bar's drawing, in its own units
DELTA = "delta_m"


def overview(settings: Sequence[Sequence[Page]]) -> dict[str, Any]:
    """Return what the matrix shows: a row per method, a column per leaderboard."""
    columns = [page for pages in settings for page in pages]
    methods = list(dict.fromkeys(row.labels for page in columns for row in page.table.rows))
    cells = [{row.labels: row.cells[_place(page)] for row in page.table.rows} for page in columns]
    known = [cell for of_page in cells for cell in of_page.values()]
    scale = _scale(known)
    rows = [
        (", ".join(method), [_cell(of_page.get(method, Cell()), page, scale) for of_page, page in zip(cells, columns)])
        for method in methods
    ]
    apart = _tell_apart([pages[0].runs[0] for pages in settings])
    return {
        "settings": list(zip(settings, apart)),
        "columns": columns,
        "rows": rows,
        "scale": scale,
        "signed": any(cell.signs for cell in known),
    }


def _place(page: Page) -> int:
    place = page.table.column(DELTA)
    assert place is not None, f"{page.slug}: every leaderboard has Δm"
    return place


def _tell_apart(runs: Sequence[RunRecord]) -> list[str]:
    """Say for one run of each setting what sets it apart from others of its scenario."""
    told = []
    for run, words in zip(runs, distinguishing(runs)):
        others = [other for other in runs if other.summary["scenario"] == run.summary["scenario"]]
        parts = []
        for key, text in (("preset", "preset {}"), ("data", "{} data"), ("rounds", "{} rounds")):
            if len({other.summary[key] for other in others}) > 1:
                parts.append(text.format(run.summary[key]))
        told.append(", ".join(filter(None, (*parts, words))))
    return told


def _scale(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return the ends of all bars: the lowest and highest number drawn, and zero between them.

    A method that went astray would shrink all others to dots: what lies far from most values does not count.
    """
    drawn = [cell for cell in cells if cell.value is not None]
    ends = [end for cell in drawn for end in (cell.value, *(cell.interval or ()))]
    low, high = find_fences([cell.value for cell in drawn])
    ends = [end for end in ends if low <= end <= high]
    return min([0.0, *ends]), max([0.0, *ends])


def _cell(cell: Cell, page: Page, scale: tuple[float, float]) -> dict[str, Any]:
    if cell.value is None:
        return {"bar": None, "text": cell.word}
    column = replace(page.table.columns[_place(page)], signed=True)
    low_high = [column.text(end) for end in cell.interval or ()]
    return {
        "bar": draw_bar(cell, scale),
        "value": cell.value,
        "text": cell_text(replace(cell, interval=None), column, lambda text, mark: text),
        "interval": f"[{', '.join(low_high)}]" if low_high else "",
    }


def draw_bar(cell: Cell, scale: tuple[float, float]) -> Markup:
    """Draw a value as a bar from zero, and its interval as a line; text beside it says the numbers.

    What lies beyond an end of the scale is cut there, with an arrow.
    """
    low, high = scale
    span = (high - low) or 1.0

    def at(value: float) -> float:
        return round(WIDTH * (min(max(value, low), high) - low) / span, 2)

    zero, value = at(0.0), at(cell.value or 0.0)
    ends = [cell.value or 0.0, *(cell.interval or ())]
    arrows = ((min(ends) < low, 0, ARROW), (max(ends) > high, WIDTH, WIDTH - ARROW))
    return fill(
        "bar.html",
        width=WIDTH,
        height=HEIGHT,
        kind="gain" if value >= zero else "loss",
        left=min(zero, value),
        long=abs(value - zero),
        interval=[at(end) for end in cell.interval or ()],
        zero=zero,
        arrows=[(tip, base) for beyond, tip, base in arrows if beyond],
    )


# -- what was measured -------------------------------------------------------------------------------------------------


def measured(page: Page) -> str:
    """Say in a sentence what a leaderboard rests on: clients, images, preset, rounds, methods and seeds."""
    first = page.runs[0].summary
    clients = first["clients"]
    who = f"{say_count(len(clients), 'client')} with {_images(clients)}"
    how = f"preset {listed({run.summary['preset'] for run in page.runs})}, {first['data']} data"
    rounds = {run.summary["rounds"] for run in page.runs}
    long = say_count(first["rounds"], "round") if len(rounds) == 1 else f"{listed(rounds)} rounds"
    tested = _test_images(page.runs[0]) if page.split == "global" else ""  # of others no file tells
    methods = say_count(len({run.row for run in page.runs}), "method")
    return f"{who}{tested}; {how}, {long}; {methods}, {_seeds(page)}, {say_count(len(page.runs), 'run')}."


def _images(clients: Sequence[dict[str, Any]]) -> str:
    counts = sorted({client["samples"] for client in clients})
    each = " each" if len(clients) > 1 else ""
    return f"{_range(counts)} training {inflect('image', counts[-1])}{each}"


def _test_images(run: RunRecord) -> str:
    """Say on how many images global scores are, where the run's config tells."""
    data = run.config.get("data")
    counts = data.get("test_samples") if isinstance(data, dict) else None
    titles = dataset_titles(run.summary)
    known = {name: count for name, count in (counts or {}).items() if name in titles and count}
    if not known:
        return ""
    return ", tested on " + " and ".join(f"{count} images of {titles[name]}" for name, count in known.items())


def _seeds(page: Page) -> str:
    counts: dict[tuple, set[int]] = {}
    for run in page.runs:
        counts.setdefault(run.row, set()).add(run.summary["seed"])
    many = sorted({len(seeds) for seeds in counts.values()})
    return f"{_range(many)} {inflect('seed', many[-1])} each"


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"
