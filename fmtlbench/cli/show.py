"""`fmtlbench show`: one scenario, algorithm, preset or config, or the networks of a preset, in full."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import types
import typing

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
    from ..algorithms import ALGORITHMS

    method = ALGORITHMS.resolve(args.name)
    options = describe_options(method)
    presets = {name: given[method.name] for name, given in _preset_options().items() if method.name in given}
    text = inspect.cleandoc(inspect.getmodule(method).__doc__ or method.__doc__ or "")
    if args.json:
        record = {
            "name": method.name,
            "title": method.title,
            "paper": method.paper,
            "about": text,
            "options": options,
            "presets": presets,
        }
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    from ._tables import as_typed, print_records

    roles = ", ".join(method.roles) or "none"
    print(f"{method.name}: {method.title}\npaper: {method.paper}\nroles in probes: {roles}\n\n{text}\n")
    if options:
        print_records([{**option, "default": as_typed(option["default"])} for option in options])
    else:
        print("no options")
    for preset, given in presets.items():
        shown = ", ".join(f"algo.{option}={as_typed(value)}" for option, value in given.items())
        print(f"--preset {preset} starts from {shown}")
    return 0


def describe_options(method: typing.Any) -> list[dict[str, typing.Any]]:
    """Return the options of a method's class: how each is given to --set, its default, type and meaning."""
    hints = typing.get_type_hints(method.Params)
    return [
        {
            "option": f"algo.{f.name}",
            "default": _default(f),
            "type": _type(hints[f.name]),
            "meaning": f.metadata.get("doc", ""),
        }
        for f in dataclasses.fields(method.Params)
    ]


def _preset_options() -> dict[str, dict[str, dict[str, typing.Any]]]:
    from ..config.presets import preset_files, preset_options

    return {name: preset_options(name) for name in preset_files()}


def _default(field: dataclasses.Field) -> typing.Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return "required" if field.default is dataclasses.MISSING else field.default


def _type(hint: typing.Any) -> str:
    if hint is type(None):
        return "null"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(map(_type, typing.get_args(hint)))
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return str(hint) if typing.get_args(hint) else getattr(hint, "__name__", str(hint))
