"""`fmtlbench papers reproduce`: the papers' tables and figures, made of our runs. No torch itself for a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ._progress import show_progress
from ._request import add_circumstances, add_overrides, overrides_of
from ._working import add_effort, do_plan, prepare, print_plan

if TYPE_CHECKING:
    from ..bench.plan import Plan
    from ..bench.recipes import Planned

EPILOG = """\
Without a name, the recipes are listed. NAME is one of them, a paper (fedhca2, fedhca2_supp, fmtlbench, matfl) or all.
Runs that are missing are made first, as by fmtlbench bench: the same command goes on with what is left, and several
recipes share their runs. Then the table is written to DIR as .txt, .csv, .md and .tex, in the paper's layout and line
by line beside the published values with the gap; a figure as .pdf and .png.

A recipe has its paper's preset, which needs the archives (--data-root, docs/data.md). Another preset gives the same
table at its size, said in every caption: --preset nano needs no data, and minutes of a core for each run. The paper's
options of methods and its metrics go along; ResNet-18 and Swin-T give way to small networks of their kind, and what has
none is left out.

examples:
  fmtlbench papers reproduce
  fmtlbench papers reproduce fedhca2_table1_st_mt_1 --data-root ~/data --seeds 0-2 --dry-run
  fmtlbench papers reproduce fedhca2_table3_ablation_st_mt_1 --preset nano --jobs 2
  fmtlbench papers reproduce --status runs --preset nano

