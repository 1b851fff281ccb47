"""ColNet: clients of a group average their encoders, and groups move by a conflict-averse update on top.

For each group g: Δ_g = mean of its clients' updates; Δ* = the conflict-averse update of all Δ_g (see
`row_algebra.conflicts`), divided by 1 + c²; every client of g gets the group's mean encoder plus `weight`·Δ*. Decoders
and heads never travel, and the last round is local training only: it is not aggregated, and is what is scored. Feng et
al., 2025, arXiv:2501.10347. c = 0.4 and weight 1 are theirs (a thesis on NYUv2 that builds on it has c = 0.7).

Groups are clients of one dataset and task set (`alike`), of one task set (`task`, the paper's first version), or
`k` clusters of the directions of their updates (`kmeans`, in the spirit of its second version, whose clustering is not
public: it starts from the two updates that are farthest apart, then the farthest from these). As Δ* comes on top of
Δ_g, a step is about twice the local progress, and figures that come with the thesis show it diverge: `weight=0` only
averages within groups. Configs of another public version name an averaging its code does not have, and so leave it out.

The paper's clients talk to each other, with leaders between groups: |g| − 1 exchanges per client and G(G − 1) between
leaders. Here, numbers being the same, each client is billed one row each way, as with a server: how often a row is
billed is one number for all clients, which cannot say what depends on the size of a group and on who leads it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round, Rows
from ..exchange.algebra import cosines, encoders_of, gram, mix, move, squared_distances
from ..exchange.conflicts import conflict_averse_coefficients
from ._base import ALGORITHMS, Algorithm, Kinds
from ._mean import alike, group_means

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("colnet")
class ColNet(Algorithm):
    """Mean of the encoders of a group, plus the conflict-averse update of all groups."""

    title = "ColNet"
    paper = "Feng et al., 2025, arXiv:2501.10347"
    roles = ("shares", "personal", "conflict_averse")

    @dataclass(frozen=True)
    class Params:
        groups: Literal["alike", "task", "kmeans"] = limits(
            "alike", doc="who averages: one dataset and task set, one task set, or who moves the same way"
        )
        weight: float = limits(1.0, low=0, doc="how much of the groups' common update is added; 0: group means only")
        c: float = limits(0.4, low=0, doc="α: radius of the search around the groups' mean update, as a share of it")
        k: int = limits(2, low=1, doc="number of groups (kmeans)")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.groups: dict[str, int] = {}  # of the last round: client id → its group's number

    def shared(self, index: int) -> Kinds:
        return () if index + 1 == self.rounds else ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        rows, p = encoders_of(rnd), self.params
        needed = p.weight > 0 or p.groups == "kmeans"
        products = gram(rows.after, rows.before) if needed else np.zeros((len(rows.owners),) * 2)
        labels = self._labels(rows, products)
        means = group_means(labels)
        if not p.weight:
            return {"encoder": mix(means, rows.after)}
        first = [labels.index(label) for label in dict.fromkeys(labels)]
        of_groups = means[first]  # what each client counts in each group, [G, N]
        u = conflict_averse_coefficients(of_groups @ products @ of_groups.T, p.c) / (1 + p.c * p.c)
        return {"encoder": move(rows, means + p.weight * (u @ of_groups), means)}

    def _labels(self, rows: Rows, products: np.ndarray) -> list[int]:
        """Return the number of each row's group; groups are numbered in the order of their clients' names."""
        ids = [self.parties[owner.client].id for owner in rows.owners]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        found: Sequence[Hashable]
        if self.params.groups == "alike":
            found = alike(rows, self.parties)
        elif self.params.groups == "task":
            found = [frozenset(self.parties[owner.client].tasks) for owner in rows.owners]
        else:
            clusters = cluster(cosines(products[np.ix_(order, order)]), self.params.k)
            found = [clusters[order.index(i)] for i in range(len(ids))]
        numbers = {label: number for number, label in enumerate(dict.fromkeys(found[i] for i in order))}
        labels = [numbers[label] for label in found]
        self.groups = dict(zip(ids, labels))
        return labels

    def diagnostics(self) -> dict[str, Any]:
        return {"groups": dict(self.groups)}

    def notes(self) -> list[str]:
        if self.rounds == 1:
            return ["the last round is local training, and there is no other: nothing was exchanged"]
        return []


def cluster(products: np.ndarray, k: int, steps: int = 100) -> list[int]:
    """Cluster vectors, given by their inner products, by k-means: [N] labels of k clusters, or fewer. [N].

    Without chance: the first centres are the two vectors farthest apart, then the one farthest from all before.
    """
    distances = squared_distances(products)
    seeds = list(np.unravel_index(distances.argmax(), distances.shape))[:k]
    while len(seeds) < min(k, len(products)):
        seeds.append(distances[seeds].min(0).argmax())
    labels = distances[seeds].argmin(0)
    for _ in range(steps):
        found = np.unique(labels)
        means = (labels == found[:, None]) / (labels == found[:, None]).sum(1, keepdims=True)  # [K, N]
        inner = means @ products
        new = ((inner * means).sum(1)[:, None] - 2 * inner).argmin(0)  # ‖x − m‖² less ‖x‖². [N]
        if (found[new] == labels).all():
            break
        labels = new
    return [int(label) for label in labels]
