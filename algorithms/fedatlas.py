"""FedAtlas: who averages with whom follows from a relation matrix, learned from gradients at the encoder's last map.

After training, client i tells for each task φ, the mean of ∂L_t/∂F over 5 training batches (`batches`) and space, of
length 1; F is the deepest map of its encoder. From these rows the server learns Z ≥ 0 with zero diagonal
(`relation_matrix`) and P = row-softmax(Z / 0.5). Encoders: W_ij = mean of P over the rows of i and of j, W_ii = 1, rows
scaled to sum 1. The decoder of (i, t): likewise with w_j = P[(i,t),(j,t)] over all clients j that have t, whatever
their dataset. Heads stay home.

No paper was found; the public code is fxyuuu/FedAtlas 8beb7a2. `variant=paper` (default) is the kernel method that the
code is named after, in a file that nothing imports; `variant=public` is what its training runs. That does not recover
similarity: its kernel becomes indefinite, features that are all alike and features that are all orthogonal give the
same Z, and planted clusters come out in half of all cases. k = 8, α = 2, β = 1, γ = 0.5 and 10 iterations are its runs'
(γ is 0.1 where nothing is said). There an error in the features is passed over and the round becomes FedAvg's; here it
is an error. Its compressed communication, off by default there, is `federation.compression=topk` with
`federation.compression_share=0.1` and `federation.compression_bits=8`.
The graph Laplacian has eigenvalues of any multiplicity (all are 0 at first), and which of their vectors are taken
depends on the order of the rows: here that of clients' ids and tasks. Features decide the weights: none by samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..exchange import Owner, Party, Round, Rows
from ..exchange.algebra import mix, rows_by_kind
from ._base import ALGORITHMS, Workbench
from ._mean import by_task
from ._sharing import Sharing

if TYPE_CHECKING:
    from torch import Tensor

TEMPERATURE = 0.5  # of the softmax over relations
Variant = Literal["paper", "public"]


@ALGORITHMS.register("fedatlas")
class FedAtlas(Sharing):
    """Aggregation by learned relations between tasks of clients."""

    title = "FedAtlas"
    paper = "none; code: fxyuuu/FedAtlas, 2026"
    roles = ("shares", "personal")

    @dataclass(frozen=True)
    class Params(Sharing.Params):
        variant: Variant = limits("paper", doc="the kernel method, or what the public code runs")
        k: int = limits(8, low=1, doc="dimensions of the spectral embedding; at most as many as rows count")
        alpha: float = limits(2.0, above=0, doc="α, how closely rows are to be told by each other")
        beta: float = limits(1.0, above=0, doc="β, how near Z stays to C, its symmetric, block-like companion")
        gamma: float = limits(0.5, low=0, doc="γ, how block-like C is to be")
        iterations: int = limits(10, low=1, doc="of the alternating solution")
        batches: int = limits(5, low=1, doc="training batches that features are measured on")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.encoder_weights: dict[str, dict[str, float]] = {}  # of the last round: id → id → weight
        self.failed = False  # whether the relations of the last round were numbers

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        clients = sorted({owner.client for _, rows in rows_by_kind(rnd) for owner in rows.owners}, key=self._id)
        owners = [Owner(i, task) for i in clients for task in sorted(self.parties[i].tasks)]
        p = self.params
        z = relation_matrix(self._features(owners, rnd), p.variant, p.k, p.alpha, p.beta, p.gamma, p.iterations)
        self.failed = not np.isfinite(z).all()
        related = Relations(owners, affinities(z))
        new = {}
        for kind, rows in rows_by_kind(rnd):
            if kind == "encoder":
                weights = encoder_weights(rows, related)
                self._keep(rows, weights)
            else:
                weights = decoder_weights(rows, self.parties, related)
            new[kind] = mix(weights, rows.after)
        return new

    def _id(self, client: int) -> str:
        return self.parties[client].id

    def _features(self, owners: Sequence[Owner], rnd: Round) -> np.ndarray:
        """Return what the clients measured, a row per task of a client. [R, C]."""
        found = []
        for owner in owners:
            party = self.parties[owner.client]
            told = rnd.measured.get(owner.client, {}).get("features")
            if told is None or told.dim() != 2 or len(told) != len(party.tasks):
                came = "none" if told is None else f"a tensor of shape {tuple(told.shape)}"
                raise ValueError(
                    f"round {rnd.index + 1}: of client {party.id} came {came} as features, expected a row for each of "
                    f"{', '.join(party.tasks)}"
                )
            found.append(told[party.tasks.index(str(owner.task))].cpu().numpy().astype(float))
        return np.stack(found)

    def _keep(self, rows: Rows, weights: np.ndarray) -> None:
        ids = [self._id(owner.client) for owner in rows.owners]
        self.encoder_weights = {name: dict(zip(ids, row.tolist())) for name, row in zip(ids, weights)}

    # -- on the client -------------------------------------------------------------------------------------------------

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        import torch

        with torch.enable_grad():
            found = [local.feature_gradients(batch).nan_to_num(nan=0.0) for batch in local.batches(self.params.batches)]
        if not found:
            raise ValueError(f"client {local.party.id} has no training batch to measure features on, expected one")
        return {"features": torch.nn.functional.normalize(torch.stack(found).mean(0), dim=1, eps=1e-30)}

    # -- telling -------------------------------------------------------------------------------------------------------

    def diagnostics(self) -> dict[str, Any]:
        own = {name: of[name] for name, of in self.encoder_weights.items()}
        others = {name: {n: w for n, w in of.items() if n != name} for name, of in self.encoder_weights.items()}
        nearest = {name: max(of, key=lambda n: of[n]) for name, of in others.items() if of}
        return {"own_weight": own, "nearest": nearest}

    def notes(self) -> list[str]:
        if not self.failed:
            return []
        told = f"in some round the relations (algo.variant={self.params.variant}) were no numbers"
        return [f"{told}: every client kept its own parameters"]


class Relations:
    """How much each (client, task) is to be told by each other one: P, by owner."""

    def __init__(self, owners: Sequence[Owner], matrix: np.ndarray) -> None:
        self.places: Mapping[Owner, int] = {owner: place for place, owner in enumerate(owners)}
        self.matrix = matrix

    def of_client(self, client: int) -> list[int]:
        """Return the places of a client's rows."""
        return [place for owner, place in self.places.items() if owner.client == client]

    def between(self, mine: int, theirs: int, task: str) -> float:
        """Return how much a client's task is to be told by the same task of another client."""
        return float(self.matrix[self.places[Owner(mine, task)], self.places[Owner(theirs, task)]])


