"""`fmtlbench score --name`: predictions that were made elsewhere become a row of leaderboards."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ._progress import show_progress
from ._request import add_overrides, overrides_of
from .predict import split_names

if TYPE_CHECKING:
    from ..inference.external_scores import ExternalResult

EPILOG = """\
As a row of leaderboards, in a scenario: PREDICTIONS/<client>/<task>/<image id>.png or .npy, for every test image of
every client (or of --client), at the images' own sizes; they are scored exactly as the runs of the same setting are.
--like RUN takes the setting from a run, which is the safe way to get into its table; --scenario, --preset, --set and
--rounds build it as `fmtlbench run` does. On a dataset: PREDICTIONS/<task>/<image id>, for every image of the split, at
its own size. What is written below -o is a folder with summary.json, the hashes of all files (predictions.sha256) and,
in a scenario, config.yaml. Leaderboards show it as a row marked (external), with where it came from below the table. It
has no cost and no rounds.

examples:
  fmtlbench score out --name "My method" --like runs/st_mt_1/local/nano-synth-s0-1a2b3c4d
  fmtlbench score out --name "My method" --by "A. Author" --scenario st_mt_1 --seed 1 --client nyud-multi
  fmtlbench score out --name "My method" --dataset nyud --data-root DIR
"""


def add_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--by", metavar="WHO", help="who made them, for the note below tables")
    group.add_argument("--like", type=Path, metavar="RUN", help="in the setting of this run")
    group.add_argument("--scenario", help="in this scenario: a name or a .yml file")
    group.add_argument("--preset", help="of the setting; default: nano")
    group.add_argument("--seed", type=int, help="of the setting; default: 0, or the run's")
    group.add_argument("--rounds", type=int, help="of the setting's runs, instead of the preset's number")
    group.add_argument("--device", choices=("cpu", "cuda", "mps"), help="of the setting's runs; default: cpu")
    add_overrides(group, "of the setting, e.g. data.test_samples.nyud=100; repeatable")
    group.add_argument("--client", action="append", metavar="ID", help="only this client; repeatable")
    group.add_argument("--tasks", type=split_names, metavar="NAME,…", help="of a dataset; default: all there are")
    group.add_argument("--data-root", type=Path, metavar="DIR", help="folder of the real datasets")


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder

    output = args.output or Path("runs")
    check_folder(output)
    _check(args)

    from ..inference.external_scores import Origin, choose_setting, open_dataset, score_in_setting, score_on_dataset
    from ..inference.file_scores import Judge

    origin = Origin(args.folder, args.name, args.by)
    judge = Judge(lambda line: print(line, file=sys.stderr), args.trust)
    if args.dataset:
        info, reader = open_dataset(args.dataset, args.split or "test", args.data_root, args.tasks)
        _print(score_on_dataset(origin, info, reader, output, judge, args.tasks))
        return 0
    asked = (args.scenario, args.preset or "nano", args.seed, args.rounds, args.device or "cpu", overrides_of(args))
    config = choose_setting(args.like, *asked)
    where = {"clients": args.client, "split": args.split or "global", "data_root": args.data_root}
    with show_progress() as progress:
        _print(score_in_setting(origin, config, output, judge, progress, **where))
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse flags that do not belong together."""
    if args.folder is None:
        raise UsageError("score: PREDICTIONS: needed")
    places = {"--like": args.like, "--scenario": args.scenario, "--dataset": args.dataset}
    given = [flag for flag, value in places.items() if value is not None]
    if len(given) != 1:
        told = f"{', '.join(given)}: each says where; give one of them" if given else f"one of {', '.join(places)}"
        raise UsageError(f"score --name {args.name}: {told}")
    setting = {"--set": args.assignments, "--rounds": args.rounds, "--preset": args.preset, "--device": args.device}
    if args.dataset:
        wrong = {**setting, "--client": args.client, "--seed": args.seed}
    elif args.like:
        wrong = {**setting, "--dataset-file": args.dataset_file, "--tasks": args.tasks}
    else:
        wrong = {"--tasks": args.tasks}
    for flag, value in wrong.items():
        if value is not None and value != []:
            raise UsageError(f"{flag}: does not go with {given[0]}")


def _print(outcome: ExternalResult) -> None:
    from ..runs.external import describe_external
    from ._tables import print_records

    rows = [
        {
            "client": score["client"],
            "task": score["task"],
            "metric": score["metric"],
            "value": "none" if score["value"] is None else f"{score['value']:.4f}",
            "unit": score.get("unit") or "",
        }
        for score in outcome.summary["scores"]
        if score["primary"]
    ]
    print_records(rows, f"{outcome.summary['algorithm']}: {describe_external(outcome.summary)}")
    print(outcome.folder)