Exit code 0: every run is there and every file written; a list, plan, status or check of claims was shown. 1: some runs
failed or are left, or a figure could not be drawn. 2: wrong usage, found before anything ran.
"""


def add(actions) -> None:
    parser = actions.add_parser(
        "reproduce",
        help="a table or figure of the papers, made of our runs",
        description="Make the tables and figures of the papers anew: run what is missing, then write them.",
        epilog=EPILOG,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which recipes; default: list them")
    parser.add_argument("--preset", help="instead of the paper's: a name or a .yml file")
    parser.add_argument("--seeds", default="0", help="for example 0-4; default: 0")
    parser.add_argument(
        "--public-code",
        action="store_true",
        help="run methods as the public code did that made the paper's numbers, where that is another thing than its "
        "text says (docs/deviations.md)",
    )
    parser.add_argument(
        "--status", metavar="RUNS", help="show how much of every recipe lies in this folder; run nothing"
    )
    parser.add_argument(
        "--claims",
        action="store_true",
        help="check what the papers say, on their printed numbers and on the runs of --out; run nothing",
    )
    add_overrides(parser, "override one value of every run; repeatable")
    add_effort(parser)
    add_circumstances(parser)
    parser.add_argument(
        "--format",
        choices=("table", "json", "sh"),
        default="table",
        help="of the list, the plan (--dry-run), --status and --claims; sh: one command per missing run; "
        "default: table",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("reproduced"), metavar="DIR", help="default: reproduced"
    )
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder
    from ..bench.asked_runs import parse_seeds
    from ..bench.effort import check_archives, check_data_root
    from ..bench.recipe_files import count_states, describe_recipes
    from ..bench.recipes import choose_recipes, plan_recipes
    from ..config.presets import find_preset
    from ..cost.energy import choose_energy

    _check_flags(args)
    if args.status is not None:
        args.out = args.status
    if not args.names and args.status is None and not args.claims:
        _print(describe_recipes(), args)
        return 0
    check_folder(args.out, "--out" if args.status is None else "--status")
    recipes = choose_recipes(args.names or ["all"])
    effort, template, device = prepare(args, args.dry_run and args.format == "sh")
    if args.preset is not None:
        find_preset(args.preset, "--preset")
    how = {"preset": args.preset, "seeds": parse_seeds(args.seeds, "--seeds"), "overrides": overrides_of(args)}
    planned = plan_recipes(recipes, template, device.kind, **how, public_code=args.public_code)
    plan = planned[0].plan  # of all of them
    if args.status is not None:
        _print([count_states(one) for one in planned], args)
        return 0
    if args.claims:
        return _print_claims(planned, args)
    if plan.runs:
        check_data_root(plan, args.data_root)
    check_folder(args.output, "-o")  # hours before it is written
    if args.dry_run:
        _print_plan(planned, plan, args, device.kind)
        return 0
    check_archives(plan, args.data_root, effort.hosts)
    choose_energy(args.energy, args.country, args.region)
    complete = True
    if plan.runs:
        _say_estimate(plan, args.jobs, device.kind)
        complete = do_plan(plan, effort, device)
    written = [_write(one, args) for one in planned]
    return 0 if complete and all(written) else 1


def _check_flags(args: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    from ..base.errors import UsageError

    shown = [f"--{name}" for name in ("status", "claims", "dry_run") if getattr(args, name)]
    if len(shown) > 1:
        raise UsageError(f"{' and '.join(shown).replace('_', '-')}: each says what to show; give one of them")
    if args.format == "sh" and not args.dry_run:
        raise UsageError("--format sh: lists what is missing; give --dry-run too, or --format table or json")
    given = [flag for flag in ("preset", "public_code", "assignments", "dry_run") if getattr(args, flag)]
    if given and not args.names and args.status is None and not args.claims:
        raise UsageError(
            "which recipe? A name of `fmtlbench papers reproduce`, a paper (fedhca2, fmtlbench, matfl) or all"
        )
    for flag, folder in (("--status", args.status), ("--claims: --out", args.out if args.claims else None)):
        if folder is not None and not Path(folder).exists():
            raise UsageError(f"{flag} {folder}: no such folder")


def _print_plan(planned: list[Planned], plan: Plan, args: argparse.Namespace, device: str) -> None:
    """Print what is missing: of one recipe run by run, of several their counts."""
    from ..bench.effort import describe_plan
    from ..bench.recipe_files import count_states

    if args.format == "table" and len(planned) > 1:
        _print([count_states(one) for one in planned], args)
        print(describe_plan(plan, args.jobs))
    else:
        print_plan(plan, args.jobs, args.format)
    if args.format == "table":
        _say_estimate(plan, args.jobs, device)


def _say_estimate(plan: Plan, jobs: int, device: str) -> None:
    """Say how long the missing runs take where no finished run tells it."""
    from ..bench.estimate import learn_pace

    missing = plan.missing()
    if missing and learn_pace(plan).total(missing, jobs).unknown:
        from ..bench.operations import estimate

        print(estimate(missing, device), file=sys.stderr)


def _write(planned: Planned, args: argparse.Namespace) -> bool:
    """Write a recipe's files and print its table, or the names of its figure's files; False: it could not be drawn."""
    from ..base.errors import FmtlbenchError
    from ..bench.recipe_files import write_figure, write_table

    if not planned.recipe.is_figure:
        print(write_table(planned, args.output), end="")
        print(f"written: {args.output / planned.name}.txt, .csv, .md, .tex", file=sys.stderr)
        return True

    def draw_panel(runs, clients, image):
        from ..inference.open_run import draw_runs

        with show_progress() as progress:
            return draw_runs(runs, args.data_root, args.device, progress, clients, image)

    try:
        for file in write_figure(planned, args.output, draw_panel):
            print(file)
    except FmtlbenchError as error:
        print(f"not drawn: {planned.recipe.name}: {error}", file=sys.stderr)
        return False
    return True


def _print_claims(planned: list[Planned], args: argparse.Namespace) -> int:
    """Print the verdicts on the claims about the chosen recipes: in print, and on our runs."""
    from ..base.errors import UsageError
    from ..bench.recipes import judge_runs
    from ..reports.formats import render
    from ..reports.papers.claims import compare_verdicts

    verdicts = judge_runs(planned)
    if not verdicts:
        raise UsageError(f"{' '.join(args.names)} --claims: the papers claim nothing of it that is checked here")
    presets = ", ".join(dict.fromkeys(one.preset for one in planned))
    table = compare_verdicts(verdicts, f"runs in {args.out}, preset {presets}, seeds {args.seeds}")
    print(render([table], args.format), end="")
    return 0


def _print(records: list[dict], args: argparse.Namespace) -> None:
    from ._tables import print_records
    from ._working import print_json

    if args.format == "json":
        print_json(records)
    else:
        print_records(records)
