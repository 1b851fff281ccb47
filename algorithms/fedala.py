"""FedALA: before it trains, each client learns element by element how much of the mean its upper layers take over.

θ̂ = θ_i + (θ_g − θ_i) ⊙ W, with W ← clip(W − η ∇_θ̂ L ⊙ (θ_g − θ_i), 0, 1) over batches from a random `share` = 0.8 of
the client's images, W = 1 at first; layers below take θ_g. Zhang et al., AAAI 2023, arXiv:2212.01197; η = 1 as there.
The first time W is learned pass by pass until the last 10 mean losses have a standard deviation below 0.1, `max_passes`
= 30 at most (there is no bound in the paper; the public code goes by the last batch's loss); later one pass a round.

The paper mixes the top layer of a classifier; here it is the last stage of the encoder (`layers`; a network whose
tensors' names show no stages: its last layer). Only encoders travel by default: the loss of a common model is taken
with the client's own decoders and heads behind it. With `shared=all` decoders, which lie above, are mixed whole, with
the mean over all or over those of the task (`decoders`). A client keeps its θ_i until it trains again, so it is scored
after local training. PFLlib takes a contiguous slice of the images, and skips a round in which the first tensors of θ_g
and θ_i differ by 0 in sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base.errors import nearest
from ..base.schema import limits
from ..exchange import Party, Round, TensorSlice
from ..exchange.algebra import rows_by_kind
from ._base import ALGORITHMS, Workbench
from ._groups import Grouped

if TYPE_CHECKING:
    from torch import Tensor

Spans = list[tuple[int, int]]  # parts of a row

LAST_STAGE, ALL = "last_stage", "all"


@ALGORITHMS.register("fedala")
class FedALA(Grouped):
    """FedAvg whose clients take over as much of the mean as helps them."""

    title = "FedALA"
    paper = "Zhang et al., AAAI 2023, arXiv:2212.01197"
    roles = ("shares", "personal")
    installs = False

    @dataclass(frozen=True)
    class Params(Grouped.Params):
        shared: Literal["all", "encoder"] = limits("encoder", doc="what travels: encoders alone, or all but the heads")
        layers: tuple[str, ...] = limits(
            (LAST_STAGE,), doc="encoder tensors that are mixed: last_stage, all, or how their names begin"
        )
        share: float = limits(0.8, above=0, high=1, doc="s, share of the images that W is learned on")
        eta: float = limits(1.0, low=0, doc="η, rate of W; 0 takes over the mean as FedAvg does")
        window: int = limits(10, low=2, doc="how many losses must lie together for the first learning of W to end")
        threshold: float = limits(0.1, above=0, doc="the standard deviation that they must fall below")
        max_passes: int = limits(30, low=1, doc="how many passes the first learning of W may take")

    params: Params

    def __init__(self, params: Params, parties: Sequence[Party]) -> None:
        super().__init__(params, parties)
        self.mixed: dict[str, int] = {}  # kind → how many elements of a row are mixed

    def aggregate(self, rnd: Round) -> dict[str, Tensor]:
        self.mixed = {kind: _length(self._spans(kind, rows.tensors)) for kind, rows in rows_by_kind(rnd)}
        return super().aggregate(rnd)

    def newcomer_encoder(self, encoders: Tensor) -> Tensor:
        if self.params.weighting == "equal":
            return encoders.mean(0)
        weights = encoders.new_tensor([float(party.samples) for party in self.parties])
        return (weights / weights.sum()) @ encoders

    # -- on the client -------------------------------------------------------------------------------------------------

    def adopt(self, local: Workbench) -> None:
        if not local.anchored:  # nothing was sent yet
            return
        learned = "weights" in local.memory
        blends = list(self._blends(local))
        losses: list[float] = []
        while len(losses) < (1 if learned else self.params.max_passes):
            losses.append(self._learn(local, blends))
            last = losses[-self.params.window :]
            if len(last) == self.params.window and np.std(last) < self.params.threshold:
                break
        weights: dict[str, list[Tensor]] = {kind: [] for kind in local.anchored}
        for blend in blends:
            weights[blend.kind].append(blend.weights)
        local.memory["weights"] = weights

    def _blends(self, local: Workbench) -> Iterator[Blend]:
        """Yield the client's rows, each on its way to the common one."""
        known = local.memory.get("weights", {})
        for kind in local.anchored:
            spans = self._spans(kind, local.layout(kind))
            for place, (row, common) in enumerate(zip(local.rows(kind), local.anchor[kind])):
                yield Blend(kind, place, row, common, spans, known[kind][place] if kind in known else None)

    def _learn(self, local: Workbench, blends: Sequence[Blend]) -> float:
        """Go once over the client's share of images; return the mean loss on the way."""
        import torch

        total, images = 0.0, 0
        for batch in local.batches(share=self.params.share):
            with torch.enable_grad():
                loss = (local.losses(batch) * local.loss_weights()).sum()
                gradients = {kind: local.row_gradients(loss, kind) for kind in local.anchored}
            with torch.no_grad():
                for blend in blends:
                    blend.learn(gradients[blend.kind][blend.place], self.params.eta)
            total += len(batch["image"]) * float(loss)
            images += len(batch["image"])
        if not images:
            raise ValueError(f"client {local.party.id} has no images to learn W on, expected at least one")
        return total / images

    def _spans(self, kind: str, tensors: Sequence[TensorSlice]) -> Spans:
        """Return which parts of a row are mixed; the rest takes the common values."""
        parameters = [t for t in tensors if not t.statistic]
        chosen = parameters if kind == "decoder" else choose_tensors(parameters, self.params.layers)
        return join_spans(chosen)

    def diagnostics(self) -> dict[str, Any]:
        return {"mixed_parameters": dict(self.mixed)}


