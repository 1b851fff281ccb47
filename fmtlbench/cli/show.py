"""`fmtlbench show`: one scenario, algorithm, preset or config, or the networks of a preset, in full."""

from __future__ import annotations

import argparse
import json

from . import _show_network, _show_preset, _show_scenario


def add(verbs) -> None:
    parser = verbs.add_parser("show", help="one scenario, algorithm, preset, network or config in full")
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    scenario = kinds.add_parser("scenario", help="who has which task on how much data")
    _show_scenario.add_options(scenario)
    algorithm = kinds.add_parser("algorithm", help="what a method does, its options and defaults")
    network = kinds.add_parser("network", help="sizes and operations of the networks of a preset")
    _show_network.add_options(network)
    preset = kinds.add_parser("preset", help="what a preset says, with all that it extends")
    config = kinds.add_parser("config", help="the config that a run would have, as YAML that run --config takes")
    _show_preset.add_config_options(config)
    config.set_defaults(func=_show_preset.show_config)
    for one in (scenario, algorithm, preset):
        one.add_argument("name", help="a name, or a file of your own")
    network.add_argument("name", metavar="preset", help="a name of `fmtlbench list presets`, or a .yml file")
    for one, handler in (
        (scenario, _show_scenario.show_scenario),
        (algorithm, show_algorithm),
        (preset, _show_preset.show_preset),
        (network, _show_network.show_network),
    ):
        one.add_argument("--json", action="store_true", help="machine-readable")
        one.set_defaults(func=handler)


def show_algorithm(args: argparse.Namespace) -> int:
    from ..base.words import as_typed
    from ..bench.catalog import describe_algorithm
    from ._tables import print_records

    record = describe_algorithm(args.name)
    roles = ", ".join(record.pop("roles")) or "none"
    if args.json:
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    print(f"{record['name']}: {record['title']}\npaper: {record['paper']}\nroles in probes: {roles}\n")
    print(f"{record['about']}\n")
    if record["options"]:
        print_records([{**option, "default": as_typed(option["default"])} for option in record["options"]])
    else:
        print("no options")
    for preset, given in record["presets"].items():
        shown = ", ".join(f"algo.{option}={as_typed(value)}" for option, value in given.items())
        print(f"--preset {preset} starts from {shown}")
    return 0
