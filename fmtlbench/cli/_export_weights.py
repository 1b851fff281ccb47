"""`fmtlbench export --weights`: the networks of a stored run for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base.errors import UsageError
from ._progress import show_progress

EPILOG = """\
Weights: DIR gets README.md (a model card: data, tasks, scores, how to load), config.json, and for every client a folder
with model.safetensors (the whole network, plain names) and encoder.safetensors (timm's own names: loads strictly into
the timm model that the card names). All numbers in full precision.
"""


def add_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--client", action="append", metavar="ID", help="only this client; repeatable; default: all")
    group.add_argument("--data-root", type=Path, metavar="DIR", help="folder of the real datasets, where one is needed")


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder
    from ..runs.find import find_run

    if len(args.runs) != 1 or args.output is None:
        raise UsageError("export --weights: needed: one RUN, and -o DIR")
    folder = find_run(str(args.runs[0]))
    check_folder(args.output)

    import torch

    from ..inference.export_weights import check_export_folder, export_weights
    from ..inference.stored_run import StoredRun

    check_export_folder(args.output)
    with show_progress() as progress:
        run = StoredRun(folder)
        run.open_networks(args.data_root, torch.device("cpu"), progress)
        written = export_weights(run, args.output, args.client)
    for path in written:
        print(path)
    return 0
