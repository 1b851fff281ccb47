"""FedFomo: each client combines those encoders that, with its own decoders, do better on images it keeps aside.

θ_i + Σ_n w_n (θ_n − θ_i), w_n ∝ max(0, (L_i(θ_i) − L_i(θ_n)) / (‖θ_n − θ_i‖ + 1e-5)) with sum 1; θ_i if nobody is
better. Zhang et al., ICLR 2021, arXiv:2012.08565. θ_i is what the client began its last training from, as in the public
code (NVlabs/FedFomo, `first_model`) and PFLlib, and the encoder it ended with is one of the θ_n; with `baseline=last`
θ_i is the latter, of which nothing is left as soon as anybody does better. L_i is the weighted sum of the client's
losses on a fifth of its images (`validation`), or (`loss=relative`) the mean of its tasks' losses over those of θ_i.

The server sends the models of others with the highest P_i; M = `models` = 5 counts the client's own, which stays where
it is: 1 up, M − 1 down. P starts as the identity and grows by the w of each round; ties are broken at random. Each of
the M − 1 is with probability ε any other, ε = 0.3 less 0.05 a round, as in the public code (PFLlib and FL-bench have no
ε). There P also grows by negative w, divided by the size of their sum, so that a model that did harm comes after one
that was not tried yet; here they are equal. Only encoders travel, and their running statistics stay home.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.schema import limits
from ..base.seeds import stream
from ..exchange import Party, Round
from ..exchange.algebra import empty_like, encoders_of
from ._base import ALGORITHMS, Algorithm, Kinds, Workbench
from ._foreign import encoder_losses

if TYPE_CHECKING:
    from torch import Tensor

LOSS_FLOOR = 1e-12  # a loss below it cannot be divided by


@ALGORITHMS.register("fedfomo")
class FedFomo(Algorithm):
    """Encoders combined by what they do for each client."""

    title = "FedFomo"
    paper = "Zhang et al., ICLR 2021, arXiv:2012.08565"
    roles = ("shares", "personal")
    installs = False

    @dataclass(frozen=True)
    class Params:
        models: int = limits(5, low=1, doc="M: models a client combines, its own among them; 1 gives local training")
        validation: float = limits(0.2, above=0, high=0.9, doc="share of the training images kept to judge models by")
        baseline: Literal["start", "last"] = limits("start", doc="θ_i: where the last training began or where it ended")
        loss: Literal["weighted", "relative"] = limits("weighted", doc="L: fixed weights, or mean relative to θ_i's")
        epsilon: float = limits(0.3, low=0, high=1, doc="ε, probability that any model is sent instead of the best")
        epsilon_decay: float = limits(0.05, low=0, doc="what ε loses in every round")
        seed: int = limits(0, low=0, doc="seed of these choices")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.models: dict[int, Tensor] = {}  # client → the encoder it sent last, [d]
        self.benefit = np.eye(len(parties))  # P
        self.round = 0  # that the next parcels are for
        self.weights: dict[int, dict[int, float]] = {}  # client → whom it followed how far in the last round

    def shared(self, index: int) -> Kinds:
        return ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        rows = encoders_of(rnd)
        width = rows.parameters
        self.weights = {}
        for owner, row in zip(rows.owners, rows.after):
            self.models[owner.client] = empty_like(row[:width]).copy_(row[:width])
            told = rnd.measured.get(owner.client, {})
            self.weights[owner.client] = {int(other): float(weight) for other, weight in told.items()}
            for other, weight in self.weights[owner.client].items():
                self.benefit[owner.client, other] += weight
        self.round = rnd.index + 1
        return {}

    def parcel(self, client: int) -> dict[str, Tensor]:
        return {str(other): self.models[other] for other in self._choose_for(client)}

    def _choose_for(self, client: int) -> list[int]:
        """Return the clients whose models a client is sent: the best so far, now and then anybody."""
        others = [j for j in self.models if j != client]
        names, seed = [self.parties[j].id for j in (client, *others)], self.params.seed
        # Drawn by the names of the two: neither who else is there nor anybody's number makes a difference.
        draws = {j: stream(seed, "fedfomo", self.round, names[0], name).random(2) for j, name in zip(others, names[1:])}
        best = sorted(others, key=lambda j: (-self.benefit[client, j], draws[j][0]))
        anybody = sorted(others, key=lambda j: draws[j][1])
        places = min(self.params.models - 1, len(others))
        epsilon = self.params.epsilon - self.params.epsilon_decay * self.round
        chosen: list[int] = []
        for draw in stream(seed, "fedfomo", self.round, names[0]).random(places):
            chosen.append(next(j for j in (anybody if draw < epsilon else best) if j not in chosen))
        return sorted(chosen)

    # -- on the client -------------------------------------------------------------------------------------------------

    def held_out(self) -> float:
        return self.params.validation

    def adopt(self, local: Workbench) -> None:
        row = local.rows("encoder")[0]
        local.memory["weights"] = self._combine(local, row) if local.received else {}
        if self.params.baseline == "start":
            local.memory["start"] = row.clone()

    def _combine(self, local: Workbench, row: Tensor) -> dict[str, float]:
        """Move the encoder to the weighted combination; return the weights by client."""
        import torch

        base = local.memory.get("start", row).clone()
        models = dict(local.received)
        if "start" in local.memory:
            models[str(local.party.index)] = row.clone()
        losses = encoder_losses(local, [base, *models.values()], local.batches(held_out=True))
        weighting = local.loss_weights().cpu().numpy()
        gains = loss_gains(losses[0], losses[1:], weighting, self.params.loss)
        distances = [float(torch.linalg.vector_norm(model - base)) for model in models.values()]
        weights = fomo_weights(gains, np.array(distances))
        row.copy_(base)
        for weight, model in zip(weights.tolist(), models.values()):
            if weight:
                row.add_(model - base, alpha=weight)
        return dict(zip(models, weights.tolist()))

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        import torch

        return {other: torch.tensor([weight]) for other, weight in local.memory["weights"].items()}

    # -- telling and keeping -------------------------------------------------------------------------------------------

    def diagnostics(self) -> dict[str, Any]:
        ids = [party.id for party in self.parties]
        return {"weights": {ids[i]: {ids[j]: w for j, w in of.items()} for i, of in self.weights.items() if of}}

    def notes(self) -> list[str]:
        told = [of for of in self.weights.values() if of]
        if not told or any(w for i, of in self.weights.items() for j, w in of.items() if i != j):
            return []
        return [
            "in some round no client found another's encoder to help its own decoders: such a round is local training"
        ]

    def state_dict(self) -> dict[str, Any]:
        models = {str(client): model for client, model in self.models.items()}
        return {"models": models, "benefit": self.benefit.tolist(), "round": self.round}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.models = {int(client): model for client, model in state["models"].items()}
        self.benefit, self.round = np.array(state["benefit"]), state["round"]


def loss_gains(base: np.ndarray, losses: np.ndarray, weights: np.ndarray, form: str) -> np.ndarray:
    """Return how much lower the loss of each model is than the base's, [n], from losses by task: [m] and [n, m]."""
    if form == "weighted":
        return (base - losses) @ weights
    return 1 - (losses / np.maximum(base, LOSS_FLOOR)).mean(1)


def fomo_weights(gains: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return weights in proportion to gain per distance, sum 1; all 0 where no gain is positive (or finite). [n]."""
    better = np.isfinite(gains) & (gains > 0)
    slopes = np.where(better, gains, 0) / (distances + 1e-5)
    total = slopes.sum()
    return slopes / total if total > 0 else slopes
