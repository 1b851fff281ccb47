"""`fmtlbench show preset` and `show config`: what a preset says with all that it extends, and what a run would be."""

from __future__ import annotations

import argparse
import json
import sys

from ._request import add_choice, request_from


def show_preset(args: argparse.Namespace) -> int:
    """Print a preset's values, those that it inherits too, and the line that each stands on."""
    from ..base.located import locate
    from ..config.presets import list_ancestry, name_preset, read_preset
    from ..config.resolve import check_preset
    from ..config.setting import flatten

    for doubt in check_preset(args.name):
        print(doubt, file=sys.stderr)
    tree = read_preset(args.name)
    description = tree.pop("description", "")
    extends = [str(file) for file in list_ancestry(args.name)[1:]]
    if args.json:
        record = {"name": name_preset(args.name), "description": description, "extends": extends, "values": tree}
        print(json.dumps({**record, "lines": {key: locate(tree, key) for key in flatten(tree)}}, indent=2))
        return 0
    from ._tables import as_typed, print_records

    print(f"{name_preset(args.name)}: {description or 'no description'}")
    for file in extends:
        print(f"extends {file}")
    print_records([{"key": k, "value": as_typed(v), "from": locate(tree, k)} for k, v in flatten(tree).items()])
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
