"""which client holds how much of which task; --scenario.

A column per client, a row per task, dot area = images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ...base.errors import UsageError
from ...tasks import colour_of, title_of
from ..collect import Collection
from ..figure_style import ABREAST, GREY, WIDTH, new_figure, styled, text_width
from ..labels import dataset_titles
from . import Options
from ._choose_runs import runs_of_scenario

POINT = 1 / 72  # inches
WIDEST = 6.9  # inches, both columns of a page
LABELS = 0.85  # inches left for the names of tasks and datasets
COLUMN = 0.3  # inches per client that let every number stand
DOT = 20.0  # points, diameter of the largest dot
ROW = 0.4  # inches: the largest dot, or a small one and its number
FONT = 7.0  # points
DIGIT = 0.58 * FONT  # points, width of one digit


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    runs = runs_of_scenario(collection.runs, options.scenario)
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


@styled
def distribution(name: str, clients: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> Figure:
    """Draw one scenario.

    Args:
        name: of the scenario, for the title.
        clients: in scenario order, each with `dataset`, `tasks` (a sequence of names) and `images`.
        titles: of the datasets, by their names.
    """
    figure = new_figure(_height(clients), _width(clients))
    _draw_scenario(figure.add_subplot(), name, clients, titles, _width(clients))
    return figure


@styled
def distributions(scenarios: Mapping[str, Sequence[Mapping[str, Any]]], titles: Mapping[str, str]) -> Figure:
    """Draw several scenarios, two abreast; see `distribution`."""
    names = list(scenarios)
    width = max(map(_width, scenarios.values()))
    rows = [names[start : start + ABREAST] for start in range(0, len(names), ABREAST)]
    heights = [max(_height(scenarios[name]) for name in row) for row in rows]
    figure = new_figure(sum(heights), width * min(ABREAST, len(names)))
    places = figure.subfigures(len(rows), min(ABREAST, len(names)), squeeze=False, height_ratios=heights)
    for place, name in zip(places.flat, names):
        _draw_scenario(place.add_subplot(), name, scenarios[name], titles, width)
    return figure


def _width(clients: Sequence[Mapping[str, Any]]) -> float:
    return min(WIDEST, max(WIDTH, LABELS + COLUMN * len(clients)))


def _height(clients: Sequence[Mapping[str, Any]]) -> float:
    return ROW * len(_rows(clients)) + 0.55


def _draw_scenario(
    axes: Axes, name: str, clients: Sequence[Mapping[str, Any]], titles: Mapping[str, str], width: float
) -> None:
    rows = _rows(clients)
    column = (width - LABELS) / len(clients) / POINT  # points
    largest = max(client["images"] for client in clients)
    diameter = min(DOT, max(column - 1.5, 1.5))
    numbers = column >= DIGIT * len(str(largest)) + 1
    for x, client in enumerate(clients, start=1):
        places = [rows.index((client["dataset"], task)) for task in client["tasks"]]
        axes.plot([x, x], [min(places), max(places)], color="0.8", linewidth=0.8, zorder=1)
        size = diameter * (client["images"] / largest) ** 0.5
        for y, task in zip(places, client["tasks"]):
            colour = colour_of(task, GREY)
            axes.plot(x, y, "o", color=colour, markersize=size, markeredgewidth=0, zorder=2)
            if numbers:
                _number(axes, (x, y), client["images"], size, column, colour)
    axes.set_title(name if numbers else f"{name}: up to {largest} images per client")
    _frame(axes, rows, len(clients), titles)


def _rows(clients: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return (dataset, task), dataset by dataset, in the order in which the clients bring them."""
    seen = dict.fromkeys((client["dataset"], task) for client in clients for task in client["tasks"])
    return [row for dataset in dict.fromkeys(d for d, _ in seen) for row in seen if row[0] == dataset]


def _number(axes: Axes, place: tuple[int, int], images: int, size: float, column: float, colour: str) -> None:
    """Write a number in the dot, else beside it, else below it; `size` and `column` in points."""
    length = DIGIT * len(str(images))
    look = {"fontsize": FONT, "zorder": 3, "textcoords": "offset points"}
    if size >= length + 2:
        light = sum(weight * part for weight, part in zip((0.299, 0.587, 0.114), to_rgb(colour))) > 0.55
        look |= {"xytext": (0, 0), "ha": "center", "va": "center_baseline", "color": "black" if light else "white"}
    elif column / 2 >= size / 2 + length + 2:
        look |= {"xytext": (size / 2 + 1.5, 0), "ha": "left", "va": "center_baseline", "color": "0.15"}
    else:
        halo = [withStroke(linewidth=1.8, foreground="white")]  # the line to the next dot runs behind it
        look |= {"xytext": (0, -size / 2 - 1), "ha": "center", "va": "top", "color": "0.15", "path_effects": halo}
    axes.annotate(str(images), place, **look)


def _frame(axes: Axes, rows: list[tuple[str, str]], clients: int, titles: Mapping[str, str]) -> None:
    axes.set_xlim(0.5, clients + 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    step = next(n for n in (1, 2, 5, 10, 20, 50, 100, 500, 1000, 10_000, 100_000) if clients / n <= 24)
    axes.set_xticks([1, *range(step, clients + 1, step)] if step > 1 else range(1, clients + 1))
    axes.set_xlabel("client")
    axes.set_yticks(range(len(rows)), [title_of(task) for _, task in rows])
    for label, (_, task) in zip(axes.get_yticklabels(), rows):
        label.set_color(_dark(colour_of(task, GREY)))
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="0.93")
    for side in ("left", "bottom"):
        axes.spines[side].set_color("0.7")
    start = 0
    for dataset in dict.fromkeys(d for d, _ in rows):
        count = sum(d == dataset for d, _ in rows)
        if start:
            axes.axhline(start - 0.5, color="0.7", linewidth=0.6)
        title = titles[dataset]
        if text_width([title], FONT) > ROW * count:  # longer than its rows: it would run into its neighbour
            title = title.replace("-", "-\n", 1)
        place = (0, start + (count - 1) / 2)
        look = {"rotation": 90, "ha": "center", "va": "center", "fontsize": FONT}
        where = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
        axes.annotate(title, place, (-46, 0), **where, **look)
        start += count


def _dark(colour: str) -> tuple[float, ...]:
    """Return the colour, dark enough to be read as text on white."""
    return tuple(0.72 * part for part in to_rgb(colour))
