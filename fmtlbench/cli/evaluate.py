"""`fmtlbench evaluate`: score a folder of predictions against labels."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import FmtlbenchError, UsageError, one_line, shorten
from ..base.words import say_count

if TYPE_CHECKING:
    from ..data.datasets import ArchiveDataset, DatasetInfo
    from ..inference.scoring import Findings, Pairs
    from ..metrics import Metric, MetricResult
    from ..tasks import TaskSpec

SHOWN = 12  # files that are named when many are wrong
MOST_CLASSES = 255
PLAIN = "plain"  # labels as files of the task's kind
LAYOUTS = "layout of the labels: a dataset with files (fmtlbench list datasets), its .py or .yml file, or plain"

EPILOG = """\
Files are paired by image id: semseg and human_parts as PNG of class ids, normals as PNG of (n+1)*127.5, sal and edge as
PNG of 0..255, depth as NPY in metres; NPY is taken for all. --gt is the root of the archive (NYUDv2/, PASCALContext/),
whose val list says which images count, or a folder of labels, all of which count. Pascal-Part files (human_parts/*.mat)
are read as they are; as in training, an image without annotated parts of people does not count. The layout "plain"
expects a folder of labels with class ids (255: ignore), normals, depth as above, and 0/255 PNG or 0/1/255 NPY for sal
and edge.
Predictions that cannot be right are refused, unless --trust says that they are: depth in millimetres, values below 0,
normals that are codes of 8 bits or of no length, labels of which no pixel is known.
Nothing is skipped: missing, extra, unreadable or wrongly sized files are listed, and there is no score (exit code 1).

examples:
  fmtlbench evaluate --task edge --dataset nyud --pred out/edge --gt NYUDv2 --jobs 2
  fmtlbench evaluate --task semseg --dataset pascal --pred out --gt PASCALContext --json
  fmtlbench evaluate --task edge --dataset nyud --pred out --gt NYUDv2/edge --no-nms -o scores/
  fmtlbench evaluate --task sal --dataset pascal --pred out --gt PASCALContext --option lowest=0.2 --option highest=0.9
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "evaluate",
        help="score a folder of predictions against labels",
        description="Score a folder of predictions against labels.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--task", required=True, metavar="NAME", help="one of `fmtlbench list tasks`")
    parser.add_argument("--pred", required=True, type=Path, metavar="DIR", help="predictions (or DIR/TASK)")
    parser.add_argument("--gt", required=True, type=Path, metavar="DIR", help="archive root, or folder of labels")
    parser.add_argument(
        "--dataset",
        required=True,
        metavar="NAME",
        help="layout of the labels: a dataset with files (fmtlbench list datasets), its .py or .yml file, or plain",
    )
    parser.add_argument("--split", default="val", metavar="NAME", help="id list of the archive (default: val)")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="file of image ids to score instead")
    parser.add_argument("--classes", type=int, metavar="N", help="number of classes, where the dataset does not say")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        dest="options",
        metavar="NAME=VALUE",
        help="an option of the metric, as evaluation.metric_options has it in a run (repeatable)",
    )
    parser.add_argument("--absent", choices=("skip", "zero"), help="mIoU: classes that never occur (default: skip)")
    parser.add_argument("--no-nms", action="store_true", help="edge: predictions are suppressed already")
    parser.add_argument("--max-dist", type=float, metavar="X", help="edge: tolerance as a fraction of the diagonal")
    parser.add_argument("--edge-gt", choices=("seism", "plain"), help="edge: how boundary maps become label edges")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="edge: worker processes (default: 1)")
    parser.add_argument(
        "--trust", action="store_true", help="score predictions that look wrong, such as in another unit"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="also write the score, and for edge the curve")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder
    from ..inference.scoring import pair_files
    from ..tasks import TASKS

    if args.output:
        check_folder(args.output)
    if args.classes is not None and not 2 <= args.classes <= MOST_CLASSES:
        raise UsageError(f"--classes {args.classes}: expected 2 to {MOST_CLASSES}; 255 is the label to ignore")
    info = _find_dataset(args)  # its file may bring the task
    task = TASKS.resolve(args.task, "--task")
    args.task = task.name
    classes = args.classes or (info.classes.get(args.task) if info else None)
    pairs = pair_files(args.pred, args.gt, task, info, classes, args.split, args.ids)
    refuse_files(pairs.problems())
    meter = _make_meter(args, task, info, classes)
    try:
        found = _score(meter, pairs, args)
        result = meter.compute()
    finally:
        if hasattr(meter, "close"):
            meter.close()
    record = _make_record(args, result, meter, len(pairs.ids), found)
    if args.output:
        _write(args.output, record, meter)
    if args.json:
        print(json.dumps(record, indent=2))
    else:
        _print(record)
    return 0


def _find_dataset(args: argparse.Namespace) -> DatasetInfo | None:
    """Return the dataset in whose form the labels are; None for plain files."""
    from ..base.errors import unknown
    from ..data.datasets import DATASETS, dataset_of_file

    if args.dataset == PLAIN:
        return None
    if args.dataset.endswith((".py", ".yml", ".yaml")):
        return dataset_of_file(args.dataset)
    there = {name: info for name, info in DATASETS.items() if info.source != "synth"}
    if args.dataset not in there:
        raise unknown("dataset layout", args.dataset, [*there, PLAIN], "--dataset")
    return there[args.dataset]


def refuse_files(problems: list[str]) -> None:
    """Print what is wrong with files, the first of them, and refuse to score."""
    if problems:
        for line in problems[:SHOWN]:
            print(shorten(one_line(line), longest=300), file=sys.stderr)
        more = f" (the first {SHOWN})" if len(problems) > SHOWN else ""
        raise FmtlbenchError(f"not scored: {say_count(len(problems), 'file')} to put right, listed above{more}")


def _make_meter(args: argparse.Namespace, task: TaskSpec, info: DatasetInfo | None, classes: int | None) -> Metric:
    from ..data.datasets import DatasetInfo
    from ..metrics import METRICS, MetricError

    metric, given = METRICS[task.metric], _read_options(args, task.metric)
    if task.kind.outputs is None and not classes:
        raise UsageError(f"--classes: needed, since the layout {args.dataset!r} does not fix it for {args.task}")
    drawn = info is not None and any(reader.needs.get(args.task) for reader in _archive_readers(info))
    if "gt" in given and drawn:
        raise UsageError(f"--option gt={given['gt']}: is for boundary maps, and {args.dataset} draws its own labels")
    accepted = _option_names(metric)
    meant = info.metric_options.get(task.metric, {}) if info else {"gt": "plain"} if "gt" in accepted else {}
    options = {**meant, **({"jobs": args.jobs} if "jobs" in accepted else {}), **given}
    names = {args.task: tuple(map(str, range(classes)))} if classes else {}
    known = DatasetInfo(args.dataset, args.dataset, "real", args.dataset, (args.task,), names, "", ())
    try:
        return metric.set_up(task, known, (1, 1), options)
    except MetricError as error:
        raise UsageError(str(error)) from None
    except Exception as error:
        raise UsageError(f"{task.metric} cannot be set up for {task.name}: {type(error).__name__}: {error}") from error


def _archive_readers(info: DatasetInfo) -> list[type[ArchiveDataset]]:
    from ..data.datasets import ArchiveDataset

    return [reader for reader in info.readers if issubclass(reader, ArchiveDataset)]


def _option_names(metric: type[Metric]) -> set[str]:
    return set(inspect.signature(metric).parameters)


def _read_options(args: argparse.Namespace, name: str) -> dict:
    """Return the options that the flags give the metric, with their types; refuse an option given by two flags."""
    from ..config.resolve import parse_overrides
    from ..data.meters import typed_options
    from ..metrics import METRICS

    values = parse_overrides(args.options, "--option", "absent=zero")
    short = {
        "absent": ("--absent", args.absent),
        "nms": ("--no-nms", False if args.no_nms else None),
        "max_dist": ("--max-dist", args.max_dist),
        "gt": ("--edge-gt", args.edge_gt),
    }
    for option, (flag, value) in short.items():
        if value is None:
            continue
        if option in values:
            raise UsageError(f"--option {option}: {flag} is given too; give one of them")
        if option not in _option_names(METRICS[name]):
            raise UsageError(f"{flag}: {name}, which scores {args.task}, has no option {option}")
        values[option] = value
    from ..base.located import Tree

    flags = {option: f"--option {option}={value}" for option, value in values.items()}
    return typed_options(name, Tree(values, places=flags))


def _score(meter: Metric, pairs: Pairs, args: argparse.Namespace) -> Findings:
    """Give every pair to the meter, with a progress bar on a terminal; refuse what cannot be scored."""
    from rich.console import Console
    from rich.progress import track

    from ..inference.scoring import score_pairs

    console = Console(stderr=True)
    ids = track(pairs.ids, f"{args.task} {args.dataset}", console=console, disable=not console.is_terminal)
    found = score_pairs(meter, pairs, ids)
    refuse_files(found.problems)
    tell_findings(found, args.trust)
    return found


def tell_findings(found: Findings, trust: bool) -> None:
    """Print what is odd about predictions; refuse them if they cannot be right and nobody vouches for them."""
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    if found.doubts and not trust:
        raise FmtlbenchError(f"not scored: {'; '.join(found.doubts)}. Is it meant? --trust scores them all the same")
    for doubt in found.doubts:
        print(f"scored all the same (--trust): {doubt}", file=sys.stderr)


def _make_record(args: argparse.Namespace, result: MetricResult, meter: Metric, images: int, found: Findings) -> dict:
    def number(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "task": args.task,
        "dataset": args.dataset,
        "images": images,
        "metric": result.label,
        "value": number(result.value),
        "unit": result.unit,
        "higher_is_better": result.higher_is_better,
        "extras": {key: number(value) for key, value in result.extras.items()},
        "options": meter.options,
        **({"doubts": found.doubts} if found.doubts else {}),
        **({"notes": found.notes} if found.notes else {}),
    }


def _print(record: dict) -> None:
    from ._tables import print_records

    def text(value: float | None) -> str:
        return "none" if value is None else f"{value:.4f}"

    title = f"{record['task']} on {record['dataset']}, {record['images']} images"
    better = "up" if record["higher_is_better"] else "down"
    rows = [{"metric": record["metric"], "value": text(record["value"]), "unit": record["unit"], "better": better}]
    rows += [{"metric": key, "value": text(value), "unit": "", "better": ""} for key, value in record["extras"].items()]
    print_records(rows, title)


def _write(folder: Path, record: dict, meter: Metric) -> None:
    from ..base.files import write_output, write_output_text

    start = str(folder / record["task"])
    write_output_text(f"{start}.json", json.dumps(record, indent=2, allow_nan=False) + "\n", make_folder=True)
    if hasattr(meter, "curve"):
        curve = meter.curve()
        lines = [",".join(curve)] + [",".join(f"{x:.6f}" for x in row) for row in zip(*curve.values())]
        write_output_text(f"{start}_pr.csv", "\n".join(lines) + "\n")
        write_output(f"{start}_pr.png", lambda path: _draw_curve(path, curve, record))


def _draw_curve(path: Path, curve: dict, record: dict) -> None:
    """Draw precision over recall, with lines of equal F in the background."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    x = np.linspace(0.01, 1, 200)
    for f in np.arange(0.1, 1, 0.1):
        inside = 2 * x > f
        axes.plot(x[inside], f * x[inside] / (2 * x[inside] - f), color="0.85", linewidth=0.8, zorder=1)
    axes.plot(curve["recall"], curve["precision"], zorder=2)
    best = curve["F"].argmax()
    score = "none" if record["value"] is None else f"{record['value']:.2f}"
    axes.plot(curve["recall"][best], curve["precision"][best], "o", label=f"odsF {score}", zorder=3)
    axes.legend(loc="lower left")
    figure.savefig(path, format="png", dpi=150)
