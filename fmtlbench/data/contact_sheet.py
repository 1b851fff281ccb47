"""Draw one figure of a dataset's samples: a row per sample, a column for the image and one per task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import UsageError
from ..tasks import TASKS, draw_image
from .datasets import DatasetInfo, open_split

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 1.9  # inches, the width of a picture


def first_samples(
    info: DatasetInfo,
    split: str,
    first: int,
    count: int,
    size: tuple[int, int],
    data_root: str | None = None,
    layout: str | None = None,
) -> list[dict[str, np.ndarray]]:
    """Return some samples of a dataset, from number `first` on: rendered at `size`, or read as they are."""
    if info.source == "synth":
        from .datasets.synth import generate

        return [generate(info.name, split, index, size) for index in range(first, first + count)]
    dataset = open_split(info, split, data_root, layout=layout)
    if first >= len(dataset):
        raise UsageError(f"--first {first}: {info.name} {split} has {len(dataset)} images")
    return [dataset.sample(index) for index in range(first, min(first + count, len(dataset)))]


def contact_sheet(
    samples: list[dict[str, np.ndarray]], tasks: Sequence[str], class_names: Mapping[str, Sequence[str]]
) -> Figure:
    """Return a figure of the samples; save it with `figure.savefig`.

    Args:
        samples: 'image' and the tasks' labels, as a dataset's item.
        tasks: which columns, in this order, after the image.
        class_names: task -> names for the legend, of the tasks that have classes.
    """
    from matplotlib.figure import Figure

    kinds = {task: TASKS[task].kind for task in tasks}
    names = {task: class_names.get(task) for task in tasks}
    colours = {
        task: kind.choose_colours([s[task] for s in samples], len(names[task]) if names[task] else None, names[task])
        for task, kind in kinds.items()
    }
    columns = len(tasks) + 1
    height, width = samples[0]["image"].shape[:2]
    lines = max((kind.key_lines(colours[task]) for task, kind in kinds.items()), default=0)
    key_high = 0.1 + 0.135 * max(lines, 3)  # the key to the colours is below each column
    total = CELL * height / width * len(samples) * 1.04 + key_high + 0.4
    figure = Figure(figsize=(CELL * columns * 1.04 + 0.2, total), dpi=110, facecolor="white")
    axes = figure.subplots(len(samples), columns, squeeze=False)
    figure.subplots_adjust(
        left=0.01, right=0.99, top=1 - 0.35 / total, bottom=key_high / total, wspace=0.04, hspace=0.04
    )
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
    for row, sample in zip(axes, samples):
        draw_image(row[0], sample["image"])
        for axis, (task, kind) in zip(row[1:], kinds.items()):
            kind.draw(axis, sample[task], colours[task])
    for axis, title in zip(axes[0], ("image", *(TASKS[task].description or task for task in tasks))):
        axis.set_title(title, fontsize=9)
    for axis, (task, kind) in zip(axes[-1][1:], kinds.items()):
        place = axis.get_position()
        kind.draw_key(figure, axis.images[0], (place.x0, place.y0, place.width), colours[task], names[task])
    return figure
