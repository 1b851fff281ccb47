"""What a scenario file may say, and the clients it describes. A scenario says nothing about model size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from ..data.catalog import DOMAINS
from ..errors import RefusedError, UsageError, nearest
from ..names import check_name
from ..schema import limits, locate

MOST_CLIENTS = 100_000


@dataclass(frozen=True)
class Group:
    """`count` alike clients: the same dataset domain and the same tasks."""

    dataset: str
    tasks: tuple[str, ...]
    count: int = limits(1, low=1, high=MOST_CLIENTS)
    id: str | None = None
    # Clients of one pool share the images of their domain; every pool deals all of them anew. Usually there is one.
    pool: str | None = None
    # Never takes part. After the last round it gets the server's encoder, fits decoders and heads of its own to it on
    # its share of the images, and is scored on the split `unseen`.
    unseen: bool = False


@dataclass(frozen=True)
class Partition:
    """How the training images of one domain are dealt to its clients."""

    kind: Literal["equal", "linear", "dirichlet"] = "equal"
    alpha: float | None = limits(None, low=1e-3, high=1e6, doc="concentration of dirichlet: small is skewed")


@dataclass(frozen=True)
class Scenario:
    """One benchmark setting: who the clients are and how they are judged."""

    name: str
    description: str
    paper: str
    version: int
    clients: tuple[Group, ...]
    partition: Partition = Partition()
    evaluation: tuple[Literal["global", "personal", "unseen"], ...] = ("global",)
    # What the paper's clients exchange, unless federation.exchange says otherwise: decoders one by one, or models.
    exchange: Literal["decoders", "models"] = "decoders"
    parameters: dict[str, Any] = field(default_factory=dict)  # name → number: what the file left open, as it was set

    def parties(self) -> tuple[ClientSpec, ...]:
        """The clients that take part one by one, in file order, each with an id of its own."""
        return tuple(spec for spec in self.everybody() if not spec.unseen)

    def unseen(self) -> tuple[ClientSpec, ...]:
        """The clients that never take part; they are counted on after those that do."""
        return tuple(spec for spec in self.everybody() if spec.unseen)

    def everybody(self) -> tuple[ClientSpec, ...]:
        """All clients in file order, in which they share the images of their dataset."""
        specs = []
        numbers = {False: count(), True: count(sum(group.count for group in self.clients if not group.unseen))}
        for group in self.clients:
            for i in range(group.count):
                base = group.id or _default_id(group)
                name = base if group.count == 1 else f"{base}-{i + 1}"
                place = next(numbers[group.unseen])
                specs.append(ClientSpec(place, name, group.dataset, group.tasks, group.pool, group.unseen))
        return tuple(specs)

    @property
    def least_images(self) -> int:
        """What a client needs: an image to train on, and one to hold out for `personal`."""
        return 2 if "personal" in self.evaluation else 1

    def too_crowded(self, domain: str, clients: int, images: int, chosen: bool) -> str | None:
        """What is wrong where `clients` share a domain's `images` (a number that was `chosen` or is given), or None."""
        needed = clients * self.least_images
        if images >= needed:
            return None
        each = ", two each for `personal`" if self.least_images == 2 else ""
        keys = [f"scenario.{name}" for name in self.parameters if name != "alpha"]
        more = f" or data.train_samples.{domain} of at least {needed}" if chosen else ""
        return (
            f"{clients} {domain} clients, but only {images} images to share{each}; "
            f"set fewer clients ({' or '.join(keys) or 'scenario.clients.<i>.count'}){more}"
        )


@dataclass(frozen=True)
class ClientSpec:
    """One client: its place in the scenario, its name, its data domain and its tasks."""

    index: int
    id: str
    dataset: str
    tasks: tuple[str, ...]
    pool: str | None = None
    unseen: bool = False


