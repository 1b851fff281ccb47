"""What a scenario file may say, and the clients it describes. A scenario says nothing about model size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from ..base.errors import RefusedError, UsageError, nearest
from ..base.located import locate
from ..base.names import check_name
from ..base.schema import limits
from ..data.datasets import domains
from ..data.partitions import PARTITIONS
from ..tasks import TASKS
from ._probe import Probe, check_probe

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
    # Each client holds this many of the tasks above. The first client holds the first ones of the list; every further
    # client starts later in the list (which continues at its start), so that it shares the part `overlap` of its tasks
    # with the client before it.
    hold: int | None = limits(None, low=1)
    overlap: float = limits(0.0, low=0, high=1)
    images: int | None = limits(None, low=1, doc="keep at most so many of its share")
    # Its labels are not the dataset's: task → name of a rule of data/relabel.py, in training and in scoring. The server
    # is not told.
    relabel: dict[str, str] = field(default_factory=dict)
    joins: float = limits(0.0, low=0, below=1, doc="this part of the rounds goes by before it comes")
    presence: float = limits(1.0, above=0, high=1, doc="the chance of being there in a round, drawn by seed")
    # Never takes part. After the last round it gets the server's encoder, fits decoders and heads of its own to it on
    # its share of the images, and is scored on the split `unseen`.
    unseen: bool = False


@dataclass(frozen=True)
class Partition:
    """How the training images of one domain are dealt to its clients."""

    kind: str = "equal"  # a name of PARTITIONS; in a file also the path of a .py file with one
    alpha: float | None = limits(
        None, low=1e-3, high=1e6, doc="concentration of dirichlet and quantity: small is skewed"
    )

    @property
    def drawn(self) -> bool:
        """Whether the seed decides how many images a client gets."""
        return PARTITIONS[self.kind].takes_alpha


@dataclass(frozen=True)
class Scenario:
    """One benchmark setting: who the clients are and how they are judged."""

    name: str
    description: str = limits(role="neutral")
    paper: str = limits(role="neutral")
    version: int
    clients: tuple[Group, ...]
    partition: Partition = Partition()
    evaluation: tuple[Literal["global", "personal", "unseen"], ...] = ("global",)
    # What the paper's clients exchange, unless federation.exchange says otherwise: decoders one by one, or models.
    # `federation.exchange` is what the run used.
    exchange: Literal["decoders", "models"] = limits("decoders", role="neutral")
    parameters: dict[str, Any] = field(default_factory=dict)  # name → number: what the file left open, as it was set
    # What is known of the answer here, if anything is: used after the runs, to judge them.
    probe: Probe | None = limits(None, role="neutral")
    datasets: tuple[str, ...] = limits(
        (), role="neutral"
    )  # files that bring its datasets, .py or .yml, beside the scenario's own file

    def parties(self) -> tuple[ClientSpec, ...]:
        """Return the clients that take part one by one, in file order, each with an id of its own."""
        return tuple(spec for spec in self.everybody() if not spec.unseen)

    def unseen(self) -> tuple[ClientSpec, ...]:
        """Return the clients that never take part; their numbers follow those of the clients that do."""
        return tuple(spec for spec in self.everybody() if spec.unseen)

    def everybody(self) -> tuple[ClientSpec, ...]:
        """Return all clients in file order, which is the order in which they get the images of their dataset."""
        specs = []
        numbers = {False: count(), True: count(sum(group.count for group in self.clients if not group.unseen))}
        for group in self.clients:
            for i in range(group.count):
                base = group.id or _make_id(group)
                name = base if group.count == 1 else f"{base}-{i + 1}"
                place, tasks = next(numbers[group.unseen]), held_tasks(group, i)
                specs.append(ClientSpec(place, name, group.dataset, tasks, *(getattr(group, key) for key in OF_CLIENT)))
        return tuple(specs)

    @property
    def domains(self) -> set[str]:
        """The datasets of all clients, as the scenario calls them."""
        return {group.dataset for group in self.clients}

    def members(self) -> dict[float | None, dict[str, Any]]:
        """Return the override for each value of a probe's family, by value; {None: {}} if there is no family."""
        if self.probe is None or not self.probe.family:
            return {None: {}}
        name = self.probe.parameter
        kind = type(self.parameters[name])  # whole numbers stay whole
        return {value: {f"scenario.{name}": kind(value)} for value in self.probe.family[name]}

    @property
    def least_images(self) -> int:
        """What a client needs: an image to train on, and one to hold out for `personal`."""
        return 2 if "personal" in self.evaluation else 1

    def too_crowded(self, domain: str, clients: int, images: int, chosen: bool) -> str | None:
        """Return why `clients` cannot share a domain's `images`, or None if they can.

        `chosen`: the number of images is the user's or the preset's, not that of a real dataset.
        """
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
    # As its group has it.
    pool: str | None = None
    unseen: bool = False
    images: int | None = None
    relabel: Mapping[str, str] = field(default_factory=dict)
    joins: float = 0.0
    presence: float = 1.0

    @property
    def always_there(self) -> bool:
        """Whether it is there in every round."""
        return self.joins == 0 and self.presence == 1


OF_CLIENT = ("pool", "unseen", "images", "relabel", "joins", "presence")  # what a client has from its group, in order


