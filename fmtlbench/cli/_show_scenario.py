"""`fmtlbench show scenario`: who has which task on how much data, as a table, as JSON and as a figure."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ._request import add_overrides, overrides_of


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="nano", help="whose data sizes, a name or a .yml file; default: nano")
    add_overrides(parser, "as for run: a parameter such as scenario.clients=8, or any other value; repeatable")
    parser.add_argument("--seed", type=int, help="count the shares that are drawn by seed (opens the data)")
    parser.add_argument("-o", "--output", metavar="FIG", help="draw it, too: a .png, .pdf or .svg file")


def show_scenario(args: argparse.Namespace) -> int:
    from ..base.errors import UsageError
    from ..base.schema import plain
    from ..bench.clients import describe_clients, draw_clients, explain_scenario
    from ..config.resolve import resolve_without_method

    config = resolve_without_method(args.name, args.preset, args.seed or 0, overrides=overrides_of(args))
    scenario = config.scenario
    if args.output and scenario.partition.drawn and args.seed is None:
        raise UsageError(
            f"-o {args.output}: the shares of {scenario.name} are drawn by seed; add --seed N to count them"
        )
    clients = describe_clients(config, args.seed)
    files = draw_clients(scenario.name, clients, config.data.source, args.output) if args.output else []
    lines = explain_scenario(config, args.name)
    if args.json:
        record = {**plain(scenario), "exchange": config.federation.exchange, "parties": clients}
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    from ._tables import print_records

    print("\n".join(lines))
    print_records([_make_row(client) for client in clients])
    for file in files:
        print(file)
    return 0


def _make_row(client: dict[str, Any]) -> dict[str, Any]:
    """Return a client's record as the table shows it."""
    shown = {**client, "tasks": ", ".join(client["tasks"])}
    if "held_out" in shown:
        shown["of which held out"] = shown.pop("held_out")
    if "unseen" in shown:
        shown["takes part"] = "no" if shown.pop("unseen") else "yes"
    return {key: "–" if value is None else value for key, value in shown.items()}
