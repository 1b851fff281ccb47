"""`fmtlbench export-weights`: the networks of a stored run for other programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .runs import add_run

EPILOG = """\
DIR gets README.md (a model card: data, tasks, scores, how to load), config.json, and for every client a folder with
model.safetensors (the whole network, plain names) and encoder.safetensors (timm's own names: loads strictly into the
timm model that the card names). All numbers in full precision.

examples:
  fmtlbench export-weights runs/st_mt_1/fedhca2/nano-synth-s0-1a2b3c4d -o card
  fmtlbench export-weights 1a2b3c4d -o card --client nyud-multi
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "export-weights",
        help="the networks of a stored run as safetensors, with a model card",
        description="Write the networks of a stored run for other programs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser, "run")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="a new folder, or an export's")
    parser.add_argument("--client", action="append", metavar="ID", help="only this client; repeatable; default: all")
    parser.add_argument(
        "--data-root", type=Path, metavar="DIR", help="folder of the real datasets, where one is needed"
    )
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder
    from ..runs.find import find_run

    folder = find_run(args.run)
    check_folder(args.output)

    import torch

    from ..inference.export_weights import check_export_folder, export_weights
    from ..inference.stored_run import StoredRun
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines

    check_export_folder(args.output)
    progress = Bars() if sys.stderr.isatty() else JsonLines()
    try:
        run = StoredRun(folder)
        run.open_networks(args.data_root, torch.device("cpu"), progress)
        written = export_weights(run, args.output, args.client)
    finally:
        progress.end()
    for path in written:
        print(path)
    return 0
