"""Change what a finished run keeps of its networks: never to more than it has. A kill at any moment loses nothing."""

from __future__ import annotations

from pathlib import Path

import torch

from ..config.request import EXACT, LAST, NONE
from ..inference.stored_run import StoredRun
from ..listeners import Listener
from ..runs.folder import RunFolder
from ..runs.kept import check_change, remove_surplus
from ..runs.lock import locked
from ..runs.weights_file import WeightsFile
from .kept_networks import KeptNetworks, keeping_networks


def change_kept(folder: Path, keep: str, data_root: Path | None, device: torch.device, progress: Listener) -> None:
    """Make a finished run keep its networks in another way, and remove what goes beyond it.

    Raises:
        UsageError: It is not finished, or keeps less already.
        StoreError: Another process is working on it.
    """
    run = RunFolder(folder)
    with locked(folder):
        check_change(run, keep)
        if keep not in (LAST, NONE) and not _has(run, keep):
            _write_weights(run, keep, data_root, device, progress)
        remove_surplus(run, keep)


def _has(run: RunFolder, precision: str) -> bool:
    """Say whether a run's weights file is there, with this precision."""
    return run.weights.is_file() and WeightsFile(run.weights).precision == precision


def _write_weights(
    run: RunFolder, precision: str, data_root: Path | None, device: torch.device, progress: Listener
) -> None:
    """Write the weights file anew: from an exact one, or else from the last checkpoint."""
    if _has(run, EXACT):
        exact = KeptNetworks(run.weights)
        with keeping_networks(run.weights, precision, exact.round) as keep:
            for client in exact.clients:
                keep(client, exact.state(client))
        return
    stored = StoredRun(run.path)
    stored.open_networks(data_root, device, progress)
    with keeping_networks(run.weights, precision, stored.done) as keep:
        for party in stored.members:
            with stored.network(party) as model:
                keep(party.id, model.state_dict())
