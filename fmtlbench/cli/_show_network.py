"""`fmtlbench show network`: how large the clients' networks of a preset are, and what they compute."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", default="st_mt_1", help="whose clients; default: st_mt_1")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="assignments",
        help="as for run, e.g. model.architecture=tc; repeatable",
    )  # fmt: skip


def show_network(args: argparse.Namespace) -> int:
    records = _records(args)
    if args.json:
        print(json.dumps(records, indent=2, ensure_ascii=False))
        return 0
    from ._tables import print_records

    print("parameters in millions; GFLOPs of one image, 2 per multiply–accumulate of convolutions, matrix products and")
    print("attention (papers often count 1): `forward` for all tasks, `training` with the backward pass")
    print_records([_row(record) for record in records])
    return 0


def _records(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One per kind of client: the same dataset and the same tasks."""
    import dataclasses

    import torch

    from ..config import parse_overrides, resolve
    from ..exchange import Party
    from ..models.build import build_client_model
    from ..models.complexity import flops, parameters, step_flops

    config = resolve("local", args.scenario, args.name, overrides=parse_overrides(args.assignments))
    # sizes do not depend on the weights
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, pretrained=False, weights=None))
    records, seen = [], set()
    for spec in config.scenario.parties():
        if (spec.dataset, spec.tasks) in seen:
            continue
        seen.add((spec.dataset, spec.tasks))
        with torch.device("meta"):  # shapes are enough
            model = build_client_model(config, Party(spec.index, spec.id, spec.dataset, spec.tasks, samples=1))
        size = config.data.size[spec.dataset]
        by_task = config.model.one_decoder  # the others learn all tasks at once
        steps = step_flops(model, size) if by_task else {"joint": flops(model, size, backward=True)}
        records.append(
            {
                "client": spec.id, "architecture": config.model.architecture, "backbone": config.model.backbone,
                "dataset": spec.dataset, "tasks": list(spec.tasks), "size": list(size), "parameters": parameters(model),
                "flops_per_image": flops(model, size), "flops_per_training_image": steps,
            }
        )  # fmt: skip
    return records


def _row(record: dict[str, Any]) -> dict[str, Any]:
    parts = record["parameters"]
    training, by_task = record["flops_per_training_image"], record["architecture"] == "tc"
    return {
        "client": record["client"],
        "network": f"{record['architecture']}, {record['backbone']}",
        "size": "×".join(map(str, record["size"])),
        **{kind: f"{count / 1e6:.2f}" for kind, count in parts.items()},
        "total": f"{sum(parts.values()) / 1e6:.2f}",
        "forward": f"{record['flops_per_image'] / 1e9:.2f}",
        "training" if not by_task else "training, joint": f"{training['joint'] / 1e9:.2f}",
        **({"training, sequential": f"{training['sequential'] / 1e9:.2f}"} if by_task else {}),
    }
