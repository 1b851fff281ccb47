"""`fmtlbench bench --tune`: the trials, the choice, and the chosen runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._request import request_template
from ._working import carry_out, check_data_root, learn_pace, plan_record, print_plan, shell_list, tell_shortfalls

if TYPE_CHECKING:
    from ..bench.device import Device
    from ..bench.grid import Grid
    from ..bench.tuning import Rules
    from ..bench.workers import Outcome
    from ..runs.records import Summary


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


def read_rules(args: argparse.Namespace, grid: Grid) -> Rules:
    """Return how the flags want a choice to be made."""
    from ..bench.grid import parse_seeds
    from ..bench.tuning import Rules

    seeds = parse_seeds(args.tune_seeds, "--tune-seeds") if args.tune_seeds else grid.seeds[:1]
    share = Rules.validation if args.validation is None else args.validation
    return Rules(args.tune_on or "methods", share, seeds)


def check_flags(args: argparse.Namespace) -> None:
    """Refuse flags of --tune without it."""
    from ..base.errors import UsageError

    for flag in ("tune_on", "validation", "tune_seeds"):
        if not args.tune and (value := getattr(args, flag)) is not None:
            raise UsageError(f"--{flag.replace('_', '-')} {value}: is for --tune; give that too")


def tune(args: argparse.Namespace, grid: Grid, device: Device, budget: float | None) -> tuple[Outcome, dict[str, Any]]:
    """Carry out the trials, choose, and carry out the chosen runs; return what became of the last, and the search.

    If the trials did not come to their end, the outcome is theirs and the search is empty.
    """
    from ..bench.tuning import choose, describe, plan_chosen, plan_tuning, record_tuning

    template, with_local = request_template(args), not args.no_local
    tuning = plan_tuning(grid, read_rules(args, grid), template, device.kind, with_local)
    check_data_root(tuning.plan, args)
    tell_shortfalls(grid)
    tried = carry_out(tuning.plan, args, budget, device)
    if tried.stopped:
        return tried, {}
    choices = choose(tuning, judge_trial)
    plan, owners = plan_chosen(tuning, choices, template, device.kind, with_local)
    file = record_tuning(Path(args.out), tuning, choices, owners)
    left = None if budget is None else max(budget - tried.seconds, 0.0)
    return carry_out(plan, args, left, device), {**describe(tuning, choices), "file": str(file)}


def judge_trial(trial: Summary, default: Summary) -> float:
    """Return Δm in percent of a trial against the default, over the columns of its table."""
    from ..base.errors import FmtlbenchError
    from ..metrics import MetricError
    from ..reports.delta import Delta, primary_scores

    splits = [record["split"] for record in trial["scores"] if record["primary"]]
    split = "global" if "global" in splits else next(iter(splits), "")
    (ours, up), (theirs, _) = (primary_scores(run["scores"], split) for run in (trial, default))
    rule = Delta()
    try:
        return rule.change(rule.units(ours), rule.units(theirs), up)
    except MetricError as error:
        raise FmtlbenchError(f"no Δm: {error}") from None


def print_tuning_plan(args: argparse.Namespace, grid: Grid, device: Device) -> None:
    """Print the trials and the runs that follow, with the time they will take."""
    from ..base.words import say_count
    from ..bench.plan import make_plan
    from ..bench.tuning import plan_tuning

    template, rules = request_template(args), read_rules(args, grid)
    tuning = plan_tuning(grid, rules, template, device.kind, not args.no_local)
    check_data_root(tuning.plan, args)
    tell_shortfalls(grid)
    if args.format == "sh":
        print(shell_list(tuning.plan), end="")
        return
    # Which values will be chosen is not known yet, but how many runs there will be, and about how long they take.
    after = make_plan(grid, template, device.kind, not args.no_local)
    after.known = (tuning.plan.out,)
    seconds = learn_pace(after).total(after.runs, args.jobs, whole=True)
    if args.format == "json":
        then = {"runs": len(after.runs), "seconds": seconds.seconds if seconds.known else None}
        print(json.dumps({"trials": plan_record(tuning.plan, args.jobs), "then": then}, indent=2, ensure_ascii=False))
        return
    each = {len(search.trials) - 1 for search in tuning.searches}
    told = " to ".join(str(count) for count in sorted({min(each), max(each)}))
    print(f"{told} trials and the default of each method, scored on validation ({rules.validation:g})")
    print_plan(tuning.plan, args.jobs, "table")
    print(f"then {say_count(len(after.runs), 'run')} with what is chosen · training time: {seconds.text()}")


def print_choices(search: dict[str, Any]) -> None:
    """Print what was chosen for each method and scenario, and where all trials are."""
    from ._tables import as_typed, print_records

    def say(chosen: dict[str, Any] | None) -> str:
        if chosen is None:
            return "–"
        return ", ".join(f"{key}={as_typed(value)}" for key, value in chosen.items()) or "the default"

    rows = [
        {
            "name": one["name"],
            "scenario": one["scenario"],
            "preset": one["preset"],
            "trials": one["trials_finished"],
            "chosen": say(one["chosen"]),
            "Δm % on validation": "–" if one["delta_m"] is None else f"{one['delta_m']:+.2f}",
        }
        for one in search["choices"]
    ]
    print_records(rows)
    for one in search["choices"]:
        if one["reason"] and one["reason"] != "refused":
            print(f"no choice for {one['name']} on {one['scenario']}: {one['reason']}")
    print(f"{search['criterion']}: {search['file']}")


def is_complete(search: dict[str, Any]) -> bool:
    """Return whether every trial of every method has a score, unless the method refuses the scenario."""
    choices: Sequence[dict[str, Any]] = search.get("choices", ())
    return bool(choices) and all(
        one["reason"] == "refused" or one["trials_finished"] == len(one["trials"]) for one in choices
    )
