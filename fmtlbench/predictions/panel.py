"""Draw the qualitative panel: a row per image and task, with the input, the ground truth and one column per run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from ..kinds import draw_image
from ..tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 1.35  # inches, the width of a picture
MARGIN, HEAD, LINE = 0.28, 0.24, 0.13  # inches: left, above, and above for each further line of a title
GAP, SPACE = 0.12, 0.03  # inches: between groups of rows, between pictures


@dataclass(frozen=True)
class PanelRow:
    """One task of one image: the ground truth and the prediction of each run."""

    client: str
    task: str
    image: str
    truth: dict[str, np.ndarray]  # 'image' and the task
    predictions: list[np.ndarray]  # in the form of the label; probabilities for sal and edge
    class_names: tuple[str, ...] | None


def draw_panel(rows: Sequence[PanelRow], titles: Sequence[str]) -> Figure:
    """Return one figure of all rows; consecutive rows of one client and task share their colours."""
    from matplotlib.figure import Figure

    groups = [list(group) for _, group in groupby(rows, key=lambda row: (row.client, row.task))]
    heights = [[CELL * row.truth["image"].shape[0] / row.truth["image"].shape[1] for row in group] for group in groups]
    columns = ["input", "ground truth", *map(_break_title, titles)]
    head = HEAD + LINE * max(title.count("\n") for title in columns)
    width = MARGIN + len(columns) * (CELL + SPACE) + SPACE
    total = head + SPACE + sum(GAP + sum(h + SPACE for h in group) for group in heights) - GAP
    figure = Figure(figsize=(width, total), dpi=200, facecolor="white")
    top = total - head
    for k, title in enumerate(columns):
        middle = (MARGIN + k * (CELL + SPACE) + CELL / 2) / width
        figure.text(middle, (top + 0.05) / total, title, fontsize=7.5, ha="center", va="bottom")
    for group, high in zip(groups, heights):
        names, task = group[0].class_names, group[0].task
        kind = TASKS[task].kind
        colours = kind.choose_colours([row.truth[task] for row in group], len(names) if names else None, names)
        bottom = top - sum(h + SPACE for h in high) + SPACE
        label = f"{group[0].client}\n{TASKS[task].description or task}"
        figure.text(
            0.5 * MARGIN / width, (top + bottom) / 2 / total, label, fontsize=6, rotation=90, ha="center", va="center"
        )
        for row, h in zip(group, high):
            for k, value in enumerate([row.truth["image"], row.truth[task], *row.predictions]):
                left = MARGIN + k * (CELL + SPACE)
                axis = figure.add_axes((left / width, (top - h) / total, CELL / width, h / total))
                axis.set_axis_off()
                if k == 0:
                    draw_image(axis, value)
                else:
                    kind.draw(axis, value, colours)
            top -= h + SPACE
        top -= GAP
    return figure


def _break_title(title: str) -> str:
    """Break a long name before its options."""
    return title if len(title) <= 24 else title.replace(" (", "\n(", 1)
