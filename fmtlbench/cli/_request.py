"""The flags that say where and how runs are done, for `run` and `bench` alike, and the request that `run`'s make."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from ..request import RunRequest

CIRCUMSTANCES = ("device", "data_root", "out", "energy", "country", "region", "log")


def add_circumstances(parser: argparse.ArgumentParser, out: str = "runs") -> None:
    """Add the flags; `out` is the folder of the runs where none is given."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:<n> or mps; default: auto")
    parser.add_argument("--data-root", help="folder of the real datasets (the embedded data need none)")
    parser.add_argument("--out", default=out, help=f"folder of the runs; default: {out}")
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


def add_ray_address(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says which cluster."""
    parser.add_argument(
        "--ray-address", metavar="HOST:PORT", help="of a running cluster (or auto); default: one of this machine"
    )


def add_overrides(parser: argparse.ArgumentParser, meaning: str) -> None:
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
    from ..datasets import dataset_of_file
    from ..resolving import parse_overrides

    files = {dataset_of_file(path).domain: str(Path(path).absolute()) for path in args.dataset_file}
    return {**({"data.files": files} if files else {}), **parse_overrides(args.assignments)}


def request_template(args: argparse.Namespace) -> RunRequest:
    """Make a request without method and scenario that says where and how runs are done; refuse unknown listeners."""
    from ..listeners import find_listeners

    request = RunRequest("", "", **{name: getattr(args, name) for name in CIRCUMSTANCES})
    find_listeners(request.log)
    return request


def request_from(args: argparse.Namespace) -> RunRequest:
    """Make the request that the flags of `run` ask for."""
    flags = {f.name: getattr(args, f.name) for f in dataclasses.fields(RunRequest) if f.name != "overrides"}
    return RunRequest(**flags, overrides=overrides_of(args))
