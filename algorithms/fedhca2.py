"""FedHCA²: clients move by their own update plus a learned share of a common one.

Encoders add α_i times the conflict-averse common update; decoders add β_{k,l} times what each layer attends to among
all decoders; α and β learn by closed-form gradients. Lu et al., CVPR 2024, arXiv:2311.13250. Defaults are the public
code's: c = 0.4, weights from 0.1, SGD 0.01 / 0.9 / 1e-4; Ũ is divided by 1 + c², alike clients average their updates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..exchange import Owner
from ..schema import limits
from ._base import ALGORITHMS, Algorithm
from ._conflict_averse import conflict_averse_coefficients


@ALGORITHMS.register("fedhca2")
class FedHCA2(Algorithm):
    """Hyper conflict-averse encoders, hyper cross-attention decoders."""

    title = "FedHCA²"
    paper = "Lu et al., CVPR 2024, arXiv:2311.13250"

    @dataclass(frozen=True)
    class Params:
        c: float = limits(0.4, low=0, doc="radius of the conflict-averse search, as a share of the mean update")
        alpha: float = limits(0.1, low=0, high=1, doc="initial hyper weight of every encoder")
        beta: float = limits(0.1, low=0, high=1, doc="initial hyper weight of every decoder layer")
        lr: float = limits(0.01, low=0, doc="learning rate of the hyper weights")
        momentum: float = limits(0.9, low=0, high=1)
        weight_decay: float = limits(1e-4, low=0)
        encoder: Literal["hca", "none"] = "hca"  # none: the encoder stays home (Table 3's +Dec)
        decoder: Literal["hca", "none"] = "hca"  # none: decoders stay home (Table 3's +Enc)

    def __init__(self, params, parties):
        super().__init__(params, parties)
        self.alpha = HyperWeights(params)  # by client
        self.beta = HyperWeights(params)  # by decoder, one weight per layer
        self.common = None  # Ũ of the last round, [d]
        self.attended = None  # Ã of the last round, [K, d], rows as in `attended_owners`
        self.attended_owners = ()

    def shared(self, index):
        return tuple(kind for kind in ("encoder", "decoder") if getattr(self.params, kind) == "hca")

    def aggregate(self, rnd):
        new = {}
        if rnd.encoder is not None:
            new["encoder"] = self._encoders(rnd)
        if rnd.decoder is not None:
            new["decoder"] = self._decoders(rnd)
        return new

    def _encoders(self, rnd):
        rows = rnd.encoder
        delta = rows.delta  # [N, d]
        clients = [owner.client for owner in rows.owners]
        if self.common is not None:
            slopes = -(delta @ self.common)
            self.alpha.step({i: [g] for i, g in zip(clients, slopes.tolist())})
        c = self.params.c
        u = conflict_averse_coefficients((delta @ delta.T).double().cpu().numpy(), c) / (1 + c * c)
        alpha = np.array([self.alpha.used(i, 1, self.params.alpha) for i in clients])  # [N, 1]
        # E_i = before_i + mean of its group's Δ + α_i Ũ: one matrix of coefficients, one product.
        mix = self._group_means(clients) + alpha * u
        self.common = delta.new_tensor(u) @ delta
        return (delta.new_tensor(mix) @ delta).add_(rows.before)

    def _group_means(self, clients):
        """[N, N]: row i averages over the clients with i's dataset and task set, wherever they stand."""
        kinds = [(self.parties[i].dataset, frozenset(self.parties[i].tasks)) for i in clients]
        same = np.array([[a == b for b in kinds] for a in kinds], dtype=float)
        return same / same.sum(1, keepdims=True)

    def _decoders(self, rnd):
        rows = rnd.decoder
        delta, layers = rows.delta, rows.layers  # [K, d]
        if self.attended is not None:
            self.beta.step(self._beta_slopes(rows))
        beta = [self.beta.used(owner, len(layers), self.params.beta) for owner in rows.owners]
        beta = delta.new_tensor(np.array(beta))  # [K, L]
        attended = delta.new_empty(delta.shape)
        new = rows.after.clone()
        for t in rows.tensors:
            v = delta[:, t.start : t.stop]
            a = (v @ v.T / math.sqrt(t.stop - t.start)).softmax(1) @ v
            attended[:, t.start : t.stop] = a
            new[:, t.start : t.stop].addcmul_(beta[:, layers.index(t.layer), None], a)
        self.attended, self.attended_owners = attended, rows.owners
        return new

    def _beta_slopes(self, rows):
        """−Σ over the tensors of a layer of ⟨Ã of last round, Δ of this one⟩, for decoders seen in both."""
        last = {owner: k for k, owner in enumerate(self.attended_owners)}
        slopes = {}
        for k, owner in enumerate(rows.owners):
            if owner in last:
                product = self.attended[last[owner]] * rows.delta[k]
                by_layer = dict.fromkeys(rows.layers, 0.0)
                for t in rows.tensors:
                    by_layer[t.layer] -= product[t.start : t.stop].sum().item()
                slopes[owner] = list(by_layer.values())
        return slopes

    def diagnostics(self):
        alpha = {self.parties[i].id: w[0] for i, w in self.alpha.weights.items()}
        beta = {f"{self.parties[o.client].id}/{o.task}": w for o, w in self.beta.weights.items()}
        return {"alpha": alpha, "beta": beta}

    def state_dict(self):
        owners = [list(o) for o in self.attended_owners]
        return {
            "alpha": self.alpha.state_dict(), "beta": self.beta.state_dict(),
            "common": self.common, "attended": self.attended, "attended_owners": owners,
        }  # fmt: skip

    def load_state_dict(self, state):
        self.alpha.load_state_dict(state["alpha"], int)
        self.beta.load_state_dict(state["beta"], lambda key: Owner(*key))
        self.common, self.attended = state["common"], state["attended"]
        self.attended_owners = tuple(Owner(*o) for o in state["attended_owners"])


class HyperWeights:
    """Weights kept as they are, used clamped to [0, 1], moved by SGD with momentum and weight decay."""

    def __init__(self, params) -> None:
        self.params = params
        self.weights: dict = {}  # key → list of floats
        self.momenta: dict = {}

    def used(self, key, count: int, start: float) -> list[float]:
        return [min(max(w, 0.0), 1.0) for w in self.weights.setdefault(key, [start] * count)]

    def step(self, slopes: dict) -> None:
        p = self.params
        for key, gradients in slopes.items():
            if key not in self.weights:
                continue
            weights, old = self.weights[key], self.momenta.get(key)
            # The clamp passes no gradient outside [0, 1]: there only decay and momentum move a weight.
            gradients = [
                (g if 0 <= w <= 1 else 0.0) + p.weight_decay * w for g, w in zip(gradients, weights, strict=True)
            ]
            new = gradients if old is None else [p.momentum * m + g for m, g in zip(old, gradients)]
            self.momenta[key] = new
            self.weights[key] = [w - p.lr * m for w, m in zip(weights, new)]

    def state_dict(self) -> dict:
        return {name: [[key, value] for key, value in getattr(self, name).items()] for name in ("weights", "momenta")}

    def load_state_dict(self, state: dict, key_of) -> None:
        for name in ("weights", "momenta"):
            setattr(self, name, {key_of(key): value for key, value in state[name]})
