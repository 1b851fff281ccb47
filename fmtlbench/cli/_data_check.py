"""`fmtlbench data check`: files, sizes, values and classes of a dataset."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from .data import add_dataset_arguments, dataset_info, show_progress

if TYPE_CHECKING:
    from ..data.check import SplitCheck
    from ..data.check_dataset import DatasetCheck


def add(actions) -> None:
    parser = actions.add_parser(
        "check",
        help="every file present, sizes, value ranges, classes",
        description="Check a dataset: counts against the official ones, every file present, and the contents of some "
        "images (--deep: of all). Exit code 1 if anything is bad, or if there are fewer images than the official list "
        "has (--subset: that is meant).",
    )
    add_dataset_arguments(parser)
    parser.add_argument("--deep", action="store_true", help="decode every image and label; takes minutes")
    parser.add_argument("--subset", action="store_true", help="fewer images than the official list are meant")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..config.presets import presets_below
    from ..data.check_dataset import check_dataset

    info = dataset_info(args)
    found = check_dataset(
        info,
        lambda split: show_progress(f"{info.name} {split}"),
        data_root=args.data_root,
        layout=args.layout,
        size=tuple(args.size or (64, 64)),
        deep=args.deep,
        subset=args.subset,
    )

    def small_presets(check: SplitCheck) -> dict[str, tuple[int, int]]:
        rendered = info.source == "synth" or check.largest is None
        return {} if rendered else presets_below(info.domain, check.largest)

    if args.json:
        print(json.dumps(found.record(small_presets), indent=2))
        return 0 if found.is_fine else 1
    if found.folder:
        print(f"{info.name}: {found.folder}")
    for check in found.splits.values():
        _print_split(found, check)
        for name, size in small_presets(check).items():
            print(
                f"{info.name} {check.split}: some images are larger than the {size[0]}×{size[1]} pixels of --preset "
                f"{name}, whose runs are trained on crops and scored on the middle"
            )
    _print_verdict(found)
    return 0 if found.is_fine else 1


def _print_split(found: DatasetCheck, check: SplitCheck) -> None:
    from ..data.check_dataset import describe_labels
    from ._tables import print_records

    title = f"{found.info.name} {check.split}: {check.images} images"
    if check.official:
        title += f" (official list: {'the same' if check.is_official else f'another, of {check.official.images}'})"
    if check.smallest:
        smallest, largest = ("×".join(map(str, side)) for side in (check.smallest, check.largest))
        title += f", {smallest} to {largest} pixels" if smallest != largest else f", {smallest} pixels"
    print_records([describe_labels(task, count) for task, count in check.labels.items()], title)
    for task, count in check.labels.items():
        if count.class_pixels is not None:
            total = max(1, int(count.class_pixels.sum()))
            rows = found.class_rows(task, count)
            rows = [{**row, "pixels": f"{100 * row['pixels'] / total:.2f} %"} for row in rows]
            print_records(rows, f"{found.info.name} {check.split}: classes of {task} in what was read")


def _print_verdict(found: DatasetCheck) -> None:
    from ._tables import print_records

    if bad := found.bad():
        print_records(bad, "bad files")
    for split, check in found.splits.items():
        if check.is_incomplete:
            meant = "as --subset says" if found.subset else "the archive is incomplete; --subset if that is meant"
            print(f"fmtlbench: {split}: {check.images} of {check.expected} images, {meant}", file=sys.stderr)
    print(f"fmtlbench: {found.verdict()}", file=sys.stderr)