class Blend:
    """A client's row on its way to the common one: there already, but for the spans that are mixed."""

    def __init__(
        self, kind: str, place: int, row: Tensor, common: Tensor, spans: Spans, weights: Tensor | None = None
    ) -> None:
        """Move a row as far as its weights say; without any, all the way."""
        self.kind, self.place, self.row, self.spans = kind, place, row, spans
        self.own, self.common = _pick(row, spans), _pick(common, spans)
        self.weights = self.own.new_ones(len(self.own)) if weights is None else weights.clone()
        row.copy_(common)
        self._write()

    def learn(self, gradient: Tensor, eta: float) -> None:
        """Take a step of W along the gradient of the loss with respect to the whole row."""
        slope = _pick(gradient, self.spans).mul_(self.common - self.own)
        self.weights.sub_(slope, alpha=eta).clamp_(0, 1)
        self._write()

    def _write(self) -> None:
        mixed, start = self.own.lerp(self.common, self.weights), 0  # exact where W is 0 or 1
        for low, high in self.spans:
            self.row[low:high] = mixed[start : start + high - low]
            start += high - low


def choose_tensors(tensors: Sequence[TensorSlice], layers: Sequence[str]) -> list[TensorSlice]:
    """Return the tensors that `layers` names: those of the last stage, all, or those whose names begin so."""
    chosen: set[str] = set()
    for layer in layers:
        if layer == ALL:
            found = {t.name for t in tensors}
        elif layer == LAST_STAGE:
            found = last_stage([t.name for t in tensors], [t.stop - t.start for t in tensors])
        else:
            found = {t.name for t in tensors if t.name.startswith(layer)}
        if not found:
            known = [LAST_STAGE, ALL, *(t.name for t in tensors)]
            raise ValueError(f"algo.layers: no tensor of the encoder begins with {layer!r}; {nearest(layer, known)}")
        chosen |= found
    return [t for t in tensors if t.name in chosen]


def last_stage(names: Sequence[str], sizes: Sequence[int]) -> set[str]:
    """Return the names of the tensors of an encoder's last stage.

    Stages are numbered in names: `body.layers_3.…`, `body.layer4.…`, `body.blocks.6.…`. The series with most parameters
    counts, and any other with the same numbers (a norm per stage). Without such, the last layer is the last stage.
    """
    series: dict[str, dict[int, set[str]]] = {}  # what is before the number → number → names
    weight: dict[str, int] = {}
    for name, size in zip(names, sizes):
        if found := re.match(r"(.*?)(\d+)(?:\.|$)", name):
            stem, number = found[1], int(found[2])
            series.setdefault(stem, {}).setdefault(number, set()).add(name)
            weight[stem] = weight.get(stem, 0) + size
    series = {stem: stages for stem, stages in series.items() if len(stages) > 1}
    if not series:
        layer = names[-1].rpartition(".")[0]
        return {name for name in names if name.rpartition(".")[0] == layer}
    main = set(series[max(series, key=lambda stem: weight[stem])])
    return {name for stages in series.values() if set(stages) == main for name in stages[max(main)]}


def join_spans(tensors: Sequence[TensorSlice]) -> Spans:
    """Return where tensors lie in a row, neighbours as one span."""
    spans: Spans = []
    for t in sorted(tensors, key=lambda t: t.start):
        if spans and spans[-1][1] == t.start:
            spans[-1] = (spans[-1][0], t.stop)
        else:
            spans.append((t.start, t.stop))
    return spans


def _pick(row: Tensor, spans: Spans) -> Tensor:
    """Return a copy of the spans of a row, one after the other."""
    import torch

    return torch.cat([row[low:high] for low, high in spans])


def _length(spans: Spans) -> int:
    return sum(high - low for low, high in spans)
