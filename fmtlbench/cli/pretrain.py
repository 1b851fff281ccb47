"""`fmtlbench pretrain`: make weights for a nano encoder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EPILOG = """\
The encoder learns which classes an image shows, on embedded scenes of a split of their own. Interrupted, the same
command goes on from its last checkpoint in DIR and ends with the same bytes. The package carries the weights that the
defaults give (model.pretrained=true, as in the preset nano); others are used with --set model.weights=FILE.

examples:
  fmtlbench pretrain --backbone swin_nano
  fmtlbench pretrain --backbone resnet_nano --steps 1000 --seed 1 -o my_weights
  fmtlbench run --algo local --scenario st_mt_1 --set model.weights=my_weights/resnet_nano.safetensors \\
      --set model.backbone=resnet_nano
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "pretrain",
        help="make encoder weights for a nano backbone; minutes",
        description="Train a nano encoder on image-level labels of embedded scenes that no run uses.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--backbone", required=True, help="swin_nano or resnet_nano")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("weights"),
        metavar="DIR",
        help="where <backbone>.safetensors and manifest.json go; default: weights",
    )
    parser.add_argument("--steps", type=int, default=3000, help="optimiser steps; default: 3000")
    parser.add_argument("--scenes", type=int, default=9000, help="of both domains, a tenth held out; default: 9000")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines
    from ..pretrain import Plan, pretrain
    from ._tables import print_records

    progress = Bars() if sys.stdout.isatty() else JsonLines()
    try:
        entry = pretrain(Plan(args.backbone, args.steps, args.scenes, args.seed), args.output, progress)
    finally:
        progress.end()
    score = entry["score"]
    print_records(
        [
            {
                "file": args.output / entry["file"],
                "sha256": entry["sha256"],
                "bytes": entry["bytes"],
                "held-out AUC": score["value"],
                "chance": score["chance"],
            }
        ]
    )
    return 0
