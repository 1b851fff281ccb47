"""What the clients of a config have and compute: their share of the images, and their networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.words import dataset_title

if TYPE_CHECKING:
    from ..config.run_config import RunConfig
    from ..scenarios import ClientSpec, Partition, Probe


def describe_clients(config: RunConfig, seed: int | None) -> list[dict[str, Any]]:
    """Return one record per client, with its share of its dataset; images is None where it depends on the seed."""
    from ..data.views import held_out

    specs = config.scenario.everybody()
    groups: dict[tuple[str, str | None], list[ClientSpec]] = {}
    for spec in specs:
        groups.setdefault((spec.dataset, spec.pool), []).append(spec)
    shares = {}
    for (domain, pool), members in groups.items():
        sizes = _count_images(config, domain, pool, members, seed)
        words = _say_shares(config.scenario.partition, len(members))
        shares |= {spec.index: pair for spec, pair in zip(members, zip(words, sizes))}
    records = []
    for spec in specs:
        share, images = shares[spec.index]
        record = {"client": spec.id, "dataset": spec.dataset, "tasks": list(spec.tasks), "share": share}
        if spec.pool:
            record["share"] += f" of pool {spec.pool}"
        if spec.images is not None:
            record["share"] += f", at most {spec.images}"
            images = None if images is None else min(images, spec.images)
        record["images"] = images
        if "personal" in config.scenario.evaluation:
            record["held_out"] = None if images is None or spec.unseen else held_out(config, images)
        if config.scenario.unseen():
            record["unseen"] = spec.unseen
        if any(other.relabel for other in specs):
            record["labels"] = ", ".join(f"{task}: {rule}" for task, rule in spec.relabel.items()) or "the dataset's"
        if not all(other.always_there for other in specs):
            record["there"] = _say_attendance(spec)
        records.append(record)
    return records


def _count_images(
    config: RunConfig, domain: str, pool: str | None, members: list[ClientSpec], seed: int | None
) -> list[int] | list[None]:
    from ..data.partitions import PARTITIONS

    rule, images = PARTITIONS[config.scenario.partition.kind](), config.data.train_images(domain)
    known = None if images is None else rule.sizes(images, len(members), config.scenario.least_images)
    if known is not None:
        return known
    if seed is None:
        return [None] * len(members)
    from ..data.open import open_split
    from ..data.views import shares_of

    dataset = open_split(config.data, domain, "train")
    return [len(share) for share in shares_of(config, domain, pool, dataset, len(members))]


def _say_attendance(spec: ClientSpec) -> str:
    words = [f"after {spec.joins:.0%} of the rounds"] * bool(spec.joins)
    words += [f"in {spec.presence:.0%} of the rounds, by chance"] * (spec.presence < 1)
    return ", ".join(words) or "always"


def _say_shares(partition: Partition, clients: int) -> list[str]:
    if clients == 1:
        return ["all"]
    if partition.drawn:
        return ["drawn by seed"] * clients
    if partition.kind == "linear":
        return [f"{i}/{clients * (clients + 1) // 2}" for i in range(1, clients + 1)]
    return [f"1/{clients}"] * clients


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


def draw_clients(name: str, clients: Sequence[Mapping[str, Any]], source: str, output: str | Path) -> list[Path]:
    """Draw which client of a scenario holds how much of which task, into a file or two; return them."""
    from ..reports.figure_style import save, targets
    from ..reports.plots.distribution import distribution

    targets(output)  # a wrong ending is told before anything is drawn
    titles = {client["dataset"]: dataset_title(client["dataset"], source) for client in clients}
    return save(distribution(name, clients, titles), output)


def explain_scenario(config: RunConfig, given: str) -> list[str]:
    """Say in a few lines what a config's scenario, given by name or file, asks of its clients."""
    from ..scenarios import Parameters, read_scenario

    scenario, preset = config.scenario, config.preset
    declared = Parameters(*read_scenario(given)).declared
    how = scenario.partition.kind + (f" (alpha {scenario.partition.alpha:g})" if scenario.partition.drawn else "")
    lines = [
        f"{scenario.name} (version {scenario.version}): {scenario.description}",
        f"{scenario.paper} · partition: {how} · judged on: {', '.join(scenario.evaluation)} "
        f"· exchange: {config.federation.exchange} · images as in preset {preset}",
    ]
    for name, value in scenario.parameters.items():
        lines.append(f"scenario.{name}={value} (default {declared[name].default}): {declared[name].doc}")
    if any(spec.pool for spec in scenario.everybody()):
        lines.append("each pool deals all images of its dataset anew")
    if scenario.unseen():
        epochs = config.evaluation.unseen_epochs
        lines.append(
            "a client that takes no part gets the server's encoder after the last round and fits decoders and heads of "
            f"its own to it in {epochs} epochs (evaluation.unseen_epochs)"
        )
    if scenario.probe is not None:
        lines += _explain_probe(scenario.probe)
    readers = [(config.data.dataset(spec.dataset).readers[0], spec) for spec in scenario.everybody()]
    return lines + [line for line in dict.fromkeys(r.explain_eligible(spec.tasks) for r, spec in readers) if line]


def _explain_probe(probe: Probe) -> list[str]:
    from ..config.installed import method_titles
    from ..scenarios import ROLES

    titles = method_titles()
    lines = [f"probe: {probe.question}"]
    for expectation in probe.expect:
        roles = " or ".join(f"{ROLES[role]} ({role})" for role in expectation.who)
        lines.append(f"expected of a method that {roles}: {expectation.words(titles, probe.family)}")
    for name, values in probe.family.items():
        lines.append(f"family: scenario.{name} = {', '.join(f'{value:g}' for value in values)}")
    return lines
