"""Draw images with their ground truth and predictions: the qualitative panel, a row per image, and single pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tasks import TASKS, draw_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = 1.2  # inches, the width of a picture
MARGIN, LINE = 0.22, 0.13  # inches: left of the pictures, a line of text
GAP, SPACE, BETWEEN = 0.15, 0.03, 0.1  # inches: between clients, between pictures, between tasks
TRUTH = "ground truth"
# Of the pictures for pages that show a run.
MOST_EXAMPLES = 3  # images of a client
SMALLEST, LARGEST = 192, 256  # pixels, the width of a picture


@dataclass(frozen=True)
class PanelTask:
    """One task of one image: the ground truth and the prediction of each run."""

    task: str
    truth: np.ndarray
    predictions: list[np.ndarray]  # in the form of the label; probabilities for sal and edge
    class_names: tuple[str, ...] | None


@dataclass(frozen=True)
class PanelRow:
    """One image of one client, with all its tasks."""

    client: str
    image: str
    picture: np.ndarray
    tasks: list[PanelTask]

    @property
    def height(self) -> float:
        """Return the height of its pictures in inches."""
        return CELL * self.picture.shape[0] / self.picture.shape[1]


def merge_clients(rows: Sequence[PanelRow]) -> list[PanelRow]:
    """Put clients with other tasks on the same images side by side, so that an image has one row."""
    blocks: list[list[PanelRow]] = []
    for _, group in groupby(rows, key=lambda row: row.client):
        mine = list(group)
        block = next((block for block in blocks if _fit_together(block, mine)), None)
        if block is None:
            blocks.append(mine)
        else:
            block[:] = [
                PanelRow(f"{one.client}, {other.client}", one.image, one.picture, [*one.tasks, *other.tasks])
                for one, other in zip(block, mine)
            ]
    return [row for block in blocks for row in block]


def _fit_together(one: Sequence[PanelRow], other: Sequence[PanelRow]) -> bool:
    tasks = [{of.task for of in rows[0].tasks} for rows in (one, other)]
    same = len(one) == len(other) and all(
        a.image == b.image and np.array_equal(a.picture, b.picture) for a, b in zip(one, other)
    )
    return same and tasks[0].isdisjoint(tasks[1])


def draw_panel(rows: Sequence[PanelRow], titles: Sequence[str]) -> Figure:
    """Return one figure of all rows; those of one client stand under one head and share their colours."""
    from matplotlib.figure import Figure

    groups = [list(group) for _, group in groupby(rows, key=lambda row: row.client)]
    columns = [TRUTH, *map(_break_title, titles)]
    head = LINE * (2 + max(title.count("\n") + 1 for title in columns))  # client, task, ground truth or run
    width = max(_left(len(group[0].tasks), 0, len(columns)) for group in groups)
    heights = [head + sum(row.height + SPACE for row in group) for group in groups]
    total = sum(heights) + GAP * (len(groups) - 1) + SPACE
    figure = Figure(figsize=(width, total), dpi=200, facecolor="white")
    top = total
    for group, high in zip(groups, heights):
        _draw_client(figure, group, columns, top, head)
        top -= high + GAP
    return figure


def draw_by_run(row: PanelRow, titles: Sequence[str]) -> Figure:
    """Return a figure of one image: a column per task, the ground truth on top and a row per run below it."""
    from matplotlib.figure import Figure

    lines = [TRUTH, *titles]
    width = MARGIN + (CELL + SPACE) * (1 + len(row.tasks))
    total = 2 * LINE + (row.height + SPACE) * len(lines)
    figure = Figure(figsize=(width, total), dpi=200, facecolor="white")

    def place(column: int, line: int) -> Axes:
        left, top = MARGIN + column * (CELL + SPACE), total - 2 * LINE - line * (row.height + SPACE)
        axes = figure.add_axes((left / width, (top - row.height) / total, CELL / width, row.height / total))
        axes.set_axis_off()
        if line == 0:
            title = "input" if column == 0 else TASKS[row.tasks[column - 1].task].description
            figure.text((left + CELL / 2) / width, (top + 0.03) / total, title, fontsize=7, ha="center", va="bottom")
        return axes

    for line, name in enumerate(lines):
        middle = total - 2 * LINE - line * (row.height + SPACE) - row.height / 2
        look = {"fontsize": 7, "rotation": 90, "ha": "center", "va": "center"}
        figure.text(MARGIN / 2 / width, middle / total, name, **look)
    draw_image(place(0, 0), row.picture)
    for column, (of, colours) in enumerate(zip(row.tasks, task_colours([row])), start=1):
        for line, value in enumerate([of.truth, *of.predictions]):
            draw_task(place(column, line), of, value, colours)
    return figure


def task_colours(rows: Sequence[PanelRow]) -> list[Any]:
    """Return what `draw` of each task's kind needs to show the rows of one client alike."""
    colours = []
    for of_task in zip(*(row.tasks for row in rows)):
        names = of_task[0].class_names
        kind = TASKS[of_task[0].task].kind
        colours.append(kind.choose_colours([each.truth for each in of_task], len(names) if names else None, names))
    return colours


