"""Clients that can judge models: their losses are quadratic, so that every number can be worked out by hand.

A client's task t has the loss ½ mean_b ‖a_t ⊙ θ + mean(δ_t) − x_b‖², θ the encoder, δ_t its decoder, x_b an image. The
hooks are called in the engine's order, local training is one step down the gradient.
"""

from __future__ import annotations

import numpy as np
import torch
from toys import DECODER, ENCODER, layout

from fmtlbench.exchange import Owner, Round, Rows

TENSORS = {"encoder": layout(ENCODER), "decoder": layout(DECODER)}
WIDTHS = {kind: tensors[-1].stop for kind, tensors in TENSORS.items()}
BATCH, IMAGES = 4, 10


class JudgingClient:
    """One client: what a method may ask of it before and after local training."""

    def __init__(self, party, held_out=0.0, seed=0):
        rng = np.random.default_rng([seed, *party.id.encode()])
        self.party, self.device, self.round = party, torch.device("cpu"), 0
        self.memory, self.received, self.anchor = {}, {}, {}
        self.live = {
            "encoder": [torch.zeros(WIDTHS["encoder"]) + 0.5],
            "decoder": [torch.full((WIDTHS["decoder"],), 0.1) for _ in party.tasks],
        }
        self.scales = torch.from_numpy(rng.uniform(0.5, 1.5, (len(party.tasks), WIDTHS["encoder"]))).float()
        self.weights = torch.from_numpy(rng.uniform(0.5, 2.0, len(party.tasks))).float()
        self.images = torch.from_numpy(rng.normal(size=(IMAGES, WIDTHS["encoder"]))).float()
        self.kept = round(held_out * IMAGES)
        self.looks = []  # what was asked of `batches`
        self.features = rng.normal(size=(IMAGES, len(party.tasks), 6)).astype(np.float32)

    @property
    def anchored(self):
        return tuple(self.anchor)

    def rows(self, kind, track=None):
        return self.live[kind]

    def layout(self, kind):
        return TENSORS[kind]

    def batches(self, count=None, share=1.0, held_out=False):
        self.looks.append((count, share, held_out))
        images = self.images[: self.kept] if held_out else self.images[self.kept :]
        images = images[: max(1, round(share * len(images)))]
        for number, batch in enumerate(images.split(BATCH)):
            if count is not None and number >= count:
                break
            yield {"image": batch, "number": number}

    def losses(self, batch, track=None):
        # New leaves on the same memory, which methods write into between two looks.
        self._leaves = {kind: [row.detach().requires_grad_() for row in rows] for kind, rows in self.live.items()}
        (encoder,) = self._leaves["encoder"]
        found = []
        for scale, decoder in zip(self.scales, self._leaves["decoder"]):
            found.append((scale * encoder + decoder.mean() - batch["image"]).square().sum(1).mean() / 2)
        return torch.stack(found)

    def loss_weights(self):
        return self.weights

    def row_gradients(self, loss, kind):
        return list(torch.autograd.grad(loss, self._leaves[kind], retain_graph=True))

    def feature_gradients(self, batch):
        assert torch.is_grad_enabled()
        return torch.from_numpy(self.features[batch["number"]])

    # -- the engine's part ---------------------------------------------------------------------------------------------

    def take_part(self, method, index, received):
        """Do a round; return what is measured."""
        self.round, self.received = index, received
        with torch.no_grad():
            method.adopt(self)
        self.start = self.live["encoder"][0].clone()
        self.train()
        with torch.no_grad():
            return method.measure(self)

    def train(self, rate=0.1):
        with torch.enable_grad():
            losses = self.losses({"image": self.images[self.kept :]})
            loss = (losses * self.weights).sum()
            gradients = {kind: self.row_gradients(loss, kind) for kind in self.live}
        for kind, rows in self.live.items():
            for row, gradient in zip(rows, gradients[kind]):
                row.sub_(gradient, alpha=rate)

    def install(self, method, kind, rows):
        if method.installs:
            for mine, row in zip(self.live[kind], rows, strict=True):
                mine.copy_(row)
        else:
            self.anchor[kind] = [row.clone() for row in rows]


class JudgingFederation:
    """A server with its method, and such clients; as in the engine, who missed a round gets what is common first."""

    def __init__(self, method, seed=0):
        self.method = method
        self.clients = [JudgingClient(party, method.held_out(), seed) for party in method.parties]
        self.common, self.behind = {}, set()
        self.parcels, self.told = [], []  # of every round, by client

    def encoders(self):
        return torch.stack([client.live["encoder"][0] for client in self.clients])

    def round(self, index, present):
        method, kinds = self.method, self.method.shared(index)
        for i in self.behind & set(present):
            for kind, row in self.common.items():
                self.clients[i].install(method, kind, [row] * len(self.clients[i].live[kind]))
        parcels = {i: method.parcel(i) for i in present}
        self.parcels.append({i: sorted(parcel) for i, parcel in parcels.items()})
        told = {i: self.clients[i].take_part(method, index, parcels[i]) for i in present}
        self.told.append(told)
        seen = {kind: self.read(kind, present) for kind in kinds}
        with torch.no_grad():
            new = method.aggregate(Round(index, method.parties, measured=told, **seen))
        for kind, values in new.items():
            for i in present:
                mine = [v for owner, v in zip(seen[kind].owners, values) if owner.client == i]
                self.clients[i].install(method, kind, mine)
        self.common |= {kind: new[kind][0].clone() for kind in method.common if kind in new}
        self.behind = (self.behind | set(range(len(self.clients)))) - set(present)
        return new

    def read(self, kind, present):
        owners, before, after = [], [], []
        for i in present:
            client = self.clients[i]
            owners += [Owner(i)] if kind == "encoder" else [Owner(i, task) for task in client.party.tasks]
            after += [row.clone() for row in client.live[kind]]
            before += [client.start] if kind == "encoder" else [row.clone() for row in client.live[kind]]
        return Rows(tuple(owners), torch.stack(before), torch.stack(after), TENSORS[kind])

    def rounds(self, attendance, first=0):
        """Do a round for each list of those who are present; return the new rows of the last."""
        return [self.round(first + k, present) for k, present in enumerate(attendance)][-1]