def check_images(
    scenario: Scenario, images: Mapping[str, int], chosen: bool, origins: Mapping[str, str], path: str = ""
) -> None:
    """Complain where clients outnumber the training images of their domain; names the largest group of them.

    `chosen`: the numbers of images are the user's or the preset's, not those of a real dataset.
    """
    pools: dict[tuple[str, str | None], dict[int, int]] = {}  # who shares images: index of a group → its clients
    for i, group in enumerate(scenario.clients):
        pools.setdefault((group.dataset, group.pool), {})[i] = group.count
    for (domain, _), counts in pools.items():
        if reason := scenario.too_crowded(domain, sum(counts.values()), images[domain], chosen):
            largest = max(counts, key=counts.get)
            field = f"clients.{largest}.count" if counts[largest] > 1 else "clients"
            where = locate(f"{path}.{field}" if path else field, origins)
            raise RefusedError(f"{where}: {field}: {reason}")


def _default_id(group: Group) -> str:
    return f"{group.dataset}-{group.tasks[0] if len(group.tasks) == 1 else 'multi'}"


def check_client_names(scenario: Scenario, origins: Mapping[str, str], path: str = "") -> None:
    """Refuse ids that cannot name a folder of predictions."""
    for i, group in enumerate(scenario.clients):
        if group.id is not None:
            field = f"clients.{i}.id"
            check_name(group.id, "client", f"{locate(f'{path}.{field}' if path else field, origins)}: {field}")


def check_scenario(scenario: Scenario, origins: Mapping[str, str], path: str = "") -> None:
    """What types alone cannot say; every complaint names file, line and field."""

    def complain(field: str, message: str) -> UsageError:
        here = f"{path}.{field}" if path else field
        return UsageError(f"{locate(here, origins)}: {field}: {message}")

    if not scenario.clients:
        raise complain("clients", "a scenario needs at least one client")
    if (count := sum(group.count for group in scenario.clients)) > MOST_CLIENTS:
        raise complain("clients", f"{count} clients, expected at most {MOST_CLIENTS}")
    if not set(scenario.evaluation) - {"unseen"}:
        raise complain("evaluation", "expected global, personal or both" + " beside unseen" * bool(scenario.evaluation))
    for split, times in Counter(scenario.evaluation).items():
        if times > 1:
            raise complain("evaluation", f"{split!r} is listed twice")
    if not scenario.parties():
        raise complain("clients", "all are unseen; a federation needs a client that takes part")
    if scenario.unseen() and "unseen" not in scenario.evaluation:
        name = scenario.unseen()[0].id
        raise complain("evaluation", f"client {name!r} is unseen, so nothing would score it; add unseen to the list")
    if "unseen" in scenario.evaluation and not scenario.unseen():
        raise complain("evaluation", "no client is unseen; mark one with unseen: true, or leave it out of the list")
    kind, alpha = scenario.partition.kind, scenario.partition.alpha
    if kind == "dirichlet" and alpha is None:
        raise complain("partition", "dirichlet needs alpha, for example {kind: dirichlet, alpha: 0.5}")
    if kind != "dirichlet" and alpha is not None:
        raise complain("partition.alpha", f"is for kind: dirichlet only, and this is {kind}")
    for i, group in enumerate(scenario.clients):
        if group.dataset not in DOMAINS:
            raise complain(f"clients.{i}.dataset", f"no dataset {group.dataset!r}; {nearest(group.dataset, DOMAINS)}")
        if not group.tasks:
            raise complain(f"clients.{i}.tasks", "a client needs at least one task")
        for j, task in enumerate(group.tasks):
            if task not in DOMAINS[group.dataset]:
                raise complain(
                    f"clients.{i}.tasks.{j}",
                    f"{group.dataset} has no task {task!r}; {nearest(task, DOMAINS[group.dataset])}",
                )
            if task in group.tasks[:j]:
                raise complain(f"clients.{i}.tasks.{j}", f"task {task!r} is listed twice")
    check_client_names(scenario, origins, path)
    for name, times in Counter(spec.id for spec in scenario.everybody()).items():
        if times > 1:
            raise complain("clients", f"{times} clients are called {name!r}; give each group an id or a count")
