"""Who gets which images: seeded, disjoint partitions, as the views a client trains and is tested on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..config import RunConfig
from ..errors import UsageError
from ..exchange import Party
from ..seeds import stream


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


def equal_parts(count: int, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Deal `count` images evenly and at random; sizes differ by one at most."""
    return [np.sort(part) for part in np.array_split(rng.permutation(count), clients)]


PARTITIONS: dict[str, Callable[[int, int, np.random.Generator], list[np.ndarray]]] = {"equal": equal_parts}


def client_data(config: RunConfig, datasets: dict[tuple[str, str], Any]) -> list[ClientData]:
    """The views of every client; `datasets` maps (domain, split) to an open dataset."""
    specs = config.scenario.parties()
    shares: dict[int, np.ndarray] = {}
    for domain in dict.fromkeys(spec.dataset for spec in specs):
        members = [spec.index for spec in specs if spec.dataset == domain]
        count = len(datasets[domain, "train"])
        if count < len(members):
            raise UsageError(
                f"{config.scenario.name}: {len(members)} {domain} clients, but only {count} images to share"
            )
        deal = PARTITIONS[config.scenario.partition.kind]
        shares |= zip(members, deal(count, len(members), stream(config.seed, "partition", domain)))
    return [_views(config, spec.dataset, spec.id, shares[spec.index], datasets) for spec in specs]


def _views(config: RunConfig, domain: str, client: str, share: np.ndarray, datasets: dict) -> ClientData:
    train, test = datasets[domain, "train"], datasets[domain, "test"]
    tests = {}
    if "global" in config.scenario.evaluation:
        tests["global"] = View(test, np.arange(len(test)))
    if "personal" in config.scenario.evaluation:
        held = max(1, round(config.data.personal_fraction * len(share)))
        if held >= len(share):
            raise UsageError(f"client {client!r} has {len(share)} images: too few to hold some out for `personal`")
        order = stream(config.seed, "personal", client).permutation(len(share))
        tests["personal"] = View(train, np.sort(share[order[:held]]))
        share = np.sort(share[order[held:]])
    return ClientData(View(train, share), tests)


def parties(config: RunConfig, data: list[ClientData]) -> list[Party]:
    """The clients as the server knows them."""
    specs = config.scenario.parties()
    return [Party(s.index, s.id, s.dataset, s.tasks, len(d.train)) for s, d in zip(specs, data, strict=True)]
