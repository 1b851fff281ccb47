"""`fmtlbench runs prune`: keep less of the networks of finished runs. Imports torch only where weights are made."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .runs import add_action_on_folders

if TYPE_CHECKING:
    from ..runs.inventory import RunLine

EPILOG = """\
last: the last checkpoint, from which everything else can be made. exact: the scored networks. weights: the same in 8
bits. none: only the records. What is gone does not come back: exact weights cannot be made from 8 bits, nor checkpoints
from weights. Unfinished runs keep their checkpoints.

examples:
  fmtlbench runs prune --keep weights --dry-run
  fmtlbench runs prune runs/st_mt_1 --keep exact
"""


def add(actions) -> None:
    from ..config.request import KEEP

    meaning = "keep less of the networks of finished runs, to free disk space"
    parser = add_action_on_folders(actions, "prune", meaning, EPILOG)
    parser.add_argument("--keep", choices=KEEP, required=True, help="what stays of every finished run's networks")
    parser.add_argument("--dry-run", action="store_true", help="say what would be freed; touch nothing")
    parser.add_argument(
        "--data-root", type=Path, metavar="DIR", help="folder of the real datasets, where one is needed"
    )
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.errors import FmtlbenchError, one_line
    from ..base.words import say_bytes, say_count
    from ..runs.inventory import DAMAGED, UNFINISHED, list_runs
    from ..runs.kept import can_become, size_on_disk

    freed, changed = 0, 0
    failed: list[str] = []
    for run in list_runs(args.paths):
        if run.state in (UNFINISHED, DAMAGED):
            print(f"left alone: {run.name}: {run.state}" + (f": {run.problem}" if run.problem else ""))
        elif not can_become(run.kept, args.keep):
            print(f"left alone: {run.name}: keeps {run.kept}, from which {args.keep} cannot be made any more")
        elif args.dry_run:
            if saved := _estimate(run, args.keep):
                print(f"{run.name}: {run.kept} → {args.keep}, about {say_bytes(saved)}")
                freed, changed = freed + saved, changed + 1
        elif _has_surplus(run, args.keep):
            try:
                _change(run, args)
            except FmtlbenchError as error:
                failed.append(f"{run.name}: {one_line(error)}")
                print(f"failed: {failed[-1]}")
                continue
            saved = run.bytes - size_on_disk(run.folder)
            print(f"{run.name}: {run.kept} → {args.keep}, {say_bytes(saved)}")
            freed, changed = freed + saved, changed + 1
    words = "would free about" if args.dry_run else "freed"
    print(f"{words} {say_bytes(freed)} in {say_count(changed, 'run')}")
    if failed:
        raise FmtlbenchError(f"{say_count(len(failed), 'run')} could not be changed: {failed[0]}")
    return 0


def _has_surplus(run: RunLine, keep: str) -> bool:
    """Say whether a run has more than is to be kept."""
    from ..config.request import LAST
    from ..runs.folder import RunFolder
    from ..runs.kept import available, is_being_changed

    files = RunFolder(run.folder)
    older = keep == LAST and len(available(files.checkpoints)) > 1
    return run.kept != keep or older or is_being_changed(files)


def _change(run: RunLine, args: argparse.Namespace) -> None:
    from ..config.request import LAST, NONE
    from ..runs.kept import drop_networks

    if args.keep in (LAST, NONE):
        drop_networks(run.folder, args.keep)
        return
    import torch

    from ..engine.change_kept import change_kept
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines

    progress = Bars() if sys.stderr.isatty() else JsonLines()
    try:
        change_kept(run.folder, args.keep, args.data_root, torch.device("cpu"), progress)
    finally:
        progress.end()


def _estimate(run: RunLine, keep: str) -> int:
    """Return about how many bytes would be freed: what is there, less what the networks would take."""
    from ..config.request import EXACT, LAST, WEIGHTS
    from ..runs.folder import RunFolder, everybody
    from ..runs.kept import available, size_on_disk

    if not _has_surplus(run, keep):
        return 0
    files = RunFolder(run.folder)
    weights = files.weights.stat().st_size if files.weights.is_file() else 0
    now = size_on_disk(files.checkpoints) + weights
    if keep == LAST:
        return now - size_on_disk(files.checkpoints / f"round-{available(files.checkpoints)[-1]:05d}")
    summary = files.summary()
    clients = everybody(summary) if summary else []
    values = sum(sum(client.get("parameters", {}).values()) for client in clients)
    return max(0, now - {EXACT: 4, WEIGHTS: 1}.get(keep, 0) * values)
