"""Predictions of stored runs in one figure, and the device that makes them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..inference.stored_run import StoredRun
    from ..listeners import Listener


def draw_runs(
    runs: Mapping[str, StoredRun],
    data_root: str | Path | None,
    device: str,
    clients: Sequence[str],
    image: int,
) -> Figure:
    """Draw what runs predict on one image, by title, below the truth: a column per task of the clients."""
    from ..inference.panel import draw_by_run, merge_clients
    from ..inference.predict import check_comparable, panel_rows
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines

    progress = Bars() if sys.stderr.isatty() else JsonLines()
    stored = list(runs.values())
    check_comparable(stored)
    try:
        for run in stored:
            open_run(run, data_root, device, progress)
        (row,) = merge_clients(panel_rows(stored, clients=clients, images=[image]))
    finally:
        progress.end()
    return draw_by_run(row, list(runs))


def open_run(run: StoredRun, data_root: str | Path | None, device: str, progress: Listener) -> None:
    """Open a stored run for predictions; note what may make them differ from those that were scored."""
    run.open(data_root, _choose_device(device, run.config.device, progress), progress)
    _tell_code(run, progress)


def _tell_code(run: StoredRun, progress: Listener) -> None:
    """Note where the networks are built by other code than when the run was made."""
    from ..runs.configured_code import network_code_of
    from ..runs.recorded_code import explain_network_change

    if change := explain_network_change(run.files, network_code_of(run.config)):
        progress.note(f"{run.folder}: its networks are rebuilt by today's code ({change}): predictions may differ")


def _choose_device(asked: str, of_run: str, progress: Listener) -> Any:
    """Return the device to predict on: by default of the kind that the run's scores come from."""
    from ..base.errors import FmtlbenchError
    from ..engine.device import pick_device

    try:
        return pick_device(of_run if asked == "auto" else asked)
    except FmtlbenchError:
        if asked != "auto":
            raise
        progress.note(f"the run was made on {of_run}, which is not here: predicting on cpu, last digits may differ")
        return pick_device("cpu")
