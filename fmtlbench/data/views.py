"""Who gets which images: seeded, disjoint partitions, as the views a client trains and is tested on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import RunConfig
from ..errors import UsageError
from ..exchange import Party
from ..scenarios import ClientSpec
from ..seeds import stream
from .partitions import deal


@dataclass(frozen=True)
class View:
    """Some images of a dataset."""

    dataset: Any
    indices: np.ndarray

    def __len__(self) -> int:
        return len(self.indices)


@dataclass(frozen=True)
class ClientData:
    """What one client trains on, and what it is judged on, by split name."""

    train: View
    tests: dict[str, View]


def client_data(config: RunConfig, datasets: dict[tuple[str, str], Any]) -> list[ClientData]:
    """The views of every client; `datasets` maps (domain, split) to an open dataset."""
    specs = config.scenario.parties()
    shares: dict[int, np.ndarray] = {}
    for domain, pool in dict.fromkeys((spec.dataset, spec.pool) for spec in specs):
        members = [spec.index for spec in specs if (spec.dataset, spec.pool) == (domain, pool)]
        shares |= zip(members, shares_of(config, domain, pool, datasets[domain, "train"], len(members)))
    return [_views(config, spec, shares[spec.index], datasets) for spec in specs]


def shares_of(config: RunConfig, domain: str, pool: str | None, dataset: Any, clients: int) -> list[np.ndarray]:
    """The image numbers of the clients that share one domain."""
    check_enough(config, domain, clients, len(dataset))
    rng = stream(config.seed, "partition", domain, *([pool] if pool else []))
    return deal(config.scenario.partition, dataset, clients, rng, least_images(config))


def held_out(config: RunConfig, images: int) -> int:
    """How many of a client's images are kept for `personal`."""
    return max(1, round(config.data.personal_fraction * images))


def least_images(config: RunConfig) -> int:
    """What a client needs: an image to train on, and one to hold out for `personal`."""
    return 2 if "personal" in config.scenario.evaluation else 1


def check_enough(config: RunConfig, domain: str, clients: int, images: int) -> None:
    """Complain where the clients of a domain outnumber its images."""
    needed = clients * least_images(config)
    if images >= needed:
        return
    each = ", two each for `personal`" if least_images(config) == 2 else ""
    keys = [f"scenario.{name}" for name in config.scenario.parameters if name != "alpha"]
    fewer = f"fewer clients ({' or '.join(keys) or 'scenario.clients.<i>.count'})"
    more = f"data.train_samples.{domain} of at least {needed}"
    raise UsageError(
        f"{config.scenario.name}: {clients} {domain} clients, but only {images} images to share{each}; "
        f"set {fewer}{f' or {more}' if config.data.train_samples else ''}"
    )


def _views(config: RunConfig, spec: ClientSpec, share: np.ndarray, datasets: dict) -> ClientData:
    train, test = datasets[spec.dataset, "train"], datasets[spec.dataset, "test"]
    share = share[np.isin(share, _eligible(train, spec))]
    tests = {}
    if "global" in config.scenario.evaluation:
        tests["global"] = View(test, _eligible(test, spec))
        if not len(tests["global"]):
            raise UsageError(f"client {spec.id!r}: no test image of {spec.dataset} is usable for {_tasks(spec)}")
    if len(share) < least_images(config):
        raise UsageError(
            f"client {spec.id!r} has {len(share)} images usable for {_tasks(spec)}, needs {least_images(config)}; "
            f"set more images or fewer clients of {spec.dataset}"
        )
    if "personal" in config.scenario.evaluation:
        held = held_out(config, len(share))
        order = stream(config.seed, "personal", spec.id).permutation(len(share))
        tests["personal"] = View(train, np.sort(share[order[:held]]))
        share = np.sort(share[order[held:]])
    return ClientData(View(train, share), tests)


def _eligible(dataset: Any, spec: ClientSpec) -> np.ndarray:
    """The images a client with exactly these tasks can use; a dataset without an opinion gives all."""
    choose = getattr(dataset, "eligible", None)
    chosen = choose(spec.tasks) if choose else None
    return np.arange(len(dataset)) if chosen is None else np.sort(chosen)


def _tasks(spec: ClientSpec) -> str:
    return " + ".join(spec.tasks)


def parties(config: RunConfig, data: list[ClientData]) -> list[Party]:
    """The clients as the server knows them."""
    specs = config.scenario.parties()
    merged = config.federation.exchange == "models" or config.model.architecture == "tc"
    return [Party(s.index, s.id, s.dataset, s.tasks, len(d.train), merged) for s, d in zip(specs, data, strict=True)]
