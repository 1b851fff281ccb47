"""`fmtlbench show scenario`: who has which task on how much data, as a table, as JSON and as a figure."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ._request import add_overrides, overrides_of

if TYPE_CHECKING:
    from ..scenarios import Probe


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="nano", help="whose data sizes, a name or a .yml file; default: nano")
    add_overrides(parser, "as for run: a parameter such as scenario.clients=8, or any other value; repeatable")
    parser.add_argument("--seed", type=int, help="count the shares that are drawn by seed (opens the data)")
    parser.add_argument("-o", "--output", metavar="FIG", help="draw it, too: a .png, .pdf or .svg file")


def show_scenario(args: argparse.Namespace) -> int:
    from ..base.errors import UsageError
    from ..base.schema import plain
    from ..bench.clients import describe_clients
    from ..config.resolve import resolve_without_method
    from ..scenarios import Parameters, read_scenario

    config = resolve_without_method(args.name, args.preset, args.seed or 0, overrides=overrides_of(args))
    scenario = config.scenario
    drawn = scenario.partition.drawn
    if args.output and drawn and args.seed is None:
        raise UsageError(
            f"-o {args.output}: the shares of {scenario.name} are drawn by seed; add --seed N to count them"
        )
    clients = describe_clients(config, args.seed)
    files = _draw(scenario.name, clients, config.data.source, args.output) if args.output else []
    declared = Parameters(*read_scenario(args.name)).declared
    if args.json:
        record = {**plain(scenario), "exchange": config.federation.exchange, "parties": clients}
        print(json.dumps(record, indent=2, ensure_ascii=False))
        return 0
    from ._tables import print_records

    print(f"{scenario.name} (version {scenario.version}): {scenario.description}")
    how = scenario.partition.kind + (f" (alpha {scenario.partition.alpha:g})" if drawn else "")
    print(
        f"{scenario.paper} · partition: {how} · judged on: {', '.join(scenario.evaluation)} "
        f"· exchange: {config.federation.exchange} · images as in preset {config.preset}"
    )
    for name, value in scenario.parameters.items():
        print(f"scenario.{name}={value} (default {declared[name].default}): {declared[name].doc}")
    if any(spec.pool for spec in scenario.everybody()):
        print("each pool deals all images of its dataset anew")
    if scenario.unseen():
        epochs = config.evaluation.unseen_epochs
        print(
            "a client that takes no part gets the server's encoder after the last round and fits decoders and heads of "
            f"its own to it in {epochs} epochs (evaluation.unseen_epochs)"
        )
    if scenario.probe is not None:
        _print_probe(scenario.probe)
    readers = [(config.data.dataset(spec.dataset).readers[0], spec) for spec in scenario.everybody()]
    for said in dict.fromkeys(reader.explain_eligible(spec.tasks) for reader, spec in readers):
        if said:
            print(said)
    print_records([_make_row(client) for client in clients])
    for file in files:
        print(file)
    return 0


def _print_probe(probe: Probe) -> None:
    from ._installed import method_titles

    titles = method_titles()
    print(f"probe: {probe.question}")
    for expectation in probe.expect:
        print(f"expected of a method that {_say_roles(expectation.who)}: {expectation.words(titles, probe.family)}")
    for name, values in probe.family.items():
        print(f"family: scenario.{name} = {', '.join(f'{value:g}' for value in values)}")


def _say_roles(roles: tuple[str, ...]) -> str:
    from ..scenarios import ROLES

    return " or ".join(f"{ROLES[role]} ({role})" for role in roles)


def _make_row(client: dict[str, Any]) -> dict[str, Any]:
    """Return a client's record as the table shows it."""
    shown = {**client, "tasks": ", ".join(client["tasks"])}
    if "held_out" in shown:
        shown["of which held out"] = shown.pop("held_out")
    if "unseen" in shown:
        shown["takes part"] = "no" if shown.pop("unseen") else "yes"
    return {key: "–" if value is None else value for key, value in shown.items()}


def _draw(name: str, clients: list[dict[str, Any]], source: str, output: str) -> list:
    from ..reports.plots.style import save, targets

    targets(output)  # a wrong ending is told before anything is drawn
    from ..base.words import dataset_title
    from ..reports.distribution import distribution

    titles = {client["dataset"]: dataset_title(client["dataset"], source) for client in clients}
    return save(distribution(name, clients, titles), output)
