"""Small federations and a stand-in for the client side, for tests of methods."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import torch
from toy_rounds import DECODER, ENCODER, layout, local_steps, measured_for

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.engine.state_trees import join_tree, split_tree
from fmtlbench.exchange import Owner, Party, Round, Rows

TASKS = ("depth", "edge", "normals", "semseg")


def make_parties(task_sets, datasets=("nyud", "pascal"), merged=False):
    return tuple(
        Party(i, f"c{i}", datasets[i % len(datasets)], tuple(tasks), 10 * (i + 1), merged)
        for i, tasks in enumerate(task_sets)
    )


def make_round(parties, seed=0, index=0, step=0.1, alike=False, updates=None):
    """A round of random parameters. `updates` = (encoder Δ, decoder Δ) replaces the random updates."""
    rng = np.random.default_rng(seed)
    encoders = [Owner(party.index) for party in parties]
    decoders = [Owner(party.index, task) for party in parties for task in ((None,) if party.merged else party.tasks)]
    made = {}
    for k, (kind, owners, sizes) in enumerate((("encoder", encoders, ENCODER), ("decoder", decoders, DECODER))):
        shape = (len(owners), sum(size for _, size in sizes))
        before = rng.normal(size=shape)
        if alike:
            before[:] = before[0]
        delta = step * rng.normal(size=shape) if updates is None else np.broadcast_to(updates[k], shape)
        before = torch.from_numpy(before.astype(np.float32))
        after = before + torch.from_numpy(delta.astype(np.float32))
        made[kind] = Rows(tuple(owners), before, after, layout(sizes))
    return Round(index, tuple(parties), **made, steps=local_steps(parties))


def of(rnd, method):
    """The round as the engine would hand it to `method`: only what travels, and what its clients would have told."""
    shared = {kind: getattr(rnd, kind) for kind in method.shared(rnd.index)}
    told = rnd.measured or measured_for(method.name, rnd.parties, rnd)
    return Round(rnd.index, rnd.parties, **shared, steps=rnd.steps, measured=told)


def without(rnd, absent):
    """The same round in which some clients did not take part."""
    present, made = [party.index for party in rnd.parties if party.index not in absent], {}
    for kind in ("encoder", "decoder"):
        rows = getattr(rnd, kind)
        index = [k for k, owner in enumerate(rows.owners) if owner.client in present]
        owners = tuple(rows.owners[k] for k in index)
        made[kind] = Rows(owners, rows.before[index], rows.after[index], rows.tensors)
    return Round(rnd.index, rnd.parties, **made, steps={i: rnd.steps[i] for i in present}, measured=rnd.measured)


def make(name, parties, **options):
    cls = ALGORITHMS[name]
    return cls(cls.Params(**options), parties)


def aggregate(name, rnd, **options):
    method = make(name, rnd.parties, **options)
    with torch.no_grad():
        return method.aggregate(of(rnd, method))


def reorder(rnd, order):
    """The same round with its clients' rows in another order."""
    made = {}
    for kind in ("encoder", "decoder"):
        rows = getattr(rnd, kind)
        index = [k for i in order for k, owner in enumerate(rows.owners) if owner.client == i]
        owners = tuple(rows.owners[k] for k in index)
        made[kind] = Rows(owners, rows.before[index], rows.after[index], rows.tensors), index
    rows = {k: rows for k, (rows, _) in made.items()}
    return Round(rnd.index, rnd.parties, **rows, steps=rnd.steps, measured=rnd.measured), {
        k: index for k, (_, index) in made.items()
    }


def renumbered(parties, order):
    """The same clients with other numbers: new client k is old client order[k]."""
    return tuple(dataclasses.replace(parties[old], index=new) for new, old in enumerate(order))


def renumber(rnd, order):
    """The same round of clients with other numbers, and which rows of `rnd` its rows are."""
    other, index = reorder(rnd, order)
    rows = {}
    for kind in ("encoder", "decoder"):
        found = getattr(other, kind)
        owners = tuple(Owner(order.index(owner.client), owner.task) for owner in found.owners)
        rows[kind] = Rows(owners, found.before, found.after, found.tensors)
    steps = {new: rnd.steps[old] for new, old in enumerate(order)}
    return Round(rnd.index, renumbered(rnd.parties, order), **rows, steps=steps), index


def through_disk(tree):
    """A state as a checkpoint brings it back."""
    tensors, skeleton = split_tree(tree)
    return join_tree({k: t.clone() for k, t in tensors.items()}, json.loads(json.dumps(skeleton)))


class FakeLocal:
    """The client's side of a local objective: live tensors and anchors, a list per kind."""

    def __init__(self, live, anchor, track="main"):
        self.live, self.anchor, self.track = live, anchor, track

    @property
    def anchored(self):
        return tuple(self.anchor)

    def squared_distance(self, kind):
        return sum((p - a).square().sum() for p, a in zip(self.live[kind], self.anchor[kind], strict=True))

    def squared_norm(self, kind):
        return sum(p.square().sum() for p in self.live[kind])

    def size(self, kind):
        return sum(p.numel() for p in self.live[kind])
