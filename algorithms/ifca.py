"""IFCA: k encoders are trained, each by the clients to whom it does most good, and averaged among these.

A client takes the encoder with the lowest loss, Σ_t ω_t L_t with its own decoders on `batches` = 5 training batches,
trains it, and says which one it took; the server averages each with those who took it. An encoder that nobody takes
stays as it is. Ghosh et al., NeurIPS 2020, arXiv:2006.04088; the clients of a cluster count alike, as there.

The paper's k models start at random; here there is one pretrained encoder. In the first round decoders know nothing
yet that a choice could go by, so everybody trains that one, which becomes the mean θ̄. From the second on there are k:
each tensor of θ̄ plus noise of `sigma` = 0.01 times its length, drawn from `seed` by clients and server alike, so that
only θ̄ travels. Neither σ nor k = 2 is published for dense tasks. With k = 1 this is FedPer.

Travels: 1 up; down the mean of a client's own cluster when a round ends (1), and the other k − 1 encoders when the next
one begins; all that changed since for a client that was absent. Running statistics are averaged within clusters, too,
but a client that changes to another cluster keeps its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.schema import limits
from ..base.seeds import stream
from ..exchange import Party, Round, TensorSlice
from ..exchange.algebra import empty_like, encoders_of
from ._base import ALGORITHMS, Algorithm, Kinds, Workbench
from ._foreign import encoder_losses
from ._mean import Weighting, mean_row, means_by_label

if TYPE_CHECKING:
    from torch import Tensor

START = -1  # in the place of a cluster's number: the common encoder that the k are made from


@ALGORITHMS.register("ifca")
class IFCA(Algorithm):
    """Encoders averaged among the clients that chose the same one."""

    title = "IFCA"
    paper = "Ghosh et al., NeurIPS 2020, arXiv:2006.04088"
    roles = ("shares", "personal", "clusters")

    @dataclass(frozen=True)
    class Params:
        k: int = limits(2, low=1, doc="number of encoders; 1 gives FedPer")
        sigma: float = limits(0.01, low=0, doc="σ, by what share of their length their tensors differ from the mean")
        batches: int | None = limits(5, low=1, doc="how many training batches decide; null: all")
        weighting: Weighting = limits("equal", doc="clients count alike, or by their training images")
        seed: int = limits(0, low=0, doc="seed of the noise that sets the encoders apart")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.start: Tensor | None = None  # θ̄, after the first round until the k are averaged, [d]
        self.encoders: list[Tensor] = []  # the k encoders, from the second round on, [d] each
        self.held: dict[int, int] = {}  # client → the number of the encoder it holds as the server has it
        self.groups: dict[str, int] = {}  # of the last round: client id → the number of the encoder it chose

    def shared(self, index: int) -> Kinds:
        return ("encoder",)

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        rows = encoders_of(rnd)
        width = rows.parameters
        if self.start is None and not self.encoders:
            new, labels = mean_row(rows, self.parties, self.params.weighting), [START] * len(rows.owners)
            self.start = new[0, :width].clone()
        else:
            labels = [self._choice_of(owner.client, rnd) for owner in rows.owners]
            new = means_by_label(rows, labels, self.parties, self.params.weighting)
            if self.start is not None:
                self.encoders = self._set_apart(self.start, rows.tensors)
                self.start = None
            for number in set(labels):
                row = new[labels.index(number), :width]
                self.encoders[number] = empty_like(row).copy_(row)
        # Who was absent holds what it held, unless that has changed since.
        kept = {i: n for i, n in self.held.items() if n not in labels and n != START}
        self.held = kept | {owner.client: number for owner, number in zip(rows.owners, labels)}
        self.groups = {self.parties[o.client].id: n for o, n in zip(rows.owners, labels) if n != START}
        return {"encoder": new}

    def _choice_of(self, client: int, rnd: Round) -> int:
        told, name = rnd.measured.get(client, {}).get("choice"), self.parties[client].id
        number = -1 if told is None else int(told)
        if not 0 <= number < self.params.k:
            said = "nothing" if told is None else str(told.tolist())
            raise ValueError(
                f"round {rnd.index + 1}: client {name} told {said} as the encoder it chose, expected a number from 0 "
                f"to {self.params.k - 1} as `choice`"
            )
        return number

    def parcel(self, client: int) -> dict[str, Tensor]:
        if self.start is not None:
            return {} if client in self.held else {"start": self.start}
        return {str(n): encoder for n, encoder in enumerate(self.encoders) if self.held.get(client) != n}

    def _set_apart(self, base: Tensor, tensors: Sequence[TensorSlice]) -> list[Tensor]:
        """Return the k encoders that an encoder becomes, [d] each; one is left as it is."""
        if self.params.k == 1:
            return [base]
        return [add_noise(base, tensors, self.params.sigma, self.params.seed, n) for n in range(self.params.k)]

    # -- on the client -------------------------------------------------------------------------------------------------

    def adopt(self, local: Workbench) -> None:
        if local.round == 0:
            return
        row = local.rows("encoder")[0]
        encoders = self._candidates(local, row)
        number = 0
        if len(encoders) > 1:
            losses = encoder_losses(local, encoders, local.batches(count=self.params.batches))
            number = lowest(losses @ local.loss_weights().cpu().numpy())
        row.copy_(encoders[number])
        local.memory["choice"] = number

    def _candidates(self, local: Workbench, row: Tensor) -> list[Tensor]:
        """Return the k encoders: what was sent, and the one that the client holds already."""
        if local.round == 1:
            return self._set_apart(local.received.get("start", row).clone(), local.layout("encoder"))
        held = {str(local.memory["choice"]): row.clone()} if "choice" in local.memory else {}
        known = {**held, **local.received}
        return [known[str(n)] for n in range(self.params.k)]

    def measure(self, local: Workbench) -> dict[str, Tensor]:
        import torch

        return {} if local.round == 0 else {"choice": torch.tensor([float(local.memory["choice"])])}

    # -- telling and keeping -------------------------------------------------------------------------------------------

    def diagnostics(self) -> dict[str, Any]:
        return {"groups": dict(self.groups)}

    def notes(self) -> list[str]:
        if self.params.k == 1 or len(self.groups) < 2 or len(set(self.groups.values())) > 1:
            return []
        return [
            "in some round all clients chose the same encoder, which is FedPer's round; a larger algo.sigma sets the "
            "encoders further apart at first"
        ]

    def state_dict(self) -> dict[str, Any]:
        held = {str(client): number for client, number in self.held.items()}
        return {"start": self.start, "encoders": list(self.encoders), "held": held}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.start, self.encoders = state["start"], list(state["encoders"])
        self.held = {int(client): number for client, number in state["held"].items()}


def add_noise(base: Tensor, tensors: Sequence[TensorSlice], sigma: float, seed: int, number: int) -> Tensor:
    """Return an encoder plus the noise of a number, of `sigma` times the length of each of its tensors. [d]."""
    import torch

    drawn = stream(seed, "ifca", number).standard_normal(len(base), dtype=np.float32)
    noise = torch.from_numpy(drawn).to(base)
    for t in tensors:
        if not t.statistic:
            piece = noise[t.start : t.stop]
            piece *= sigma * base[t.start : t.stop].norm() / piece.norm()
    return base + noise


def lowest(losses: np.ndarray) -> int:
    """Return the place of the lowest number, the first of several; what is no number is never the lowest."""
    return int(np.argmin(np.where(np.isnan(losses), np.inf, losses)))
