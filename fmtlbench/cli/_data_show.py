"""`fmtlbench data show`: a contact sheet of a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path

from .data import add_dataset_arguments, dataset_info

MOST_IMAGES = 500


def add(actions) -> None:
    parser = actions.add_parser("show", help="a contact sheet: some images with all their labels")
    add_dataset_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png", help="the picture to write")
    parser.add_argument("--split", default="train", choices=("train", "test", "pretrain"), help="default: train")
    parser.add_argument("--count", type=int, default=6, help="number of images; default: 6")
    parser.add_argument("--first", type=int, default=0, help="index of the first image; default: 0")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.errors import UsageError
    from ..base.files import check_output, write_output
    from ..data.machine_limits import check_image_memory

    info = dataset_info(args)
    if args.count < 1 or args.first < 0:
        raise UsageError(f"--count {args.count} --first {args.first}: expected at least one image, from index 0 on")
    if args.count > MOST_IMAGES:
        raise UsageError(f"--count {args.count}: expected at most {MOST_IMAGES}, a sheet of more cannot be looked at")
    if info.source == "synth":
        check_image_memory(args.count, tuple(args.size or (64, 64)), "--count and --size")
    if args.split == "pretrain" and info.source == "real":
        raise UsageError(f"--split pretrain: for embedded data only; {info.name} has train and test")
    output = Path(args.output)
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UsageError(f"-o {output}: expected a name ending in .png, .pdf or .svg")
    check_output(output)

    from ..data.contact_sheet import contact_sheet

    samples = (_render if info.source == "synth" else _read)(info, args)
    figure = contact_sheet(samples, info.tasks, info.class_names)
    write_output(output, lambda new: figure.savefig(new, format=output.suffix[1:].lower()))
    print(output)
    return 0


def _render(info, args: argparse.Namespace) -> list[dict]:
    from ..data.datasets.synth import generate

    size = tuple(args.size or (64, 64))
    return [generate(info.name, args.split, args.first + i, size) for i in range(args.count)]


def _read(info, args: argparse.Namespace) -> list[dict]:
    from ..base.errors import UsageError
    from ..data.datasets import open_split

    dataset = open_split(info, args.split, args.data_root, layout=args.layout)
    if args.first >= len(dataset):
        raise UsageError(f"--first {args.first}: {info.name} {args.split} has {len(dataset)} images")
    return [dataset.sample(i) for i in range(args.first, min(args.first + args.count, len(dataset)))]
