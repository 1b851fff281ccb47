"""`fmtlbench evaluate`: score a folder of predictions against labels."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FmtlbenchError, UsageError
from ..tasks import TASKS
from ..words import say_count

if TYPE_CHECKING:
    import numpy as np

    from ..metrics import Metric, MetricResult
    from ..metrics._folders import Files


EPILOG = """\
Files are paired by image id: semseg and human_parts as PNG of class ids, normals as PNG of (n+1)*127.5, sal and edge as
PNG of 0..255, depth as NPY in metres; NPY is taken for all. --gt is the root of the archive (NYUDv2/, PASCALContext/),
whose val list says which images count, or a folder of labels, all of which count. Pascal-Part files (human_parts/*.mat)
are read as they are; as in training, an image without annotated parts of people does not count. The layout "plain"
expects a folder of labels with class ids (255: ignore), normals, depth as above, and 0/255 PNG or 0/1/255 NPY for sal
and edge.
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
    parser.add_argument("--task", required=True, choices=sorted(TASKS))
    parser.add_argument("--pred", required=True, type=Path, metavar="DIR", help="predictions (or DIR/TASK)")
    parser.add_argument("--gt", required=True, type=Path, metavar="DIR", help="archive root, or folder of labels")
    parser.add_argument("--dataset", required=True, metavar="NAME", help="layout of the labels: nyud, pascal or plain")
    parser.add_argument("--split", default="val", metavar="NAME", help="id list of the archive (default: val)")
    parser.add_argument("--ids", type=Path, metavar="FILE", help="file of image ids to score instead")
    parser.add_argument("--classes", type=int, metavar="N", help="number of classes, where the dataset does not say")
    parser.add_argument(
        "--option", action="append", default=[], dest="options", metavar="NAME=VALUE",
        help="an option of the metric, as evaluation.metric_options has it in a run (repeatable)",
    )  # fmt: skip
    parser.add_argument("--absent", choices=("skip", "zero"), help="mIoU: classes that never occur (default: skip)")
    parser.add_argument("--no-nms", action="store_true", help="edge: predictions are suppressed already")
    parser.add_argument("--max-dist", type=float, metavar="X", help="edge: tolerance as a fraction of the diagonal")
    parser.add_argument("--edge-gt", choices=("seism", "plain"), help="edge: how boundary maps become label edges")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="edge: worker processes (default: 1)")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="also write the score, and for edge the curve")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..files import check_folder
    from ..metrics._folders import collect

    if args.output:
        check_folder(args.output)
    files = collect(args.pred, args.gt, args.dataset, args.task, args.split, args.ids)
    _refuse(files.problems())
    meter = _meter(args, files)
    try:
        _refuse(_score(meter, files, args))
        result = meter.compute()
    finally:
        if hasattr(meter, "close"):
            meter.close()
    record = _record(args, result, meter, len(files.ids))
    if args.output:
        _write(args.output, record, meter)
    if args.json:
        print(json.dumps(record, indent=2))
    else:
        _print(record)
    return 0


def _refuse(problems: list[str]) -> None:
    if problems:
        for line in problems:
            print(line, file=sys.stderr)
        raise FmtlbenchError(f"not scored: {say_count(len(problems), 'file')} to put right, listed above")


def _meter(args: argparse.Namespace, files: Files) -> Metric:
    from ..metrics import METRICS, MetricError
    from ..metrics._folders import layout

    known, name = layout(args.dataset), TASKS[args.task].metric
    given = _given(args, name)
    options: dict = {}
    if name == "miou":
        classes = args.classes or known.classes.get(args.task)
        if not classes:
            raise UsageError(f"--classes: needed, since the layout {args.dataset!r} does not fix it for {args.task}")
        options = {"num_classes": classes, "absent": args.absent or "skip"}
    elif name == "odsf":
        maps = {path.suffix.lower() for i, path in files.labels.items() if i in set(files.ids)}
        if ".mat" in maps and len(maps) > 1:
            raise UsageError(f"--gt: a mixture of label maps (.mat) and boundary maps in {args.gt}")
        if ".mat" in maps and "gt" in given:
            raise UsageError(f"--option gt={given['gt']}: is for boundary maps, and the labels are label maps (.mat)")
        # boundary maps of pascal are drawn already; those of nyud go the way the published scores went
        edges = args.edge_gt or ("seism" if args.dataset == "nyud" else "plain")
        options = {
            "max_dist": known.max_dist if args.max_dist is None else args.max_dist,
            "nms": not args.no_nms,
            "gt": "labelmap" if ".mat" in maps else edges,
            "jobs": args.jobs,
        }
    try:
        return METRICS[name](**{**options, **given})
    except MetricError as error:
        raise UsageError(str(error)) from None


def _given(args: argparse.Namespace, metric: str) -> dict:
    """The --option flags, typed; what another flag says too is refused."""
    from ..meters import typed_options
    from ..resolving import parse_overrides

    values = parse_overrides(args.options, "--option", "absent=zero")
    said = {"absent": args.absent, "nms": args.no_nms or None, "max_dist": args.max_dist, "gt": args.edge_gt}
    for name in values:
        if said.get(name) is not None:
            flag = {"nms": "--no-nms", "max_dist": "--max-dist", "gt": "--edge-gt"}.get(name, f"--{name}")
            raise UsageError(f"--option {name}: {flag} is given too; give one of them")
    return typed_options(metric, values, {name: f"--option {name}={value}" for name, value in values.items()})


def _score(meter: Metric, files: Files, args: argparse.Namespace) -> list[str]:
    """Feed every pair to the meter; returns what is wrong, one line per file."""
    from rich.console import Console
    from rich.progress import track

    from ..metrics import MetricError
    from ..metrics._folders import FileError, read_prediction

    problems: list[str] = []
    console = Console(stderr=True)
    ids = track(files.ids, f"{args.task} {args.dataset}", console=console, disable=not console.is_terminal)
    for image in ids:
        prediction = label = None
        try:
            prediction = read_prediction(files.predictions[image], args.task)
        except FileError as error:
            problems.append(f"{files.predictions[image]}: {error}")
        try:
            label = _label(files.labels[image], args, files.root, prediction)
        except FileError as error:
            problems.append(f"{files.labels[image]}: {error}")
        if prediction is None or label is None:
            continue
        if prediction.shape != label.shape:
            sizes = ["×".join(map(str, array.shape[-2:])) for array in (prediction, label)]
            problems.append(f"{files.predictions[image]}: {sizes[0]} pixels, but its label has {sizes[1]}")
            continue
        try:
            meter.update(prediction[None], label[None])
        except MetricError as error:
            culprit = files.labels if " target:" in str(error) else files.predictions
            problems.append(f"{culprit[image]}: {error}")
    return problems


def _label(path: Path, args: argparse.Namespace, root: Path | None, prediction: np.ndarray | None) -> np.ndarray:
    from ..metrics._folders import FileError, read_label

    if args.task != "human_parts" or path.suffix.lower() != ".mat":
        return read_label(path, args.task, args.dataset, root)

    from ..data.real.files import DamagedFileError
    from ..data.real.person_parts import scored_parts

    try:
        return scored_parts(path, (1, 1) if prediction is None else prediction.shape)
    except DamagedFileError as error:
        raise FileError(error.problem) from None


def _record(args: argparse.Namespace, result: MetricResult, meter: Metric, images: int) -> dict:
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
    from ..files import write_output, write_output_text

    start = str(folder / record["task"])
    write_output_text(f"{start}.json", json.dumps(record, indent=2, allow_nan=False) + "\n", make_folder=True)
    if hasattr(meter, "curve"):
        curve = meter.curve()
        lines = [",".join(curve)] + [",".join(f"{x:.6f}" for x in row) for row in zip(*curve.values())]
        write_output_text(f"{start}_pr.csv", "\n".join(lines) + "\n")
        write_output(f"{start}_pr.png", lambda path: _draw(path, curve, record))


def _draw(path: Path, curve: dict, record: dict) -> None:
    """Precision over recall, with lines of equal F behind it."""
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