def held_tasks(group: Group, number: int) -> tuple[str, ...]:
    """Return the tasks of client `number` of a group: all, or `hold` of them from its place in the list on."""
    if group.hold is None:
        return group.tasks
    step = round(group.hold * (1 - group.overlap))
    return tuple(group.tasks[(number * step + j) % len(group.tasks)] for j in range(group.hold))


def check_images(scenario: Scenario, images: Mapping[str, int | None], chosen: bool, said: Mapping[str, Any]) -> None:
    """Refuse more clients than a domain has training images; the error names the largest group of them.

    `chosen`: the numbers of images are the user's or the preset's, not those of a real dataset. `said`: what the
    scenario was made of.
    """
    pools: dict[tuple[str, str | None], dict[int, int]] = {}  # who shares images: index of a group → its clients
    for i, group in enumerate(scenario.clients):
        pools.setdefault((group.dataset, group.pool), {})[i] = group.count
    for (domain, _), counts in pools.items():
        if images[domain] is None:  # it will be known when the data are open
            continue
        if reason := scenario.too_crowded(domain, sum(counts.values()), images[domain], chosen):
            largest = max(counts, key=counts.get)
            field = f"clients.{largest}.count" if counts[largest] > 1 else "clients"
            raise RefusedError(f"{locate(said, field)}: {field}: {reason}")


def _make_id(group: Group) -> str:
    return f"{group.dataset}-{group.tasks[0] if len(group.tasks) == 1 else 'multi'}"


def check_client_names(scenario: Scenario, said: Mapping[str, Any]) -> None:
    """Refuse ids that cannot name a folder of predictions; `said` is what the scenario was made of."""
    for i, group in enumerate(scenario.clients):
        if group.id is not None:
            field = f"clients.{i}.id"
            check_name(group.id, "client", f"{locate(said, field)}: {field}")


def check_scenario(scenario: Scenario, said: Mapping[str, Any], files: Sequence[str] = ()) -> None:
    """Check what the types of the fields do not; every error names file, line and field.

    Args:
        scenario: as its file and overrides have it.
        said: what it was made of.
        files: that bring further datasets.
    """

    def complain(field: str, message: str) -> UsageError:
        return UsageError(f"{locate(said, field)}: {field}: {message}")

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
    if kind not in PARTITIONS:
        raise complain("partition.kind", f"no partition {kind!r}; {nearest(kind, PARTITIONS)}")
    if scenario.partition.drawn and alpha is None:
        raise complain("partition", f"{kind} needs alpha, for example {{kind: {kind}, alpha: 0.5}}")
    if not scenario.partition.drawn and alpha is not None:
        drawn = " and ".join(name for name, rule in PARTITIONS.items() if rule.takes_alpha)
        raise complain("partition.alpha", f"is for kind: {drawn} only, and this is {kind}")
    if all(spec.joins for spec in scenario.parties()):
        raise complain("clients", "nobody is there in the first round; a client without `joins` must be")
    known = domains((*scenario.datasets, *files))
    for i, group in enumerate(scenario.clients):
        if group.dataset not in known:
            raise complain(
                f"clients.{i}.dataset",
                f"no dataset {group.dataset!r}; {nearest(group.dataset, known)}; a dataset of your own comes with "
                "--dataset-file, or the scenario names its file: datasets: [my_data.py]",
            )
        if not group.tasks:
            raise complain(f"clients.{i}.tasks", "a client needs at least one task")
        offered = known[group.dataset].all_tasks()
        for j, task in enumerate(group.tasks):
            if task not in offered:
                raise complain(
                    f"clients.{i}.tasks.{j}", f"{group.dataset} has no task {task!r}; {nearest(task, offered)}"
                )
            if TASKS[task].kind.outputs is None and task not in known[group.dataset].class_names:
                raise complain(
                    f"clients.{i}.tasks.{j}", f"{task!r} has classes, and {group.dataset} does not say which they are"
                )
            if task in group.tasks[:j]:
                raise complain(f"clients.{i}.tasks.{j}", f"task {task!r} is listed twice")
        if group.hold is not None and group.hold > len(group.tasks):
            raise complain(f"clients.{i}.hold", f"{group.hold} of {len(group.tasks)} tasks; expected at most as many")
        if group.hold is None and group.overlap:
            raise complain(f"clients.{i}.overlap", "is for clients that hold some of the tasks; say how many: hold")
        if group.unseen and (group.joins or group.presence < 1):
            raise complain(f"clients.{i}.unseen", "takes no part, so `joins` and `presence` have no meaning")
        if group.images is not None and group.images < scenario.least_images:
            raise complain(f"clients.{i}.images", f"expected at least {scenario.least_images}, got {group.images}")
        for task, rule in group.relabel.items():
            where = f"clients.{i}.relabel.{task}"
            if task not in group.tasks:
                raise complain(where, f"the client has no such task; {nearest(task, group.tasks)}")
            if rule not in (fitting := TASKS[task].kind.relabelling):
                known = nearest(rule, fitting) if fitting else "no rule fits it"
                raise complain(where, f"no rule {rule!r} for {task}; {known}")
    check_client_names(scenario, said)
    for name, times in Counter(spec.id for spec in scenario.everybody()).items():
        if times > 1:
            raise complain("clients", f"{times} clients are called {name!r}; give each group an id or a count")
    if scenario.probe is not None:
        check_probe(scenario.probe, [spec.id for spec in scenario.parties()], scenario.parameters, complain)
