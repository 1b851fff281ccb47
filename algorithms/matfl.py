"""MaT-FL: clients average their encoder with those it resembles, whatever their tasks.

Cai et al., CVPR Workshops 2023. `variant=cluster` is its code, and what the FedHCA² and FMTL-Bench tables ran: θ_i
minus the mean θ̄ are clustered (cosine, average linkage) into k = 2, encoders averaged within. `variant=soft` is its
code's soft grouping: θ_i becomes Σ_j s_ij θ_j, s_ij = max(cos(θ_i − θ̄, θ_j − θ̄) + `threshold`, 0) with rows scaled to
sum 1. `variant=voting` is its paper: the last `vote_layers` = 8 layers each vote for the `friends` = 8 clients (itself
among them) whose updates resemble a client's most; it moves by its friends' updates weighted by similarity, and alike
clients then share the mean. The paper divides by sums of cosines, which may be 0: negative ones count as 0 here.
Similarity decides the weights, so weighting by samples has no place here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Party, Round, Rows, TensorSlice
from ..exchange.algebra import centred_gram, cosines, encoders_of, gram, mix, move
from ._base import ALGORITHMS, Algorithm, Kinds
from ._mean import alike, group_means

if TYPE_CHECKING:
    from torch import Tensor


@ALGORITHMS.register("matfl")
class MaTFL(Algorithm):
    """Encoders averaged among similar clients."""

    title = "MaT-FL"
    paper = "Cai et al., CVPR Workshops 2023"
    roles = ("shares", "personal", "clusters")

    @dataclass(frozen=True)
    class Params:
        variant: Literal["cluster", "soft", "voting"] = limits("cluster", doc="the public code's two, or the paper")
        k: int = limits(2, low=1, doc="number of clusters (cluster)")
        threshold: float = limits(0.0, above=-1, doc="added to every cosine before negative ones are cut off (soft)")
        friends: int = limits(8, low=1, doc="K: how many clients to follow, oneself included (voting)")
        vote_layers: int = limits(8, low=1, doc="how many of the last conv and linear layers vote (voting)")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        # Of the last round: client id → its cluster's number, or the ids of those it follows.
        self.groups: dict[str, int] | dict[str, list[str]] = {}
        self.votes: dict[str, Any] | None = None  # what each layer voted in the last round (voting)

    def shared(self, index: int) -> Kinds:
        return ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        rows = encoders_of(rnd)
        step = {"cluster": self._cluster, "soft": self._blend, "voting": self._vote}[self.params.variant]
        return {"encoder": step(rows)}

    def _cluster(self, rows: Rows) -> Tensor:
        labels = clusters(cosines(centred_gram(rows.after)), self.params.k)
        self.groups = dict(zip(self._ids(rows), labels))
        return mix(group_means(labels), rows.after)

    def _blend(self, rows: Rows) -> Tensor:
        weights = soft_weights(cosines(centred_gram(rows.after)), self.params.threshold)
        self._keep_friends(rows, weights)
        return mix(weights, rows.after)

    def _vote(self, rows: Rows) -> Tensor:
        voters = voting_tensors(rows.tensors)[-self.params.vote_layers :]
        similar = np.stack(
            [cosines(gram(rows.after[:, t.start : t.stop], rows.before[:, t.start : t.stop])) for t in voters]
        )
        weights = friend_weights(similar, self.params.friends)
        ids = self._ids(rows)
        votes = layer_votes(similar, self.params.friends).tolist()
        self.votes = {"layers": [t.name for t in voters], "clients": ids, "votes": votes}
        self._keep_friends(rows, weights)
        means = group_means(alike(rows, self.parties))
        return move(rows, means @ weights, means)

    def _keep_friends(self, rows: Rows, weights: np.ndarray) -> None:
        ids = self._ids(rows)
        self.groups = {ids[i]: [ids[j] for j in np.flatnonzero(row)] for i, row in enumerate(weights)}

    def _ids(self, rows: Rows) -> list[str]:
        return [self.parties[owner.client].id for owner in rows.owners]

    def diagnostics(self) -> dict[str, Any]:
        return {"groups": dict(self.groups), **({"votes": self.votes} if self.votes else {})}


def clusters(cosine: np.ndarray, k: int) -> list[int]:
    """Cluster rows by 1 − cosine (average linkage) into exactly k clusters, or one per row; return [R] labels."""
    n = len(cosine)
    members = {i: [i] for i in range(n)}
    if n > k:
        from scipy.cluster.hierarchy import linkage

        merges = linkage(1 - cosine[np.triu_indices(n, 1)], method="average")
        for step, (a, b) in enumerate(merges[: n - k, :2].astype(int)):
            members[n + step] = members.pop(a) + members.pop(b)
    labels = [0] * n
    for number, rows in enumerate(sorted(map(sorted, members.values()))):
        for i in rows:
            labels[i] = number
    return labels


def soft_weights(cosine: np.ndarray, threshold: float) -> np.ndarray:
    """Return each row's share of every row. A client on the mean has no direction and is left alone. [R, R]."""
    # `cosine` is 1 on the diagonal, so no row sums to 0; a client on the mean moves by nothing whatever the threshold,
    # as the mean of all is itself.
    weights = (cosine + threshold).clip(min=0)
    return weights / weights.sum(1, keepdims=True)


def layer_votes(cosine: np.ndarray, friends: int) -> np.ndarray:
    """Let each layer give k points to a client's most similar one, k − 1 to the next, … [L, R, R] in and out."""
    n = cosine.shape[1]
    k = min(friends, n)
    mean, self_first = cosine.mean(0), np.eye(n)
    votes = np.zeros(cosine.shape, dtype=int)
    for layer, given in zip(cosine, votes):
        for i in range(n):
            ranking = np.lexsort((-mean[i], -self_first[i], -layer[i]))[:k]
            given[i, ranking] = np.arange(k, 0, -1)
    return votes


def friend_weights(cosine: np.ndarray, friends: int) -> np.ndarray:
    """Return how far each client follows each other one, [R, R], rows sum to 1, from layers' cosines, [L, R, R]."""
    n = cosine.shape[1]
    k = min(friends, n)
    mean, self_first, votes = cosine.mean(0), np.eye(n), layer_votes(cosine, friends).sum(0)
    positive = cosine.clip(min=0)
    similarity = (positive / positive.sum(2, keepdims=True)).mean(0)
    weights = np.zeros((n, n))
    for i in range(n):
        chosen = np.lexsort((-mean[i], -self_first[i], -votes[i]))[:k]
        weights[i, chosen] = similarity[i, chosen]
    return weights / weights.sum(1, keepdims=True)


def voting_tensors(tensors: Sequence[TensorSlice]) -> list[TensorSlice]:
    """Return the weights of convolutions and linear layers, in order. Norms (weight as long as bias) do not vote."""
    parameters = [t for t in tensors if not t.statistic]
    sizes = {t.name: t.stop - t.start for t in parameters}
    weights = [
        t
        for t in parameters
        if t.name.endswith("weight") and sizes.get(t.name[: -len("weight")] + "bias") != sizes[t.name]
    ]
    return weights or parameters
