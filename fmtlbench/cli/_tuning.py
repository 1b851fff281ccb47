"""`fmtlbench bench --tune`: its flags, and how trials and choices are printed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ._working import print_json, print_plan

if TYPE_CHECKING:
    from ..bench.request import Bench


def add_tuning(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what is tried and how a choice is made."""
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="KEY=RANGE",
        help="try all of 1e-4..1e-2:log5, 0.1..0.5:5, 1..4 or 1,2,4; repeatable: all combinations; METHOD:KEY=RANGE is "
        "for one method",
    )
    parser.add_argument(
        "--search",
        action="append",
        default=[],
        metavar="KEY=RANGE",
        help="draw from 1e-4..1e-2:log, 0.1..0.8, 1..4 or adam,sgd; repeatable, likewise",
    )
    parser.add_argument("--trials", type=int, help="of --search, for each method")
    parser.add_argument("--search-seed", type=int, help="of the draws; default: 0")
    parser.add_argument(
        "--tune",
        action="store_true",
        help="choose by the trials, on images held out of training, then run the choice on the test images",
    )
    parser.add_argument(
        "--tune-on", choices=("methods", "local"), help="whose trials decide: each method's own, or local's for all"
    )
    parser.add_argument(
        "--validation",
        type=float,
        help="share of each client's training images to score trials on; default: 0.2",
    )
    parser.add_argument("--tune-seeds", help="of the trials, as --seeds; default: the first of --seeds")


def print_tuning_plan(bench: Bench, style: str) -> None:
    """Print the trials and the runs that follow, with the time they will take."""
    from ..base.words import say_count

    if style == "sh":
        print_plan(bench.plan, bench.effort.jobs, style)
        return
    if style == "json":
        print_json(bench.record())
        return
    assert bench.tuning is not None
    assert bench.then is not None
    each = {len(search.trials) - 1 for search in bench.tuning.searches}
    told = " to ".join(str(count) for count in sorted({min(each), max(each)}))
    print(f"{told} trials and the default of each method, scored on validation ({bench.tuning.rules.validation:g})")
    print_plan(bench.plan, bench.effort.jobs, "table")
    many, seconds = say_count(len(bench.then.runs), "run"), bench.estimate_then()
    print(f"then {many} with what is chosen · training time: {seconds.text()}")


def print_choices(bench: Bench) -> None:
    """Print what was chosen for each method and scenario, and where all trials are."""
    from ._tables import print_records

    print_records(bench.choices())
    for one in bench.search["choices"]:
        if one["reason"] and one["reason"] != "refused":
            print(f"no choice for {one['name']} on {one['scenario']}: {one['reason']}")
    print(f"{bench.search['criterion']}: {bench.search['file']}")
