"""A federation in which losses are quadratic and optimisers plain SGD, so that every step can be worked out by hand.

Clients call a method's hooks in the engine's order. A client's network is one vector: an encoder, then a decoder per
task, then a head per task. Its loss on a batch is ½ Σ curvature · (θ − target)².
"""

from __future__ import annotations

import numpy as np
import torch
from toys import layout

from fmtlbench.exchange import Owner, Round, Rows

WIDTHS = {"encoder": 5, "decoder": 3, "head": 2}
TENSORS = {kind: layout([("a.weight", width - 1), ("b.bias", 1)]) for kind, width in WIDTHS.items()}


class QuadraticClient:
    """One client: what a method may ask of it (`algorithms.Local`, `algorithms.Workbench`), and its training.

    Args:
        method: Whose hooks are called.
        party: Who it is.
        batches: In a round.
        rate: Learning rate.
        task_steps: Optimiser steps on a batch, each with a target of its own, as networks with a step per task take.
    """

    def __init__(self, method, party, batches=3, rate=0.1, task_steps=1):
        self.method, self.party, self.lr = method, party, rate
        self.device = torch.device("cpu")
        self.places, start = {}, 0
        for kind, count in (("encoder", 1), ("decoder", len(party.tasks)), ("head", len(party.tasks))):
            stops = [start + WIDTHS[kind] * (k + 1) for k in range(count)]
            self.places[kind] = [slice(stop - WIDTHS[kind], stop) for stop in stops]
            start = stops[-1]
        rng = np.random.default_rng(100 + party.index)
        # Everybody starts alike: all rows of a kind have the same values.
        first = np.concatenate([np.full(p.stop - p.start, 0.3) for kind in self.places for p in self.places[kind]])
        self.curvature = torch.from_numpy(rng.uniform(0.5, 2.0, start))
        self.targets = torch.from_numpy(rng.normal(size=(batches, task_steps, start)))
        self.theta = {name: torch.from_numpy(first.copy()).requires_grad_() for name in method.tracks}
        self.track, self.round, self.batch, self.repeat = "main", 0, 0, 0
        self.memory, self.received, self.anchor = {}, {}, {}
        self._gradient, self._sum, self._steps = None, None, 0

    # -- algorithms.Local ----------------------------------------------------------------------------------------------

    @property
    def anchored(self):
        return tuple(self.anchor)

    def squared_distance(self, kind, to=None):
        rows = self.anchor[kind] if to is None else to
        live = self.theta[self.track]
        return sum((live[p] - row).square().sum() for p, row in zip(self.places[kind], rows, strict=True))

    def inner(self, kind, vectors):
        live = self.theta[self.track]
        return sum(live[p].dot(row) for p, row in zip(self.places[kind], vectors, strict=True))

    def rows(self, kind, track=None):
        return [self.vector(track)[p] for p in self.places[kind]]

    def vector(self, track=None):
        return self.theta[track or self.track].detach()

    def gradient(self):
        return self._gradient

    def mean_gradient(self, kind):
        assert type(self.method).averages_gradients
        return [self._sum[p] / self._steps for p in self.places[kind]]

    def row_gradients(self, loss, kind):
        (found,) = torch.autograd.grad(loss, self.theta[self.track])
        return [found[p] for p in self.places[kind]]

    # -- training ------------------------------------------------------------------------------------------------------

    def take_part(self, index):
        """Do a round; return what is measured."""
        method, cls = self.method, type(self.method)
        self.round, self.track, self.batch, self._sum, self._steps = index, "main", 0, None, 0
        with torch.no_grad():
            method.adopt(self)
        self.anchor = {kind: [row.clone() for row in self.rows(kind, "main")] for kind in method.shared(index)}
        names = cls.trained_tracks or cls.tracks
        for together in [names] if cls.side_by_side else [(name,) for name in names]:
            self.batch = 0
            for targets in self.targets:
                for self.track in together:
                    for self.repeat in range(method.steps_per_batch()):
                        for target in targets:
                            self.step(target)
                self.batch += 1
        self.track = "main"
        with torch.no_grad():
            return method.measure(self)

    def step(self, target):
        """Take one step of plain SGD."""
        live = self.theta[self.track]
        with torch.no_grad():
            self.method.before_step(self)
        loss = (self.curvature * (live - target).square()).sum() / 2
        if (extra := self.method.local_objective(self)) is not None:
            loss = loss + extra
        (self._gradient,) = torch.autograd.grad(loss, live)
        with torch.no_grad():
            self.method.before_update(self)
            if self.track == "main":
                self._sum = self._gradient.clone() if self._sum is None else self._sum + self._gradient
                self._steps += 1
            live -= self.lr * self._gradient

    def scored(self):
        """Return the vector that would be scored; nothing changes."""
        track = self.method.evaluation_model().track
        self.track, kept = track, self.vector(track).clone()
        with torch.no_grad():
            self.method.before_scoring(self)
        found = self.vector(track).clone()
        self.vector(track).copy_(kept)
        return found


class QuadraticFederation:
    """A server with its method, and such clients; as in the engine, who missed a round gets what is common first."""

    def __init__(self, method, **options):
        self.method = method
        self.clients = [QuadraticClient(method, party, **options) for party in method.parties]
        self.common = {}
        self.parcels = []  # of every round: by client, what was sent beside rows
        self.told = []  # and what was measured

    def rows(self, kind, client):
        return self.clients[client].rows(kind, "main")

    def round(self, index, present):
        kinds = self.method.shared(index)
        before, after = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
        owners, sent, told = {kind: [] for kind in kinds}, {}, {}
        for i in present:
            client = self.clients[i]
            for kind, row in self.common.items():
                for mine in self.rows(kind, i):
                    mine.copy_(row)
            client.received = sent[i] = self.method.parcel(i)
            for kind in kinds:
                before[kind] += [row.clone() for row in self.rows(kind, i)]
            told[i] = client.take_part(index)
            for kind in kinds:
                after[kind] += [row.clone() for row in self.rows(kind, i)]
                owners[kind] += [Owner(i)] if kind == "encoder" else [Owner(i, task) for task in client.party.tasks]
        self.parcels.append(sent)
        self.told.append(told)
        seen = {
            kind: Rows(tuple(owners[kind]), torch.stack(before[kind]), torch.stack(after[kind]), TENSORS[kind])
            for kind in kinds
        }
        with torch.no_grad():
            new = self.method.aggregate(Round(index, self.method.parties, measured=told, **seen))
        for kind, values in new.items():
            for i in present:
                mine = [value for owner, value in zip(owners[kind], values) if owner.client == i]
                for row, value in zip(self.rows(kind, i), mine, strict=True):
                    row.copy_(value)
        self.common |= {kind: new[kind][0].clone() for kind in self.method.common if kind in new}
        return new

    def rounds(self, attendance):
        """Do a round for each list of those who are present; return the new rows of the last."""
        return [self.round(index, present) for index, present in enumerate(attendance)][-1]
