"""Divide the images among the clients: seeded, disjoint partitions, given as views for training and testing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import UsageError
from ..exchange import Party
from ..networks.network import network_of
from .datasets import Reader
from .partitions import deal

if TYPE_CHECKING:
    from ..config.run_config import RunConfig
    from ..scenarios import ClientSpec
from ..base.seeds import stream
from ..tasks import in_order
from .label_noise import draw_label_sources


@dataclass(frozen=True)
class View:
    """Some images of a dataset, with what makes the labels of the client that uses them differ from the dataset's."""

    dataset: Reader
    indices: np.ndarray
    relabel: Mapping[str, str] = field(default_factory=dict)  # task → rule of relabel.py
    labels_of: Mapping[int, int] = field(default_factory=dict)  # image → the other image whose labels it carries

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def classes(self) -> Mapping[str, int]:
        """Task → number of classes."""
        return self.dataset.info.classes


@dataclass(frozen=True)
class ClientData:
    """The images one client trains on, and those it is tested on by split name."""

    train: View
    tests: dict[str, View]


def client_data(config: RunConfig, datasets: Mapping[tuple[str, str], Reader]) -> list[ClientData]:
    """Return the data of every client, unseen clients last; `datasets` maps (domain, split) to an open dataset."""
    specs = config.scenario.everybody()
    shares: dict[int, np.ndarray] = {}
    for domain, pool in dict.fromkeys((spec.dataset, spec.pool) for spec in specs):
        members = [spec.index for spec in specs if (spec.dataset, spec.pool) == (domain, pool)]
        shares |= zip(members, shares_of(config, domain, pool, datasets[domain, "train"], len(members)))
    ordered = sorted(specs, key=lambda spec: spec.index)
    data = [_make_views(config, spec, shares[spec.index], datasets) for spec in ordered]
    data = _hold_validation_out(config, ordered, data) if config.data.validation else data
    return [_add_label_noise(config, spec, each) for spec, each in zip(ordered, data)]


def shares_of(config: RunConfig, domain: str, pool: str | None, dataset: Reader, clients: int) -> list[np.ndarray]:
    """Return the image numbers of each of the clients that share one domain."""
    chosen = config.data.train_samples is not None
    if reason := config.scenario.too_crowded(domain, clients, len(dataset), chosen):  # fewer than the config expected
        raise UsageError(f"{config.scenario.name}: {reason}")
    rng = stream(config.seed, "partition", domain, *([pool] if pool else []))
    rule = config.scenario.partition
    return deal(rule.kind, dataset, clients, rng, config.scenario.least_images, rule.alpha)


def held_out(config: RunConfig, images: int) -> int:
    """Return how many of a client's images are held out for the `personal` test split."""
    return max(1, round(config.data.personal_fraction * images))


def _hold_validation_out(config: RunConfig, specs: Sequence[ClientSpec], data: list[ClientData]) -> list[ClientData]:
    """Hold images of every client out for choosing options (data.validation); return the data without test images.

    What one client holds out, all clients do: those of different pools have images in common.
    Images of the `personal` split are not among them: like the test images, they must stay unseen.
    """
    held: dict[str, np.ndarray] = {domain: np.array([], int) for domain in config.scenario.domains}
    for spec, share in zip(specs, (each.train.indices for each in data)):
        if len(share) < 2:
            raise UsageError(
                f"client {spec.id!r} has {len(share)} images to train on, needs 2: one is held out by data.validation"
            )
        wanted = min(max(1, round(config.data.validation * len(share))), len(share) - 1)
        order = share[stream(config.seed, "validation", spec.id).permutation(len(share))]
        free = order[~np.isin(order, held[spec.dataset])]
        missing = wanted - (len(order) - len(free))
        held[spec.dataset] = np.union1d(held[spec.dataset], free[: max(0, missing)])
    return [_exchange_tests(spec, each, held[spec.dataset]) for spec, each in zip(specs, data)]


