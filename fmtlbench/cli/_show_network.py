"""`fmtlbench show network`: how large the clients' networks of a preset are, and what they compute."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ._request import add_overrides, overrides_of


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", default="st_mt_1", help="whose clients; default: st_mt_1")
    add_overrides(parser, "as for run, e.g. model.architecture=md; repeatable")


LEGEND = """\
parameters in millions; operations on one image in billions, for all tasks:
MACs: multiply–accumulates of convolutions, matrix products and attention, forward
forward, training: FLOPs, 2 per multiply–accumulate; `training` with the backward pass
Table 1: as FMTL-Bench's counts, forward: MACs of layers, 11 per interpolated value, 2 or 4 per normalised one, 3 per
softmax value; nothing for the products inside attention; a decoder for all tasks once per task, encoder included"""


def show_network(args: argparse.Namespace) -> int:
    from ..bench.clients import describe_networks
    from ..config.resolve import resolve_without_method

    records = describe_networks(resolve_without_method(args.scenario, args.name, overrides=overrides_of(args)))
    if args.json:
        print(json.dumps(records, indent=2, ensure_ascii=False))
        return 0
    from ._tables import print_records

    print(LEGEND)
    print(f"encoder weights: {records[0]['weights']}")
    print_records([_row(record) for record in records])
    return 0


def _row(record: dict[str, Any]) -> dict[str, Any]:
    parts = record["parameters"]
    training, table1 = record["flops_per_training_image"], record["table1_operations_per_image"]
    by_task = "sequential" in training
    return {
        "client": record["client"],
        "network": f"{record['architecture']}, {record['backbone']}",
        "size": "×".join(map(str, record["size"])),
        **{kind: f"{count / 1e6:.2f}" for kind, count in parts.items()},
        "total": f"{sum(parts.values()) / 1e6:.2f}",
        "MACs": f"{record['macs_per_image'] / 1e9:.2f}",
        "forward": f"{record['flops_per_image'] / 1e9:.2f}",
        "training" if not by_task else "training, joint": f"{training['joint'] / 1e9:.2f}",
        **({"training, sequential": f"{training['sequential'] / 1e9:.2f}"} if by_task else {}),
        **({"Table 1, per task": f"{table1['per_task'] / 1e9:.2f}"} if by_task else {}),
        "Table 1, total" if by_task else "Table 1": f"{table1['total'] / 1e9:.2f}",
    }
