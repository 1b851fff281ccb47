"""`fmtlbench score-external`: predictions that were made elsewhere become a row of leaderboards."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ._request import add_overrides, overrides_of
from .evaluate import refuse_files, tell_findings
from .predict import split_names

if TYPE_CHECKING:
    from ..config.run_config import RunConfig
    from ..inference.external_scores import ExternalResult, Origin
    from ..inference.scoring import Findings

EPILOG = """\
The files are named and coded as `fmtlbench predict` writes them and `fmtlbench evaluate` reads them. In a scenario:
PREDICTIONS/<client>/<task>/<image id>.png or .npy, for every test image of every client (or of --client), at the
images' own sizes; they are scored exactly as the runs of the same setting are. --like RUN takes the setting from a run,
which is the safe way to get into its table; --scenario, --preset, --set and --rounds build it as `fmtlbench run` does.
On a dataset: PREDICTIONS/<task>/<image id>, for every image of the split, at its own size.

What is written below -o is a folder with summary.json, the hashes of all files (predictions.sha256) and, in a scenario,
config.yaml. Leaderboards show it as a row marked (external), with where it came from below the table. It has no cost
and no rounds.

examples:
  fmtlbench score-external out --name "My method" --like runs/st_mt_1/local/nano-synth-s0-1a2b3c4d
  fmtlbench score-external out --name "My method" --by "A. Author" --scenario st_mt_1 --seed 1 --client nyud-multi
  fmtlbench score-external out --name "My method" --dataset nyud --data-root DIR
"""


def add(verbs) -> None:
    parser = verbs.add_parser(
        "score-external",
        help="score predictions made elsewhere as a row of leaderboards",
        description="Score a folder of predictions that were made elsewhere, as a row of leaderboards.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("predictions", type=Path, metavar="PREDICTIONS", help="folder of the predictions")
    parser.add_argument("--name", required=True, help="of the method, as tables shall call it")
    parser.add_argument("--by", metavar="WHO", help="who made them, for the note below tables")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--like", type=Path, metavar="RUN", help="in the setting of this run")
    where.add_argument("--scenario", help="in this scenario: a name or a .yml file")
    where.add_argument("--dataset", metavar="NAME", help="on this dataset: a name or its .py or .yml file")
    parser.add_argument("--preset", help="of the setting; default: nano")
    parser.add_argument("--seed", type=int, help="of the setting; default: 0, or the run's")
    parser.add_argument("--rounds", type=int, help="of the setting's runs, instead of the preset's number")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), help="of the setting's runs; default: cpu")
    add_overrides(parser, "of the setting, e.g. data.test_samples.nyud=100; repeatable")
    parser.add_argument("--client", action="append", metavar="ID", help="only this client; repeatable")
    parser.add_argument("--tasks", type=split_names, metavar="NAME,…", help="of a dataset; default: all there are")
    parser.add_argument("--split", metavar="NAME", help="default: global in a scenario, test on a dataset")
    parser.add_argument("--data-root", type=Path, metavar="DIR", help="folder of the real datasets")
    parser.add_argument("--trust", action="store_true", help="score predictions that look wrong, as in another unit")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs"), metavar="DIR", help="default: runs")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    from ..base.files import check_folder

    check_folder(args.output)
    _check(args)

    from ..inference.external_scores import Origin

    origin = Origin(args.predictions, args.name, args.by)

    def judge(found: Findings) -> None:
        refuse_files(found.problems)
        tell_findings(found, args.trust)

    outcome = _on_dataset(origin, args, judge) if args.dataset else _in_setting(origin, args, judge)
    _print(outcome)
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse flags that do not belong together."""
    setting = {"--set": args.assignments or None, "--rounds": args.rounds, "--preset": args.preset}
    setting |= {"--device": args.device, "--dataset-file": args.dataset_file}
    if args.dataset:
        del setting["--dataset-file"]
        wrong, where = {**setting, "--client": args.client, "--seed": args.seed}, "--dataset"
    elif args.like:
        wrong, where = {**setting, "--tasks": args.tasks}, "--like"
    else:
        wrong, where = {"--tasks": args.tasks}, "--scenario"
    for flag, given in wrong.items():
        if given is not None and given != []:
            raise UsageError(f"{flag}: does not go with {where}")


def _in_setting(origin: Origin, args: argparse.Namespace, judge) -> ExternalResult:
    from ..inference.external_scores import score_in_setting
    from ..listeners.bars import Bars
    from ..listeners.json_lines import JsonLines

    config = _find_config(args)
    progress = Bars() if sys.stderr.isatty() else JsonLines()
    try:
        return score_in_setting(
            origin,
            config,
            args.output,
            judge,
            progress,
            clients=args.client,
            split=args.split or "global",
            data_root=args.data_root,
        )
    finally:
        progress.end()


def _find_config(args: argparse.Namespace) -> RunConfig:
    """Return the config of the setting: a run's, or what the flags say."""
    import dataclasses

    from ..config.request import RunRequest
    from ..runs.find import find_run
    from ..runs.folder import RunFolder

    if args.like is None:
        seed, overrides = args.seed or 0, overrides_of(args)
        asked = RunRequest("local", args.scenario, args.preset or "nano", seed, args.rounds, overrides=overrides)
        return asked.config(args.device or "cpu")
    run = RunFolder(find_run(str(args.like)))
    if not run.has_config():
        raise UsageError(f"--like {args.like}: has no config.yaml")
    config = run.run_config()
    return config if args.seed is None else dataclasses.replace(config, seed=args.seed)


def _on_dataset(origin: Origin, args: argparse.Namespace, judge) -> ExternalResult:
    from ..data.datasets import open_split
    from ..inference.external_scores import score_on_dataset
    from .data import find_dataset

    info = find_dataset(args.dataset)
    if info.source == "synth":
        raise UsageError(f"--dataset {args.dataset}: rendered; --scenario or --like says how many images")
    reader = open_split(info, args.split or "test", args.data_root, tasks=args.tasks)
    return score_on_dataset(origin, info, reader, args.output, judge, args.tasks)


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
