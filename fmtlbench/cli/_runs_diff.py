"""`fmtlbench runs diff`: in what two runs differ, and their scores side by side. Never imports torch."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..base.words import as_typed
from ..runs.result import format_value
from ._tables import print_records
from .runs import add_run


def add(actions) -> None:
    parser = actions.add_parser("diff", help="in what two runs differ, and their scores side by side")
    add_run(parser, "first")
    add_run(parser, "second")
    parser.add_argument(
        "--format", choices=("auto", "json"), default="auto", help="auto: tables on a terminal, tab-separated elsewhere"
    )
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..runs.differences import compare_runs
    from ..runs.find import find_run
    from ..runs.folder import RunFolder

    folders = [find_run(name) for name in (args.first, args.second)]
    found = compare_runs(*(RunFolder(folder) for folder in folders))
    if args.format == "json":
        scores = [{**vars(pair), "difference": pair.difference} for pair in found.scores]
        sides = {"runs": [str(folder) for folder in folders]}
        print(json.dumps({**sides, "config": found.config, "circumstances": found.circumstances, "scores": scores}))
        return 0
    for title, pairs in (("config", found.config), ("code, versions, data, hardware", found.circumstances)):
        if pairs:
            print_records([_row(name, *pair) for name, pair in pairs.items()], title)
        else:
            print(f"{title}: no difference")
    if found.scores:
        print_records([_score_row(pair) for pair in found.scores], "scores")
    return 0


def _row(name: str, first: Any, second: Any) -> dict[str, str]:
    from ..base.errors import one_line, shorten

    words = {side: shorten(one_line(as_typed(value))) for side, value in (("first", first), ("second", second))}
    return {"value": name, **words}


def _score_row(pair: Any) -> dict[str, str]:
    record = {"client": pair.client, "split": pair.split, "task": pair.task, "metric": pair.metric}
    record["better"] = "up" if pair.higher_is_better else "down"
    sides = {"first": pair.first, "second": pair.second}
    record |= {side: format_value(value, pair.unit) for side, value in sides.items()}
    difference = pair.difference
    sign = "+" if difference is not None and difference > 0 else ""
    return {**record, "difference": sign + format_value(difference, pair.unit)}
