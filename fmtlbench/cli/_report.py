"""What the report verbs share: which runs, which format, and where the text goes."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import UsageError
from ..reports.formats import find_formats

if TYPE_CHECKING:
    from ..reports.table import Table

Container = argparse.ArgumentParser | argparse._ArgumentGroup
DELTA = ("delta_over", "task_weights", "reference", "baseline")


def add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUNS",
        default=[Path("runs")],
        help="run folders, or folders that hold runs at any depth; default: runs",
    )


def add_setting(parser: Container) -> None:
    parser.add_argument("--setting", metavar="HASH", help="only runs of this setting, by the beginning of its hash")


def add_delta(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which Δm is meant."""
    add_terms(parser)
    add_reference(parser)


def add_terms(parser: Container) -> None:
    """Add the flags that say what Δm averages."""
    parser.add_argument(
        "--delta-over",
        choices=("columns", "clients"),
        default="columns",
        dest="delta_over",
        help="what Δm averages: columns (dataset × task, the papers' way; default) or single (client, task) pairs",
    )
    parser.add_argument("--task-weights", metavar="TASK=W,…", help="weights of tasks in Δm; tasks not named weigh 1")


def add_reference(parser: Container) -> None:
    parser.add_argument(
        "--reference",
        metavar="KEY=VALUE,…",
        help="compare all settings with one method's runs in one setting, such as "
        "algo=local,scenario=iid1_sdmt,architecture=md; keys: algo, scenario, clients, architecture, backbone, "
        "pretrained, … or any value of the config (train.lr=1e-4)",
    )


def add_rows(parser: Container) -> None:
    parser.add_argument(
        "--rows",
        metavar="AXES",
        help="what the rows of one table may differ in: algorithm,architecture,backbone,pretrained,clients,…",
    )


def add_format(parser: argparse.ArgumentParser, others: Sequence[str] = ()) -> None:
    parser.add_argument("--format", choices=(*find_formats(), *others), default="table", help="default: table")
    parser.add_argument("--standalone", action="store_true", help="latex: a complete document")
    add_spreadsheet(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to stdout")


def add_spreadsheet(parser: Container) -> None:
    parser.add_argument(
        "--spreadsheet", action="store_true", help="csv: an apostrophe before text that a spreadsheet would calculate"
    )


def check_style(args: argparse.Namespace) -> None:
    """Refuse flags that belong to another format."""
    for flag, style in (("standalone", "latex"), ("spreadsheet", "csv")):
        if getattr(args, flag, False) and args.format != style:
            raise UsageError(f"--{flag} belongs to --format {style}")


def keywords(args: argparse.Namespace, function: Callable[..., Any]) -> dict[str, Any]:
    """Return what the flags say, as keywords of a function whose keywords are named as they are."""
    parameters = inspect.signature(function).parameters
    names = {*parameters, *(DELTA if "delta" in parameters else ())} - {"runs"}
    return {**{name: getattr(args, name) for name in names if hasattr(args, name)}, "tell": tell}


def tell(line: str) -> None:
    """Print what could not be used, or what a reader must know, beside the results."""
    print(line, file=sys.stderr)


def emit(
    tables: Sequence[Table], args: argparse.Namespace, record: Callable[[], Any] | None = None, **writing: Any
) -> None:
    """Write `tables` in the format that was asked for, to the file or to the standard output.

    `record` makes what is JSON instead of the tables themselves, and `writing` says how.
    """
    from ..base.files import check_output, is_stdout
    from ..reports.formats import render

    check_style(args)
    if args.format == "json" and record is not None:
        write(json.dumps(record(), indent=2, ensure_ascii=False, **writing) + "\n", args.output)
        return
    if not is_stdout(args.output):
        check_output(args.output)
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
