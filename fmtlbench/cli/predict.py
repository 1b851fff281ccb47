"""`fmtlbench predict`: what the networks of stored runs predict, as files or as one figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from ._progress import show_progress

EPILOG = """\
Files: <client>/<task>/<image id>.png in RUN/predictions (RUN/predictions-<split> for other splits) or in -o DIR; of
several runs in DIR/<scenario>/<algorithm>/<run>. Class numbers are PNGs with a palette, normals (n+1)*127.5, sal and
edge probability*255, depth NPY in metres and a PNG to look at (colours from 0 to 10 m). `fmtlbench score --pred
RUN/predictions/<client> --task ...` reads them; class numbers and depth come back exactly, the others in 8 bits, or
exactly with --arrays.
Padding is removed; predictions on stretched images (data.resize=fixed) are brought back to the images' own sizes.
What an earlier call wrote is replaced as a whole; other files are never touched.

The first three images also lie in RUN/predictions/examples as pictures: input, ground truth and prediction. The pages
of `fmtlbench leaderboard --format html` show them.

A panel has a row per image: the input, then of every task the ground truth and one column per run; lines on predicted
classes are the borders of the true ones. With --panel files are written only if -o is given too.

examples:
  fmtlbench predict runs/st_mt_1/fedhca2/nano-synth-s0-1a2b3c4d
  fmtlbench predict RUN --clients nyud-multi --tasks depth,edge --limit 20 -o out
  fmtlbench predict RUN_A RUN_B --panel panel.pdf --client nyud-multi --images 0,3,7
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "predict",
        help="write or draw what the networks of stored runs predict",
        description="Write the predictions of stored runs as images, or draw some of them side by side.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="folder of one run; an unfinished one will do"
    )
    parser.add_argument("--split", default="global", metavar="NAME", help="whose test images; default: global")
    parser.add_argument("--clients", "--client", type=split_names, metavar="ID,…", help="default: all")
    parser.add_argument("--tasks", "--task", type=split_names, metavar="NAME,…", help="default: all that a client has")
    parser.add_argument("--images", type=_split_ints, metavar="N,…", help="places in the split, from 0; default: all")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N images; of a panel: 3 unless told")
    parser.add_argument("--arrays", action="store_true", help="write .npy arrays, which come back exactly")
    parser.add_argument("--panel", type=Path, metavar="FILE", help="draw a figure instead: .png, .pdf or .svg")
    parser.add_argument("--data-root", type=Path, metavar="DIR", help="folder of the real datasets")
    parser.add_argument("--device", default="auto", help="auto (as the run), cpu, cuda, cuda:<n> or mps; default: auto")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder of the predictions")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    _check(args)

    from ..inference.open_run import choose_folders, describe_method, open_run
    from ..inference.panel import draw_panel, merge_clients
    from ..inference.predict import check_comparable, panel_rows, save_predictions
    from ..inference.prediction_folder import check_replaceable
    from ..inference.stored_run import StoredRun
    from ..reports.figure_style import save
    from ..reports.labels import tell_apart

    with show_progress() as progress:
        runs = [StoredRun(folder) for folder in args.runs]
        if args.panel:
            check_comparable(runs)
        targets = choose_folders(runs, args.split, args.output) if args.output or not args.panel else []
        for target in targets:
            check_replaceable(target)
        for run in runs:
            open_run(run, args.data_root, args.device, progress)
        written = [args.panel] if args.panel else []
        if args.panel:
            limit = args.limit if args.limit or args.images else 3
            rows = panel_rows(runs, args.split, args.clients, args.tasks, args.images, limit)
            told = [describe_method(run) for run in runs]
            titles = tell_apart(told, [run.config.seed for run in runs], [run.name[-8:] for run in runs])
            save(draw_panel(merge_clients(rows), titles), args.panel, "--panel")
        for run, target in zip(runs, targets):
            choice = (args.split, args.clients, args.tasks, args.images, args.limit, args.arrays)
            written.append(save_predictions(run, target, *choice))
    for path in written:
        print(path)
    return 0


def split_names(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (word.strip() for word in text.split(",")))))


def _split_ints(text: str) -> list[int]:
    try:
        return [int(word) for word in split_names(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers such as 0,3,7, got {text!r}") from None


def _check(args: argparse.Namespace) -> None:
    from ..base.errors import UsageError
    from ..base.files import check_folder, check_output
    from ..engine.device import check_device

    check_device(args.device)
    if args.limit is not None and (args.limit < 1 or args.images is not None):
        raise UsageError(f"--limit {args.limit}: expected 1 or more, and no --images beside it")
    for flag in ("clients", "tasks", "images"):
        if getattr(args, flag) == []:
            raise UsageError(f"--{flag}: expected at least one")
    if len({folder.resolve() for folder in args.runs}) < len(args.runs):
        raise UsageError("the same run twice")
    if args.panel and args.panel.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise UsageError(f"--panel {args.panel}: expected a name ending in .png, .pdf or .svg")
    if args.panel:
        check_output(args.panel, "--panel")
    if args.output:
        check_folder(args.output)
