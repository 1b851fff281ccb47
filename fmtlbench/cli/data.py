"""`fmtlbench data`: look at datasets."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(verbs) -> None:
    parser = verbs.add_parser("data", help="look at a dataset")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="a contact sheet: some images with all their labels")
    show.add_argument("dataset", help="a name of `fmtlbench list datasets`")
    show.add_argument("-o", "--output", required=True, metavar="FILE.png", help="the picture to write")
    show.add_argument("--split", default="train", choices=("train", "test"), help="default: train")
    show.add_argument("--count", type=int, default=6, help="number of images; default: 6")
    show.add_argument("--first", type=int, default=0, help="index of the first image; default: 0")
    show.add_argument("--size", type=int, nargs=2, default=(64, 64), metavar=("H", "W"), help="default: 64 64")
    show.set_defaults(func=main_show)


def main_show(args: argparse.Namespace) -> int:
    from ..data.catalog import DATASETS
    from ..errors import FmtlbenchError, UsageError, unknown

    if args.dataset not in DATASETS:
        raise unknown("dataset", args.dataset, DATASETS)
    info = DATASETS[args.dataset]
    if info.source != "synth":
        raise FmtlbenchError(f"dataset {info.name!r}: {info.description}")
    if args.count < 1 or args.first < 0:
        raise UsageError(f"--count {args.count} --first {args.first}: expected at least one image, from index 0 on")
    output = Path(args.output)
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UsageError(f"-o {output}: expected a name ending in .png, .pdf or .svg")

    from ..data.contact_sheet import contact_sheet
    from ..data.synth import DOMAINS, generate

    spec = DOMAINS[info.name]
    samples = [generate(info.name, args.split, args.first + i, tuple(args.size)) for i in range(args.count)]
    figure = contact_sheet(samples, spec.tasks, spec.classes, spec.class_names)
    try:
        figure.savefig(output)
    except OSError as error:
        raise FmtlbenchError(f"could not write {output}: {error.strerror or error}") from None
    print(output)
    return 0
