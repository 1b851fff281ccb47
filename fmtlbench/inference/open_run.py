"""Open stored runs for predictions, on a device that is here, and draw what several of them predict side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..base.errors import FmtlbenchError
from ..config.presets import default_options
from ..engine.device import pick_device
from ..listeners import Listener
from ..runs.configured_code import network_code_of
from ..runs.recorded_code import explain_network_change
from ..runs.summary import describe_weighting
from .panel import draw_by_run, merge_clients
from .predict import check_comparable, panel_rows
from .stored_run import StoredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_runs(
    runs: Mapping[str, StoredRun],
    data_root: Path | None,
    device: str,
    progress: Listener,
    clients: Sequence[str],
    image: int,
) -> Figure:
    """Draw what runs predict on one image, by title, below the truth: a column per task of the clients."""
    stored = list(runs.values())
    check_comparable(stored)
    for run in stored:
        open_run(run, data_root, device, progress)
    (row,) = merge_clients(panel_rows(stored, clients=clients, images=[image]))
    return draw_by_run(row, list(runs))


def open_run(run: StoredRun, data_root: Path | None, device: str, progress: Listener) -> None:
    """Open a stored run for predictions; note what may make them differ from those that were scored."""
    run.open(data_root, _choose_device(device, run.config.device, progress), progress)
    if change := explain_network_change(run.files, network_code_of(run.config)):
        progress.note(f"{run.folder}: its networks are rebuilt by today's code ({change}): predictions may differ")


def describe_method(run: StoredRun) -> dict[str, Any]:
    """Return what tables name a run's method by, as its summary has it."""
    method = run.config.algorithm
    return {
        "algorithm": method.name,
        "title": run.title,
        "options": method.options,
        "default_options": default_options(run.algorithm, run.config.preset, run.config.preset_options),
        "weighting": describe_weighting(run.config),
    }


def choose_folders(runs: Sequence[StoredRun], split: str, output: Path | None) -> list[Path]:
    """Return where the predictions of runs go: beside each run, or below `output`, of several a folder for each."""
    if output is None:
        return [run.files.predictions(split) for run in runs]
    if len(runs) == 1:
        return [output]
    below = [(run.config.scenario.name, run.config.algorithm.name, run.name) for run in runs]
    return [output.joinpath(*parts) for parts in below]


def _choose_device(asked: str, of_run: str, progress: Listener) -> torch.device:
    """Return the device to predict on: by default of the kind that the run's scores come from."""
    try:
        return pick_device(of_run if asked == "auto" else asked)
    except FmtlbenchError:
        if asked != "auto":
            raise
        progress.note(f"the run was made on {of_run}, which is not here: predicting on cpu, last digits may differ")
        return pick_device("cpu")