def _left(task: int, column: int, columns: int) -> float:
    """Return where a picture begins, in inches: after the input, tasks of so many columns, and columns of its own."""
    return MARGIN + CELL + BETWEEN + task * (columns * (CELL + SPACE) + BETWEEN) + column * (CELL + SPACE)


def _draw_client(figure: Figure, rows: Sequence[PanelRow], columns: Sequence[str], top: float, head: float) -> None:
    width, total = figure.get_size_inches()

    def write(left: float, high: float, text: str, **look: Any) -> None:
        figure.text(left / width, high / total, text, **{"fontsize": 7, "va": "bottom", "ha": "center", **look})

    def place(left: float, row: PanelRow, high: float) -> Axes:
        axes = figure.add_axes((left / width, (high - row.height) / total, CELL / width, row.height / total))
        axes.set_axis_off()
        return axes

    write(MARGIN, top - LINE, rows[0].client, ha="left", fontweight="bold")
    under = top - head + 0.03
    write(MARGIN + CELL / 2, under, "input")
    middle = (len(columns) * (CELL + SPACE) - SPACE) / 2
    for k, of in enumerate(rows[0].tasks):
        write(_left(k, 0, len(columns)) + middle, top - 2 * LINE, TASKS[of.task].description or of.task)
        for column, title in enumerate(columns):
            write(_left(k, column, len(columns)) + CELL / 2, under, title)
    colours = task_colours(rows)
    top -= head
    for row in rows:
        write(MARGIN / 2, top - row.height / 2, row.image, rotation=90, va="center", fontsize=6)
        draw_image(place(MARGIN, row, top), row.picture)
        for k, of in enumerate(row.tasks):
            for column, value in enumerate([of.truth, *of.predictions]):
                axes = place(_left(k, column, len(columns)), row, top)
                draw_task(axes, of, value, colours[k])
        top -= row.height + SPACE


def draw_task(axes: Axes, of: PanelTask, value: np.ndarray, colours: Any) -> None:
    """Draw a task's ground truth or a prediction; on a prediction, the outlines of the truth show where it is wrong."""
    kind = TASKS[of.task].kind
    kind.draw(axes, value, colours)
    if value is not of.truth:
        kind.draw_outlines(axes, of.truth)


def _break_title(title: str) -> str:
    """Break a long name before its options."""
    return title if len(title) <= 20 else title.replace(" (", "\n(", 1)


# -- single pictures ---------------------------------------------------------------------------------------------------


def write_examples(folder: Path, rows: Sequence[PanelRow]) -> None:
    """Write <client>/<image>/input.png, <task>-truth.png and <task>-prediction.png of the first run of every row."""
    for client, of_client in groupby(rows, key=lambda row: row.client):
        shown = list(of_client)
        colours = task_colours(shown)
        for row in shown:
            target = folder / client / row.image
            target.mkdir(parents=True)
            shape = row.picture.shape[:2]
            _write_picture(target / "input.png", shape, partial(draw_image, image=row.picture))
            for of, own in zip(row.tasks, colours):
                for name, value in (("truth", of.truth), ("prediction", of.predictions[0])):
                    draw = partial(draw_task, of=of, value=value, colours=own)
                    _write_picture(target / f"{of.task}-{name}.png", shape, draw)


def _write_picture(path: Path, shape: tuple[int, int], draw: Callable[[Axes], object]) -> None:
    """Write what `draw` puts on axes as a picture without a border."""
    from matplotlib.figure import Figure

    high, wide = shape
    pixels = min(max(wide, SMALLEST), LARGEST)
    figure = Figure(figsize=(pixels / 100, pixels * high / wide / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    draw(axes)
    figure.savefig(path)
