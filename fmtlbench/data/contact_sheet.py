"""One figure to see what a dataset holds: a row per sample, a column for the image and one per task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..predictions.colours import TITLES, class_colours, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def contact_sheet(
    samples: list[dict[str, np.ndarray]],
    tasks: tuple[str, ...],
    classes: dict[str, int],
    class_names: dict[str, tuple[str, ...]],
) -> Figure:
    """Draw the samples; save the result with `figure.savefig`.

    Args:
        samples: 'image' and the tasks' labels, as a dataset's item.
        tasks: which columns, in this order, after the image.
        classes: task -> number of classes, for the tasks that have classes.
        class_names: task -> names for the legend; a task missing here is labelled with class numbers.
    """
    from matplotlib.figure import Figure

    columns = ("image", *tasks)
    height, width = samples[0]["image"].shape[:2]
    cell = 1.9
    rows_high = cell * height / width * len(samples)
    tables = {task: class_colours(classes[task], class_names.get(task)) for task in tasks if task in classes}
    legends = {task: _legend(task, table, class_names.get(task)) for task, table in tables.items()}
    # Legends go below their column: two entries per line.
    legend_high = 0.1 + 0.135 * max([(len(entries) + 1) // 2 for entries in legends.values()] + [3])
    total = rows_high * 1.04 + legend_high + 0.4
    figure = Figure(figsize=(cell * len(columns) * 1.04 + 0.2, total), dpi=110, facecolor="white")
    axes = figure.subplots(len(samples), len(columns), squeeze=False)
    figure.subplots_adjust(
        left=0.01, right=0.99, top=1 - 0.35 / total, bottom=legend_high / total, wspace=0.04, hspace=0.04
    )
    deepest = max((float(s["depth"].max()) for s in samples if "depth" in s), default=1.0)
    for row, sample in zip(axes, samples):
        for axis, key in zip(row, columns):
            axis.set_xticks([])
            axis.set_yticks([])
            draw(axis, key, sample[key], tables, deepest)
    for axis, key in zip(axes[0], columns):
        axis.set_title(TITLES.get(key, key), fontsize=9)
    for axis, key in zip(axes[-1], columns):
        box = axis.get_position()
        if key in legends:
            figure.legend(
                handles=legends[key],
                loc="upper left",
                bbox_to_anchor=(box.x0, box.y0 - 0.02 / total),
                ncol=2,
                fontsize=6.5,
                frameon=False,
                handlelength=1.0,
                columnspacing=0.8,
                borderpad=0.1,
                labelspacing=0.25,
            )
        elif key == "depth":
            drawn = axis.images[0]
            scale = figure.add_axes((box.x0, box.y0 - 0.16 / total, box.width, 0.09 / total))
            figure.colorbar(drawn, cax=scale, orientation="horizontal").ax.tick_params(labelsize=6.5)
        elif key == "normals":
            figure.text(box.x0, box.y0 - 0.08 / total, "red right, green up, blue to viewer", fontsize=6.5, va="top")
    return figure


def _legend(task: str, table: np.ndarray, names: tuple[str, ...] | None) -> list:
    from matplotlib.patches import Patch

    entries = [Patch(color=colour, label=names[k] if names else str(k)) for k, colour in enumerate(table[:-1])]
    if task == "semseg":
        entries.append(Patch(color=table[-1], label="ignored"))
    return entries