def encoder_weights(rows: Rows, related: Relations) -> np.ndarray:
    """Return how much of every encoder each one becomes: mean P between the two clients' rows, 1 for itself. [R, R]."""
    weights = np.eye(len(rows.owners))
    places = [related.of_client(owner.client) for owner in rows.owners]
    for i, mine in enumerate(places):
        for j, theirs in enumerate(places):
            if i != j:
                weights[i, j] = related.matrix[np.ix_(mine, theirs)].mean()
    return weights / weights.sum(1, keepdims=True)


def decoder_weights(rows: Rows, parties: Sequence[Party], related: Relations) -> np.ndarray:
    """Return how much of every decoder each one becomes, among those of its task (or of the same tasks). [R, R]."""
    labels = by_task(rows, parties)
    weights = np.eye(len(labels))
    for i, mine in enumerate(rows.owners):
        for j, theirs in enumerate(rows.owners):
            if i != j and labels[i] == labels[j]:
                tasks = (mine.task,) if mine.task else parties[mine.client].tasks
                weights[i, j] = np.mean([related.between(mine.client, theirs.client, task) for task in tasks])
    return weights / weights.sum(1, keepdims=True)


def affinities(relations: np.ndarray) -> np.ndarray:
    """Return P, the softmax of each row of Z / 0.5 with its zero diagonal; the identity if Z is not finite. [R, R]."""
    if not np.isfinite(relations).all():
        return np.eye(len(relations))
    scores = relations / TEMPERATURE
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def relation_matrix(
    features: np.ndarray,
    variant: Variant = "paper",
    k: int = 8,
    alpha: float = 2.0,
    beta: float = 1.0,
    gamma: float = 0.5,
    iterations: int = 10,
) -> np.ndarray:
    """Return Z, which tells each row of features by others; NaN where the equations have no solution. [R, R].

    Z is to solve K ≈ KZ near a symmetric C that has k blocks; K becomes a kernel of Z in turn.
    """
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    x = features / np.where(lengths > 0, lengths, 1)
    r, identity = len(x), np.eye(len(x))
    if variant == "paper":
        kernel, z, c = x @ x.T, np.zeros((r, r)), np.zeros((r, r))
        scale, ridge = 1.0, beta + 1e-6
    else:
        kernel = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(2))
        z = c = _without_diagonal(kernel)
        scale, ridge = alpha, beta + 1e-5
    for _ in range(iterations):
        try:
            z = np.linalg.solve(scale * kernel + ridge * identity, alpha * kernel + beta * c)
            z = _without_diagonal(np.maximum(z, 0))
            laplacian = np.diag(c.sum(1)) - c
            _, vectors = np.linalg.eigh((laplacian + laplacian.T) / 2)
        except np.linalg.LinAlgError:
            return np.full((r, r), np.nan)
        u = vectors[:, :k]  # of the smallest eigenvalues; all of them where k is more than there are
        s = u @ u.T
        a = _without_diagonal(z - gamma / beta * (np.diag(s)[:, None] - s))
        c = np.maximum((a + a.T) / 2, 0)
        w = (z + z.T) / 2
        root = np.sqrt(w.sum(1) + 1e-8)
        g = w / root / root[:, None]
        kernel = np.exp(g - 2 * g.max()) if variant == "paper" else g
    return z


def _without_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix * (1 - np.eye(len(matrix)))
