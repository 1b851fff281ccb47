"""FedHCA²: clients move by their own update plus a learned share of a common one.

Encoders add α_i times the conflict-averse common update; decoders add β_{k,l} times what each layer attends to among
all decoders; α and β learn by closed-form gradients. Lu et al., CVPR 2024, arXiv:2311.13250. Defaults are the public
code's: c = 0.4, weights from 0.1, SGD 0.01 / 0.9 / 1e-4; Ũ is divided by 1 + c², alike clients average their updates,
both of which the paper's equations do not have: `rescale=false`, `average_alike=false`. A hyper weight learns if its
client took part in the round before too; else it stays. Optimum and attention decide who counts how much, so weighting
by samples has no place here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np

from ..base.schema import limits
from ..exchange import Owner, Party, Round, Rows
from ..exchange.algebra import combine_with_extra, gram, gram_and_products, rows_by_kind
from ..exchange.conflicts import conflict_averse_coefficients
from ._base import ALGORITHMS, Algorithm, Kinds
from ._mean import alike, group_means

if TYPE_CHECKING:
    from torch import Tensor

Key = TypeVar("Key", bound=Hashable)


@ALGORITHMS.register("fedhca2")
class FedHCA2(Algorithm):
    """Hyper conflict-averse encoders, hyper cross-attention decoders."""

    title = "FedHCA²"
    paper = "Lu et al., CVPR 2024, arXiv:2311.13250"
    roles = ("shares", "personal", "conflict_averse")
    encoder_only = "decoder=none"

    @dataclass(frozen=True)
    class Params:
        c: float = limits(0.4, low=0, doc="radius of the conflict-averse search, as a share of the mean update")
        alpha: float = limits(0.1, low=0, high=1, doc="initial hyper weight of every encoder")
        beta: float = limits(0.1, low=0, high=1, doc="initial hyper weight of every decoder layer")
        lr: float = limits(0.01, low=0, doc="learning rate of the hyper weights")
        momentum: float = limits(0.9, low=0, high=1, doc="of the hyper weights")
        weight_decay: float = limits(1e-4, low=0, doc="of the hyper weights")
        rescale: bool = limits(True, doc="divide Ũ by 1 + c², as the public code does; Eq. 9 does not")
        average_alike: bool = limits(True, doc="clients of one dataset and task set average their encoder updates")
        encoder: Literal["hca", "none"] = limits("hca", doc="none: encoders stay home (Table 3's +Dec)")
        decoder: Literal["hca", "none"] = limits("hca", doc="none: decoders stay home (Table 3's +Enc)")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.alpha = HyperWeights[int](params)  # by client
        self.beta = HyperWeights[Owner](params)  # by decoder, one weight per layer
        self.common_update: Tensor | None = None  # Ũ of the last round, [d]
        self.common_clients: tuple[int, ...] = ()  # who received it
        self.attended: Tensor | None = None  # Ã of the last round, [K, d]
        self.attended_owners: tuple[Owner, ...] = ()  # whose rows these are

    def shared(self, index: int) -> Kinds:
        return tuple(kind for kind in ("encoder", "decoder") if getattr(self.params, kind) == "hca")

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        steps = {"encoder": self._encoders, "decoder": self._decoders}
        return {kind: steps[kind](rows) for kind, rows in rows_by_kind(rnd)}

    def _encoders(self, rows: Rows) -> Tensor:
        clients = [owner.client for owner in rows.owners]
        products, along = inner_products(rows, self.common_update)
        self.alpha.step({i: [-g] for i, g in zip(clients, along.tolist()) if i in self.common_clients})
        c = self.params.c
        u = conflict_averse_coefficients(products, c)
        if self.params.rescale:
            u = u / (1 + c * c)
        alpha = np.array([self.alpha.used(i, 1, self.params.alpha) for i in clients])  # [N, 1]
        new, self.common_update = self._move(rows, u, alpha)
        self.common_clients = tuple(clients)
        return new

    def _move(self, rows: Rows, u: np.ndarray, alpha: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return each row plus its α Ũ, alike clients' Δ averaged if asked, [N, d], and Ũ = Σ u_j Δ_j, [d]."""
        labels: Sequence[Hashable] = alike(rows, self.parties) if self.params.average_alike else range(len(u))
        to_mean = group_means(labels) - np.eye(len(u))  # all 0 if no two clients are alike
        return combine_with_extra(np.vstack([alpha * u + to_mean, u]), rows.after, rows.before, own="after")

    def _decoders(self, rows: Rows) -> Tensor:
        delta, layers = rows.delta, rows.layers  # [K, d]
        self.beta.step(self._beta_slopes(rows))
        used = [self.beta.used(owner, len(layers), self.params.beta) for owner in rows.owners]
        beta = delta.new_tensor(np.array(used))  # [K, L]
        attended = delta.new_empty(delta.shape)
        new = rows.after.clone()
        for t in rows.tensors:
            v = delta[:, t.start : t.stop]
            a = (v @ v.T / math.sqrt(t.stop - t.start)).softmax(1) @ v
            attended[:, t.start : t.stop] = a
            new[:, t.start : t.stop].addcmul_(beta[:, layers.index(t.layer), None], a)
        self.attended, self.attended_owners = attended, rows.owners
        return new

    def _beta_slopes(self, rows: Rows) -> dict[Owner, list[float]]:
        """Return −Σ over the tensors of a layer of ⟨Ã of last round, Δ of this one⟩, for decoders seen in both."""
        last = {owner: k for k, owner in enumerate(self.attended_owners)}
        slopes: dict[Owner, list[float]] = {}
        if self.attended is None:
            return slopes
        for owner, delta in zip(rows.owners, rows.delta):
            if owner in last:
                product = self.attended[last[owner]] * delta
                by_layer = dict.fromkeys(rows.layers, 0.0)
                for t in rows.tensors:
                    by_layer[t.layer] -= product[t.start : t.stop].sum().item()
                slopes[owner] = list(by_layer.values())
        return slopes

    def diagnostics(self) -> dict[str, Any]:
        alpha = {self.parties[i].id: w[0] for i, w in self.alpha.weights.items()}
        beta = {owner.name(self.parties): w for owner, w in self.beta.weights.items()}
        return {"alpha": alpha, "beta": beta}

    def state_dict(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha.state_dict(),
            "beta": self.beta.state_dict(),
            "common": self.common_update,
            "common_clients": list(self.common_clients),
            "attended": self.attended,
            "attended_owners": [list(o) for o in self.attended_owners],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.alpha.load_state_dict(state["alpha"], int)
        self.beta.load_state_dict(state["beta"], lambda key: Owner(*key))
        self.common_update, self.common_clients = state["common"], tuple(state["common_clients"])
        self.attended = state["attended"]
        self.attended_owners = tuple(Owner(*o) for o in state["attended_owners"])


def inner_products(rows: Rows, probe: Tensor | None) -> tuple[np.ndarray, np.ndarray]:
    """Return ⟨Δ_i, Δ_j⟩ and ⟨Δ_i, probe⟩ (0 without a probe), summed in double. [N, N] and [N]."""
    if probe is None:
        return gram(rows.after, rows.before), np.zeros(len(rows.after))
    return gram_and_products(rows.after, rows.before, probe)


class HyperWeights(Generic[Key]):
    """Weights by client or decoder: used clamped to [0, 1], moved by SGD with momentum and weight decay."""

    def __init__(self, params: FedHCA2.Params) -> None:
        self.params = params
        self.weights: dict[Key, list[float]] = {}
        self.momenta: dict[Key, list[float]] = {}

    def used(self, key: Key, count: int, start: float) -> list[float]:
        """Return the weights of `key` clamped to [0, 1]; the first time, `count` weights of `start`."""
        return [min(max(w, 0.0), 1.0) for w in self.weights.setdefault(key, [start] * count)]

    def step(self, slopes: Mapping[Key, list[float]]) -> None:
        """Move the weights of every key against its slopes."""
        p = self.params
        for key, gradients in slopes.items():
            weights, old = self.weights[key], self.momenta.get(key)
            # The clamp passes no gradient outside [0, 1]: there only decay and momentum move a weight.
            gradients = [
                (g if 0 <= w <= 1 else 0.0) + p.weight_decay * w for g, w in zip(gradients, weights, strict=True)
            ]
            new = gradients if old is None else [p.momentum * m + g for m, g in zip(old, gradients)]
            self.momenta[key] = new
            self.weights[key] = [w - p.lr * m for w, m in zip(weights, new)]

    def state_dict(self) -> dict[str, Any]:
        return {name: [[key, value] for key, value in getattr(self, name).items()] for name in ("weights", "momenta")}

    def load_state_dict(self, state: dict[str, Any], key_of: Callable[[Any], Key]) -> None:
        for name in ("weights", "momenta"):
            setattr(self, name, {key_of(key): value for key, value in state[name]})
