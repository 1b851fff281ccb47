"""The flags that say where and how runs are done, for `run` and `bench` alike, and the request that `run`'s make."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from ..base.errors import UsageError
from ..config.keep import KEEP, check_keep, choose_keep
from ..config.request import EXECUTORS, REUSES, SAME_CODE, RunRequest

CIRCUMSTANCES = ("device", "data_root", "out", "reuse", "keep", "energy", "country", "region", "log", "executor")


def add_circumstances(parser: argparse.ArgumentParser, out: str = "runs") -> None:
    """Add the flags; `out` is the folder of the runs where none is given."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:<n> or mps; default: auto")
    parser.add_argument("--data-root", help="folder of the real datasets (the embedded data need none)")
    parser.add_argument("--out", default=out, help=f"folder of the runs; default: {out}")
    parser.add_argument(
        "--keep",
        type=_read_keep,
        choices=KEEP,
        help="what stays of a finished run's networks: those of the last round, or none; "
        "default: last, or keep in the user's config file",
    )
    parser.add_argument(
        "--reuse",
        choices=REUSES,
        default=SAME_CODE,
        help="which earlier runs of the same config are shown or continued: made by the same code, or by any; "
        f"default: {SAME_CODE}",
    )
    parser.add_argument(
        "--energy", action=argparse.BooleanOptionalAction, help="measure energy and carbon, or do not; default: measure"
    )
    parser.add_argument(
        "--country", metavar="ISO3", help="whose electricity, e.g. FRA, for the carbon figure; default: world average"
    )
    parser.add_argument("--region", help="of that country (states, provinces, bidding zones; where there are figures)")
    parser.add_argument(
        "--log",
        default="",
        metavar="NAME[,NAME…]",
        help="tell others too: tensorboard, wandb, … (fmtlbench list listeners) or a .py file",
    )


def _read_keep(word: str) -> str:
    """Return the word after --keep if it is one of today's."""
    try:
        return check_keep(word)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_executor(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add the flag that says where clients live; `default` where none is given."""
    parser.add_argument(
        "--executor",
        choices=EXECUTORS,
        default=default,
        help="where the clients of a run live: all in its process, or in those of a Ray cluster; default: serial",
    )


def add_ray_address(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says which cluster."""
    parser.add_argument(
        "--ray-address", metavar="HOST:PORT", help="of a running cluster (or auto); default: one of this machine"
    )


def add_overrides(parser: argparse.ArgumentParser | argparse._ArgumentGroup, meaning: str) -> None:
    """Add the flags that change single values of the config and bring datasets; `meaning` explains --set."""
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="assignments", help=meaning)
    parser.add_argument(
        "--dataset-file",
        action="append",
        default=[],
        metavar="FILE",
        help="a dataset of your own: a .py file with its reader, or a folder's dataset.yml; repeatable",
    )


def overrides_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the config values that the flags of `add_overrides` give, by dotted name."""
    from ..config.resolve import parse_overrides
    from ..config.run_file import dataset_files

    return {**dataset_files(args.dataset_file), **parse_overrides(args.assignments)}


def request_template(args: argparse.Namespace) -> RunRequest:
    """Make a request without method and scenario that says where and how runs are done; refuse unknown listeners."""
    from ..listeners import find_listeners

    request = RunRequest("", "", **{name: getattr(args, name) for name in CIRCUMSTANCES})
    find_listeners(request.log)
    choose_keep(request.keep)
    return request


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which run; those that are not given are None, so that a file's values hold."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="YAML with the words of these flags (algo: fedavg, set: {train.lr: 1e-3}, …), or a run's config.yaml; "
        "flags given beside it take the place of its values",
    )
    parser.add_argument(
        "--algo",
        help="a name (fmtlbench list algorithms) or a .py file; NAME+WEIGHTING: with one of fmtlbench list weightings",
    )
    parser.add_argument("--scenario", help="a name (fmtlbench list scenarios) or a .yml file")
    parser.add_argument("--preset", help="how big: a name (fmtlbench list presets) or a .yml file; default: nano")
    parser.add_argument("--seed", type=int, help="default: 0")
    parser.add_argument("--rounds", type=int, help="instead of the preset's number")
    add_overrides(parser, "override one value, e.g. train.lr=1e-3 or algo.c=0.2; repeatable")


def request_from(args: argparse.Namespace) -> RunRequest:
    """Make the request that the flags of `run` ask for; a flag that is None was not given."""
    from ..config.run_file import ask_for_run

    names = [f.name for f in dataclasses.fields(RunRequest) if f.name not in ("overrides", "lines")]
    given = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    return ask_for_run(args.config, given, overrides_of(args))