def _exchange_tests(spec: ClientSpec, data: ClientData, held: np.ndarray) -> ClientData:
    """Return a client's data with the images `held` out of its training images, and tested on those alone."""
    share = data.train.indices
    chosen = np.isin(share, held)
    if chosen.all():
        raise UsageError(
            f"client {spec.id!r}: all its {len(share)} images are held out, by itself or by clients of another pool; "
            f"set more images or a smaller data.validation"
        )
    validation = replace(data.train, indices=share[chosen])
    return ClientData(replace(data.train, indices=share[~chosen]), dict.fromkeys(data.tests, validation))


def _add_label_noise(config: RunConfig, spec: ClientSpec, data: ClientData) -> ClientData:
    """Return a client's data with the wrong labels of data.label_noise among its training images, and nowhere else."""
    share = (config.data.label_noise or {}).get(spec.id)
    if not share:
        return data
    rng = stream(config.seed, "label_noise", spec.id)
    try:
        sources = draw_label_sources(data.train.indices, share, rng)
    except UsageError as error:
        raise UsageError(f"data.label_noise: client {spec.id!r}: {error}") from None
    return replace(data, train=replace(data.train, labels_of=sources))


def _make_views(config: RunConfig, spec: ClientSpec, share: np.ndarray, datasets: dict) -> ClientData:
    train, test = datasets[spec.dataset, "train"], datasets[spec.dataset, "test"]
    share = share[np.isin(share, _list_eligible(train, spec))]
    if spec.images is not None:
        chosen = stream(config.seed, "images", spec.id).permutation(len(share))[: spec.images]
        share = np.sort(share[chosen])
    # Participating clients are not tested on the "unseen" split, and unseen clients on no other.
    splits = [split for split in config.scenario.evaluation if (split == "unseen") == spec.unseen]
    tests = {split: View(test, _list_eligible(test, spec), spec.relabel) for split in splits if split != "personal"}
    for view in tests.values():
        if not len(view):
            raise UsageError(f"client {spec.id!r}: no test image of {spec.dataset} is usable for {_join_tasks(spec)}")
    if len(share) < config.scenario.least_images:
        raise UsageError(
            f"client {spec.id!r} has {len(share)} images usable for {_join_tasks(spec)}, "
            f"needs {config.scenario.least_images}; "
            f"set more images or fewer clients of {spec.dataset}"
        )
    if "personal" in splits:
        held = held_out(config, len(share))
        order = stream(config.seed, "personal", spec.id).permutation(len(share))
        tests["personal"] = View(train, np.sort(share[order[:held]]), spec.relabel)
        share = np.sort(share[order[held:]])
    return ClientData(View(train, share, spec.relabel), tests)


def _list_eligible(dataset: Reader, spec: ClientSpec) -> np.ndarray:
    """Return the images a client with exactly these tasks can use."""
    chosen = dataset.eligible(spec.tasks)
    return np.arange(len(dataset)) if chosen is None else np.sort(chosen)


def _join_tasks(spec: ClientSpec) -> str:
    return " + ".join(spec.tasks)


def parties(config: RunConfig, data: list[ClientData]) -> list[Party]:
    """Return the participating clients, as the server sees them."""
    return name_parties(config, config.scenario.parties(), _count_images(data))


def newcomers(config: RunConfig, data: list[ClientData]) -> list[Party]:
    """Return the unseen clients, which the server sees only after the last round."""
    return name_parties(config, config.scenario.unseen(), _count_images(data))


def _count_images(data: list[ClientData]) -> list[int]:
    return [len(each.train) for each in data]


def name_parties(config: RunConfig, specs: Sequence[ClientSpec], images: Sequence[int]) -> list[Party]:
    """Return these clients as the server sees them; `images` says how many each client of the scenario trains on."""
    whole = config.federation.exchange == "models"
    merged = whole or network_of(config.model).one_decoder
    # Whole models are merged position by position, so clients with equal tasks must list them in the same order.
    tasks = [in_order(s.tasks) if whole else s.tasks for s in specs]
    return [Party(s.index, s.id, s.dataset, t, images[s.index], merged) for s, t in zip(specs, tasks)]
