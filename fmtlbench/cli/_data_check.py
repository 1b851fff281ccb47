"""`fmtlbench data check`: files, sizes, values and classes of a dataset."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from ..base.words import say_count
from .data import add_dataset_arguments, dataset_info, show_progress

if TYPE_CHECKING:
    from ..data.check import LabelCount, SplitCheck
    from ..data.datasets import DatasetInfo

RENDERED = (32, 256)  # embedded images per split, without and with --deep


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
    from ..data.check import check_split, shared_ids

    info = dataset_info(args)
    splits = {split: _open(info, split, args) for split in ("train", "test")}
    checks = {}
    for split, dataset in splits.items():
        with show_progress(f"{info.name} {split}") as tell:
            checks[split] = check_split(dataset, info, split, args.deep, tell)
    twice = shared_ids(splits)
    fine = not twice and not any(check.bad or (check.is_incomplete and not args.subset) for check in checks.values())
    if args.json:
        print(json.dumps({**_record(info, splits, checks, twice), "deep": args.deep, "ok": fine}, indent=2))
    else:
        _print(info, splits, checks, twice, args.subset)
    return 0 if fine else 1


def _open(info: DatasetInfo, split: str, args: argparse.Namespace):
    if info.source == "synth":
        from ..data.check import Rendered

        return Rendered(info.name, split, RENDERED[args.deep], tuple(args.size or (64, 64)))
    from ..data.datasets import open_split

    return open_split(info, split, args.data_root, layout=args.layout, complete=False)


def _record(info: DatasetInfo, splits: dict, checks: dict[str, SplitCheck], twice: list[str]) -> dict:
    return {
        "dataset": info.name,
        "folder": str(getattr(splits["train"], "folder", "")) or None,
        "in_both_splits": twice,
        "splits": {split: _split_record(info, check) for split, check in checks.items()},
    }


def _split_record(info: DatasetInfo, check: SplitCheck) -> dict[str, Any]:
    return {
        "images": check.images,
        "official_images": check.official.images if check.official else None,
        "is_official_list": check.is_official,
        "decoded": check.decoded,
        "smallest": check.smallest,
        "largest": check.largest,
        "larger_than_preset": {name: list(size) for name, size in _find_small_presets(info, check).items()},
        "labels": {task: _label_record(info, task, count) for task, count in check.labels.items()},
        "bad": [{"file": file, "problem": problem} for file, problem in check.bad.items()],
    }


def _find_small_presets(info: DatasetInfo, check: SplitCheck) -> dict[str, tuple[int, int]]:
    """Return the presets whose image size is too small for some image that was read, with that size."""
    if info.source == "synth" or check.largest is None:
        return {}
    from ..config.presets import preset_files, read_preset

    data = {name: read_preset(name)["data"] for name in preset_files()}
    data = {name: d for name, d in data.items() if d["source"] == "real" and d.get("resize", "none") == "none"}
    sizes = {name: tuple(d["size"].get(info.domain, d["size"]["default"])) for name, d in data.items()}
    return {name: size for name, size in sizes.items() if any(a > b for a, b in zip(check.largest, size))}


def _label_record(info: DatasetInfo, task: str, count: LabelCount) -> dict[str, Any]:
    record = {
        "read": count.images,
        "bad": count.bad,
        "pixels": count.pixels,
        "labelled": count.labelled,
        "lowest": count.low,
        "highest": count.high,
    }
    if count.class_pixels is not None:
        record["classes"] = _class_rows(info, task, count)
    return record


def _class_rows(info: DatasetInfo, task: str, count: LabelCount) -> list[dict[str, Any]]:
    names = info.class_names.get(task)
    return [
        {"class": number, "name": names[number], "pixels": int(pixels), "images": int(images)}
        for number, (pixels, images) in enumerate(zip(count.class_pixels, count.class_images))
    ]


def _print(info: DatasetInfo, splits: dict, checks: dict[str, SplitCheck], twice: list[str], subset: bool) -> None:
    from ._tables import print_records

    if folder := getattr(splits["train"], "folder", None):
        print(f"{info.name}: {folder}")
    for split, check in checks.items():
        print_records([_row(task, count) for task, count in check.labels.items()], _title(info, check))
        for task, count in check.labels.items():
            if count.class_pixels is not None:
                total = max(1, int(count.class_pixels.sum()))
                rows = [
                    {**row, "pixels": f"{100 * row['pixels'] / total:.2f} %"} for row in _class_rows(info, task, count)
                ]
                print_records(rows, f"{info.name} {split}: classes of {task} in what was read")
        for name, size in _find_small_presets(info, check).items():
            print(
                f"{info.name} {split}: some images are larger than the {size[0]}×{size[1]} pixels of --preset {name}, "
                "whose runs are trained on crops and scored on the middle"
            )
    bad = [{"split": split, "file": f, "problem": p} for split, check in checks.items() for f, p in check.bad.items()]
    bad += [{"split": "both", "file": image, "problem": "listed in train and in test"} for image in twice]
    if bad:
        print_records(bad, "bad files")
    for split, check in checks.items():
        if check.is_incomplete:
            meant = "as --subset says" if subset else "the archive is incomplete; --subset if that is meant"
            print(f"fmtlbench: {split}: {check.images} of {check.expected} images, {meant}", file=sys.stderr)
    print(f"fmtlbench: {_verdict(checks, len(bad))}", file=sys.stderr)


def _verdict(checks: dict[str, SplitCheck], bad: int) -> str:
    decoded, images = (sum(getattr(check, name) for check in checks.values()) for name in ("decoded", "images"))
    looked = f"{decoded} of {images} images decoded" + ("" if decoded == images else " (--deep decodes all)")
    if bad:
        return f"{looked}, {say_count(bad, 'bad file')}"
    if any(check.is_incomplete for check in checks.values()):
        expected = sum(check.expected for check in checks.values())
        return f"{looked}, nothing wrong in them, {expected - images} of {expected} images are not there"
    return f"{looked}, nothing wrong"


def _title(info: DatasetInfo, check: SplitCheck) -> str:
    title = f"{info.name} {check.split}: {check.images} images"
    if check.official:
        title += f" (official list: {'the same' if check.is_official else f'another, of {check.official.images}'})"
    if check.smallest:
        smallest, largest = ("×".join(map(str, side)) for side in (check.smallest, check.largest))
        title += f", {smallest} to {largest} pixels" if smallest != largest else f", {smallest} pixels"
    return title


def _row(task: str, count: LabelCount) -> dict[str, Any]:
    values = "–" if count.low is None else f"{count.low:.4g} to {count.high:.4g}"
    share = 100 * count.labelled / count.pixels if count.pixels else 0.0
    from ..tasks import TASKS

    what = TASKS[task].kind.quantity
    return {
        "task": task,
        "read": count.images,
        "bad": count.bad,
        "values": f"{what} {values}",
        "labelled": f"{share:.1f} %",
    }
