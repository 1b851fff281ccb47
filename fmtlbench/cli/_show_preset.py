"""`fmtlbench show preset` and `show config`: what a preset says with all that it extends, and what a run would be."""

from __future__ import annotations

import argparse
import json
import sys

from ._request import add_choice, request_from


def show_preset(args: argparse.Namespace) -> int:
    """Print a preset's values, those that it inherits too, and the line that each stands on."""
    from ..base.words import as_typed
    from ..bench.catalog import describe_preset
    from ..config.resolve import check_preset
    from ..config.setting import flatten
    from ._tables import print_records

    for doubt in check_preset(args.name):
        print(doubt, file=sys.stderr)
    record = describe_preset(args.name)
    if args.json:
        print(json.dumps(record, indent=2))
        return 0
    print(f"{record['name']}: {record['description'] or 'no description'}")
    for file in record["extends"]:
        print(f"extends {file}")
    values = flatten(record["values"])
    print_records([{"key": key, "value": as_typed(v), "from": record["lines"][key]} for key, v in values.items()])
    return 0


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which run's config."""
    add_choice(parser)
    parser.add_argument("--device", help="auto, cpu, cuda, cuda:<n> or mps; default: auto")


def show_config(args: argparse.Namespace) -> int:
    """Print the config that `run` would have with these flags, as YAML that `run --config` takes."""
    from ..bench.device import find_device
    from ..engine.admit import admit
    from ..runs.store import format_config

    request = request_from(args)
    with request.naming_lines():
        config = request.config(find_device(request.device).kind)
        admit(config)
    print(f"# {config.folder().as_posix()}\n{format_config(config)}", end="")
    return 0
