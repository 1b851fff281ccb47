"""Write a few images beside their ground truth and predictions as pictures, for pages that show a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ..tasks import draw_image
from .panel import PanelRow, draw_task, task_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 3  # images of a client
SMALLEST, LARGEST = 192, 256  # pixels, the width of a picture
INPUT, TRUTH, PREDICTION = "input", "truth", "prediction"


def write_examples(folder: Path, rows: Sequence[PanelRow]) -> None:
    """Write <client>/<image>/input.png, <task>-truth.png and <task>-prediction.png of the first run of every row."""
    for client, of_client in groupby(rows, key=lambda row: row.client):
        shown = list(of_client)
        colours = task_colours(shown)
        for row in shown:
            target = folder / client / row.image
            target.mkdir(parents=True)
            shape = row.picture.shape[:2]
            _write(target / f"{INPUT}.png", shape, partial(draw_image, image=row.picture))
            for of, own in zip(row.tasks, colours):
                for name, value in ((TRUTH, of.truth), (PREDICTION, of.predictions[0])):
                    draw = partial(draw_task, of=of, value=value, colours=own)
                    _write(target / f"{of.task}-{name}.png", shape, draw)


def _write(path: Path, shape: tuple[int, int], draw: Callable[[Axes], object]) -> None:
    """Write what `draw` puts on axes as a picture without a border."""
    from matplotlib.figure import Figure

    high, wide = shape
    pixels = min(max(wide, SMALLEST), LARGEST)
    figure = Figure(figsize=(pixels / 100, pixels * high / wide / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    draw(axes)
    figure.savefig(path)
