"""What the report verbs share: which runs, which format, and where the text goes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UsageError

if TYPE_CHECKING:
    from ..reports.collect import Collection
    from ..reports.delta import Delta
    from ..reports.table import Table

STYLES = ("table", "csv", "md", "latex", "json")


def add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUNS",
        default=[Path("runs")],
        help="run folders, or folders that hold runs at any depth; default: runs",
    )


def add_setting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--setting", metavar="HASH", help="only runs of this setting, by the beginning of its hash")


def add_delta(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which Δm is meant."""
    parser.add_argument(
        "--delta-over",
        choices=("columns", "clients"),
        default="columns",
        dest="delta_over",
        help="what Δm averages: columns (dataset × task, the papers' way; default) or single (client, task) pairs",
    )
    parser.add_argument("--task-weights", metavar="TASK=W,…", help="weights of tasks in Δm; tasks not named weigh 1")
    add_reference(parser)


def add_reference(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reference",
        metavar="KEY=VALUE,…",
        help="compare all settings with one method's runs in one setting, such as "
        "algo=local,scenario=iid1_sdmt,architecture=md; keys: algo, scenario, clients, architecture, backbone, "
        "pretrained, … or any value of the config (train.lr=1e-4)",
    )


def add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows",
        metavar="AXES",
        help="what the rows of one table may differ in: algorithm,architecture,backbone,pretrained,clients,…",
    )


def asked_delta(args: argparse.Namespace, collection: Collection, baseline: str = "local") -> Delta:
    """Return the Δm that the flags ask for; its reference is looked for among all the runs given."""
    from ..reports.delta import Delta, find_reference, parse_task_weights

    weights = {} if args.task_weights is None else parse_task_weights(args.task_weights)
    tasks = {task for run in collection.runs for client in run.summary["clients"] for task in client["tasks"]}
    for task in sorted(weights.keys() - tasks):
        raise UsageError(f"--task-weights {args.task_weights}: no run has {task}; there are {', '.join(sorted(tasks))}")
    reference = find_reference(collection, args.reference) if args.reference else None
    if reference is not None and baseline != "local":
        raise UsageError("--baseline and --reference both say what Δm is against; give one of them")
    return Delta(args.delta_over, weights, baseline, reference)


def merged(args: argparse.Namespace, collection: Collection) -> Collection:
    """Return the collection with settings merged into the tables that --rows asks for."""
    if args.rows is None:
        return collection
    from ..reports.settings import merge_settings, parse_axes

    return merge_settings(collection, parse_axes(args.rows))


def add_format(parser: argparse.ArgumentParser, styles: Sequence[str] = STYLES) -> None:
    parser.add_argument("--format", choices=styles, default="table", help="default: table")
    parser.add_argument("--standalone", action="store_true", help="latex: a complete document")
    add_spreadsheet(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout")


def add_spreadsheet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--spreadsheet", action="store_true", help="csv: an apostrophe before text that a spreadsheet would calculate"
    )


def check_style(args: argparse.Namespace) -> None:
    """Refuse flags that belong to another format."""
    for flag, style in (("standalone", "latex"), ("spreadsheet", "csv")):
        if getattr(args, flag, False) and args.format != style:
            raise UsageError(f"--{flag} belongs to --format {style}")


def collect_runs(paths: Sequence[Path], setting: str | None = None, reading: Sequence[str] = ()) -> Collection:
    """Collect the finished runs, of one setting if it is given; print on stderr what could not be used.

    `reading` names what the report reads of a run in addition to its summary.
    """
    from ..reports.collect import collect

    collection = collect(paths, reading)
    for problem in collection.problems:
        print(f"left out: {problem}", file=sys.stderr)
    if not collection.runs:
        raise UsageError(f"{', '.join(map(str, paths))}: no finished run in it")
    return collection if setting is None else collection.of_setting(setting)


def every_run(args: argparse.Namespace, reading: Sequence[str] = ()) -> tuple[Collection, Collection]:
    """Collect the finished runs; return all of them, among which a reference may be, and those of --setting."""
    runs = collect_runs(args.runs, reading=reading)
    return runs, runs if args.setting is None else runs.of_setting(args.setting)


def emit(tables: Sequence[Table], args: argparse.Namespace) -> None:
    """Write `tables` in the format that was asked for, to the file or to the standard output."""
    from ..base.files import check_output, is_stdout
    from ..reports.formats import render

    if not is_stdout(args.output):
        check_output(args.output)
    check_style(args)
    options = {}
    if args.format == "latex":
        options = {"standalone": args.standalone}
    elif args.format == "csv":
        options = {"spreadsheet": args.spreadsheet}
    elif args.format == "table" and is_stdout(args.output) and sys.stdout.isatty():
        from shutil import get_terminal_size

        options = {"width": get_terminal_size((120, 24)).columns, "styled": True}
    write(render(tables, args.format, **options), args.output)


def write(text: str, output: Path | None) -> None:
    """Write `text` to the file that -o names, or to the standard output."""
    from ..base.files import is_stdout, write_output_text

    if is_stdout(output):
        print(text, end="")
        return
    write_output_text(output, text)
    print(f"written: {output}", file=sys.stderr)
