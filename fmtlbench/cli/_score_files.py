"""`fmtlbench score` against labels in files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from ..base.errors import UsageError

LAYOUTS = "layout of the labels: a dataset with files (fmtlbench list datasets), its .py or .yml file, or plain"
EPILOG = """\
Against labels: --gt is the root of the archive (NYUDv2/, PASCALContext/), whose val list says which images count, or a
folder of labels, all of which count. Pascal-Part files (human_parts/*.mat) are read as they are; as in training, an
image without annotated parts of people does not count. The layout "plain" expects a folder of labels with class ids
(255: ignore), normals, depth as above, and 0/255 PNG or 0/1/255 NPY for sal and edge.

examples:
  fmtlbench score out/edge --task edge --dataset nyud --gt NYUDv2 --jobs 2
  fmtlbench score --pred out --task semseg --dataset pascal --gt PASCALContext --json
  fmtlbench score out --task edge --dataset nyud --gt NYUDv2/edge --no-nms -o scores/
  fmtlbench score out --task sal --dataset pascal --gt PASCALContext --option lowest=0.2 --option highest=0.9
"""


def add_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--task", metavar="NAME", help="one of `fmtlbench list tasks`")
    group.add_argument("--gt", type=Path, metavar="DIR", help="archive root, or folder of labels")
    group.add_argument("--ids", type=Path, metavar="FILE", help="file of image ids to score, not the archive's list")
    group.add_argument("--classes", type=int, metavar="N", help="number of classes, where the dataset does not say")
    group.add_argument(
        "--option",
        action="append",
        default=[],
        dest="options",
        metavar="NAME=VALUE",
        help="an option of the metric, as evaluation.metric_options has it in a run (repeatable)",
    )
    group.add_argument("--absent", choices=("skip", "zero"), help="mIoU: classes that never occur (default: skip)")
    group.add_argument("--no-nms", action="store_true", help="edge: predictions are suppressed already")
    group.add_argument("--max-dist", type=float, metavar="X", help="edge: tolerance as a fraction of the diagonal")
    group.add_argument("--edge-gt", choices=("seism", "plain"), help="edge: how boundary maps become label edges")
    group.add_argument("--jobs", type=int, default=1, metavar="N", help="edge: worker processes (default: 1)")
    group.add_argument("--json", action="store_true", help="machine-readable")


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder

    needed = {"PREDICTIONS": args.folder, "--task": args.task, "--gt": args.gt, "--dataset": args.dataset}
    missing = [name for name, given in needed.items() if given is None]
    if missing:
        raise UsageError(f"score: {', '.join(missing)}: needed against labels; --name makes a row of leaderboards")
    if args.output:
        check_folder(args.output)

    from rich.console import Console
    from rich.progress import track

    from ..inference.file_scores import FileRequest, Judge

    short = {
        "absent": ("--absent", args.absent),
        "nms": ("--no-nms", False if args.no_nms else None),
        "max_dist": ("--max-dist", args.max_dist),
        "gt": ("--edge-gt", args.edge_gt),
    }
    request = FileRequest(
        args.task, args.folder, args.gt, args.dataset, args.split or "val", args.ids, args.classes,
        args.options, short, args.jobs,
    )  # fmt: skip
    console = Console(stderr=True)

    def watch(ids: list[str]) -> Iterable[str]:
        return track(ids, f"{args.task} {args.dataset}", console=console, disable=not console.is_terminal)

    score = request.score(Judge(lambda line: print(line, file=sys.stderr), args.trust), watch)
    if args.output:
        score.write(args.output)
    if args.json:
        print(json.dumps(score.record, indent=2))
    else:
        _print(score.record)
    return 0


def _print(record: dict) -> None:
    from ._tables import print_records

    def text(value: float | None) -> str:
        return "none" if value is None else f"{value:.4f}"

    title = f"{record['task']} on {record['dataset']}, {record['images']} images"
    better = "up" if record["higher_is_better"] else "down"
    rows = [{"metric": record["metric"], "value": text(record["value"]), "unit": record["unit"], "better": better}]
    rows += [{"metric": key, "value": text(value), "unit": "", "better": ""} for key, value in record["extras"].items()]
    print_records(rows, title)
