"""`fmtlbench data cache`: decode a real dataset once, so that runs need not do it in every epoch."""

from __future__ import annotations

import argparse
import sys

from .data import add_dataset_arguments, dataset_info, show_progress


def add(actions) -> None:
    parser = actions.add_parser(
        "cache",
        help="decode a real dataset once, for faster runs",
        description="Decode a real dataset into $FMTLBENCH_CACHE or the user's cache folder. Runs then read there, "
        "with the same numbers. Interrupted, the same command goes on; finished, it checks what is there.",
    )
    add_dataset_arguments(parser)
    parser.add_argument("--split", choices=("train", "test"), help="only this one; default: both")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.errors import UsageError

    info = dataset_info(args)
    if info.source == "synth":
        raise UsageError(f"{info.name}: embedded data are cached when first used; `data cache` is for real data")

    import warnings

    from ..data.cache import build_cache
    from ..data.datasets import open_split

    datasets = [
        open_split(info, split, args.data_root, layout=args.layout)
        for split in ([args.split] if args.split else ("train", "test"))
    ]
    for dataset in datasets:
        with warnings.catch_warnings(record=True) as caught, show_progress(f"{info.name} {dataset.split}") as tell:
            warnings.simplefilter("always")
            folder = build_cache(dataset, progress=tell)
        for warning in caught:
            print(f"fmtlbench: {warning.message}", file=sys.stderr)
        print(folder)
    return 0
