"""`fmtlbench show network`: how large the clients' networks of a preset are, and what they compute."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ._request import add_overrides, overrides_of

if TYPE_CHECKING:
    from ..config.run_config import RunConfig


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


def describe_networks(config: RunConfig) -> list[dict[str, Any]]:
    """Describe the network of every kind of client: clients with the same dataset and tasks are one kind."""
    from ..engine.client_models import build_shapes
    from ..exchange import Party
    from ..networks.complexity import flops, parameters, step_flops, table1_operations
    from ..networks.network import network_of
    from ..networks.weights import describe_weights

    weights = describe_weights(config.model)
    records, seen = [], set()
    for spec in config.scenario.everybody():
        if (spec.dataset, spec.tasks) in seen:
            continue
        seen.add((spec.dataset, spec.tasks))
        model = build_shapes(config, Party(spec.index, spec.id, spec.dataset, spec.tasks, samples=1))
        size = config.data.size[spec.dataset]
        by_task = network_of(config.model).one_decoder  # the others learn all tasks at once
        steps = step_flops(model, size) if by_task else {"joint": flops(model, size, backward=True)}
        forward = flops(model, size)
        records.append(
            {
                "client": spec.id,
                "architecture": config.model.architecture,
                "backbone": config.model.backbone,
                "dataset": spec.dataset,
                "tasks": list(spec.tasks),
                "size": list(size),
                "weights": weights,
                "parameters": parameters(model),
                "macs_per_image": forward // 2,
                "flops_per_image": forward,
                "flops_per_training_image": steps,
                "table1_operations_per_image": _count_as_table1(model, size, by_task, table1_operations),
            }
        )
    return records


def _count_as_table1(model: Any, size: tuple[int, int], by_task: bool, count: Any) -> dict[str, int]:
    if not by_task:
        return {"total": count(model, size)}
    per_task = count(model, size, model.tasks[:1])  # every task costs the same
    return {"per_task": per_task, "total": len(model.tasks) * per_task}


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
