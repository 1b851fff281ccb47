"""Predictions of stored runs in one figure, and the device that makes them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..engine.stored_run import StoredRun
    from ..listeners import Listener


def draw_runs(
    runs: Mapping[str, StoredRun],
    data_root: str | Path | None,
    device: str,
    clients: Sequence[str],
    image: int,
) -> Figure:
    """Draw what runs predict on one image, by title, below the truth: a column per task of the clients."""
    from ..engine.predict import check_comparable, panel_rows
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines
    from ..predictions.panel import draw_by_run, merge_clients

    progress = Bars() if sys.stderr.isatty() else JsonLines()
    stored = list(runs.values())
    check_comparable(stored)
    try:
        for run in stored:
            run.open(data_root, choose_device(device, run.config.device, progress), progress)
        (row,) = merge_clients(panel_rows(stored, clients=clients, images=[image]))
    finally:
        progress.end()
    return draw_by_run(row, list(runs))


def choose_device(asked: str, of_run: str, progress: Listener) -> Any:
    """Return the device to predict on: by default of the kind that the run's scores come from."""
    from ..api import pick_device
    from ..errors import FmtlbenchError

    try:
        return pick_device(of_run if asked == "auto" else asked)
    except FmtlbenchError:
        if asked != "auto":
            raise
        progress.note(f"the run was made on {of_run}, which is not here: predicting on cpu, last digits may differ")
        return pick_device("cpu")
