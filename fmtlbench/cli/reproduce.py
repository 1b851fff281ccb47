"""`fmtlbench reproduce`: the papers' tables and figures, made of our runs. Never imports torch itself for a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ._request import add_circumstances, add_overrides, overrides_of
from ._working import add_effort, make_display, prepare, print_failures, print_plan

if TYPE_CHECKING:
    from ..bench.plan import Plan
    from ..bench.recipes import Planned

# What --status counts: word → states. A run without the files that a figure reads, or with damaged ones, is unusable.
COUNTED = {"done": ("done",), "begun": ("resume",), "missing": ("new", "other code"), "unusable": ("unusable",)}

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
  fmtlbench reproduce
  fmtlbench reproduce fedhca2_table1_st_mt_1 --data-root ~/data --seeds 0-2 --dry-run
  fmtlbench reproduce fedhca2_table3_ablation_st_mt_1 --preset nano --jobs 2
  fmtlbench reproduce --status runs --preset nano

Exit code 0: every run is there and every file written; a list, plan, status or check of claims was shown. 1: some runs
failed or are left, or a figure could not be drawn. 2: wrong usage, found before anything ran.
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "reproduce",
        help="a table or figure of the papers, made of our runs",
        description="Make the tables and figures of the papers anew: run what is missing, then write them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    from ..bench.effort import carry_out, check_archives, check_data_root
    from ..bench.recipes import choose_recipes, plan_recipes
    from ..config.presets import find_preset
    from ..cost.energy import choose_energy

    _check_flags(args)
    if args.status is not None:
        args.out = args.status
    if not args.names and args.status is None and not args.claims:
        return _list(args)
    check_folder(args.out, "--out" if args.status is None else "--status")
    recipes = choose_recipes(args.names or ["all"])
    effort, template, device = prepare(args, args.dry_run and args.format == "sh")
    if args.preset is not None:
        find_preset(args.preset, "--preset")
    how = {"preset": args.preset, "seeds": parse_seeds(args.seeds, "--seeds"), "overrides": overrides_of(args)}
    planned = plan_recipes(recipes, template, device.kind, **how, public_code=args.public_code)
    plan = planned[0].plan  # of all of them
    if args.status is not None:
        return _print_status(planned, args)
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
        outcome = carry_out(plan, effort, device, make_display())
        complete = outcome.complete
        print_failures(outcome, sys.stderr)
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
        raise UsageError("which recipe? A name of `fmtlbench reproduce`, a paper (fedhca2, fmtlbench, matfl) or all")
    for flag, folder in (("--status", args.status), ("--claims: --out", args.out if args.claims else None)):
        if folder is not None and not Path(folder).exists():
            raise UsageError(f"{flag} {folder}: no such folder")


def _print_plan(planned: list[Planned], plan: Plan, args: argparse.Namespace, device: str) -> None:
    """Print what is missing: of one recipe run by run, of several their counts."""
    from ..bench.effort import describe_plan

    if args.format == "table" and len(planned) > 1:
        _print_status(planned, args)
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
    from ..bench.recipes import make_figure, make_table

    target = args.output / planned.name
    if planned.recipe.is_figure:
        from ..base.errors import FmtlbenchError
        from ..reports.plots import save_figure
        from ._panel import draw_runs

        notes: list[str] = []
        try:
            figure = make_figure(planned, notes, lambda runs, *of: draw_runs(runs, args.data_root, args.device, *of))
        except FmtlbenchError as error:
            print(f"not drawn: {planned.recipe.name}: {error}", file=sys.stderr)
            return False
        _write_text(target.with_suffix(".txt"), "".join(f"{note}\n" for note in dict.fromkeys(notes)))
        for file in save_figure(figure, target):
            print(file)
        return True
    from ..reports.formats import render

    tables = make_table(planned).tables()
    for ending, style in (("txt", "table"), ("csv", "csv"), ("md", "md"), ("tex", "latex")):
        _write_text(target.with_suffix(f".{ending}"), render(tables, style))
    print(render(tables, "table"), end="")
    print(f"written: {target}.txt, .csv, .md, .tex", file=sys.stderr)
    return True


def _write_text(path: Path, text: str) -> None:
    from ..base.files import write_output_text

    path.parent.mkdir(parents=True, exist_ok=True)
    write_output_text(path, text)


def _list(args: argparse.Namespace) -> int:
    from ..reports.papers.recipes import load_recipe, recipe_names

    records = []
    for recipe in map(load_recipe, recipe_names()):
        record = {"name": recipe.name, "source": recipe.source, "title": recipe.title}
        records.append({**record, "preset": recipe.preset, "runs": len(recipe.wanted)})
    _print(records, args)
    return 0


def _print_status(planned: list[Planned], args: argparse.Namespace) -> int:
    records = []
    for one in planned:
        states = one.states()
        counts = {word: sum(states.count(state) for state in of) for word, of in COUNTED.items()}
        record = {"name": one.recipe.name, "preset": one.preset, "runs": sum(counts.values()), **counts}
        records.append({**record, "refused": states.count("refused")})
    _print(records, args)
    return 0


def _print_claims(planned: list[Planned], args: argparse.Namespace) -> int:
    """Print the verdicts on the claims about the chosen recipes: in print, and on our runs."""
    from ..base.errors import UsageError
    from ..bench.recipes import judge_runs
    from ..reports.formats import render
    from ..reports.papers.claims import compare_verdicts

    verdicts = judge_runs(planned)
    if not verdicts:
        raise UsageError(f"{' '.join(args.names)} --claims: the papers claim nothing of it that is checked here")
    table = compare_verdicts(verdicts, f"runs in {args.out}, {_say_presets(planned)}, seeds {args.seeds}")
    print(render([table], args.format), end="")
    return 0


def _say_presets(planned: list[Planned]) -> str:
    return f"preset {', '.join(dict.fromkeys(one.preset for one in planned))}"


def _print(records: list[dict], args: argparse.Namespace) -> None:
    if args.format == "json":
        import json

        print(json.dumps(records, indent=2, ensure_ascii=False))
        return
    from ._tables import print_records

    print_records(records)
