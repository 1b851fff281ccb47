"""Rounds of toy size: what rows are made of, how long clients trained, and what they would have told the server.

The bills of docs/methods/ are asked of methods with such rounds, and so are most tests of methods.
"""

from __future__ import annotations

import numpy as np
import torch

from fmtlbench.base.seeds import stream
from fmtlbench.exchange import TensorSlice

# Two voting layers, a batch norm ("n") between them; decoders have two layers.
ENCODER = (("a.weight", 12), ("n.weight", 3), ("n.bias", 3), ("b.weight", 18), ("b.bias", 3))
DECODER = (("fuse.weight", 10), ("fuse.bias", 2), ("out.weight", 6))
CHANNELS = 6


def layout(sizes, norm="batch"):
    """Return tensors one after the other; those of a layer "n" belong to a normalisation."""
    tensors, start = [], 0
    for name, size in sizes:
        layer = name.partition(".")[0]
        tensors.append(TensorSlice(name, layer, start, start + size, norm=norm if layer == "n" else ""))
        start += size
    return tuple(tensors)


def local_steps(parties):
    """Return optimiser steps by client, no two alike; they follow a client when it is renamed."""
    return {party.index: 1 + party.samples // 5 for party in parties}


# -- what clients tell (`Round.measured`), for methods whose server step needs it --------------------------------------


def measured_for(name, parties, rnd):
    """Return what method `name` would have measured in a round, by client; drawn by ids, so it follows a renaming."""
    told = {"fedatlas": features, "fedfomo": followed, "ifca": choice}.get(name)
    return {i: told(parties, i, rnd.index) for i in present(rnd)} if told else {}


def present(rnd):
    """Return who sent something in a round."""
    found = {owner.client for rows in (rnd.encoder, rnd.decoder) if rows is not None for owner in rows.owners}
    return sorted(found)


def draw(parties, client, *names):
    return stream(0, "measured", parties[client].id, *names)


def features(parties, client, index):
    """Return what FedAtlas asks for: a row per task."""
    rows = np.stack([draw(parties, client, index, task).normal(size=CHANNELS) for task in parties[client].tasks])
    return {"features": torch.nn.functional.normalize(torch.tensor(rows, dtype=torch.float32), dim=1)}


def followed(parties, client, index):
    """Return what FedFomo asks for: in the first round nobody was sent anything; then weights of the others."""
    others = [j for j in range(len(parties)) if j != client]
    if index == 0 or not others:
        return {}
    weights = {j: draw(parties, client, index, parties[j].id).random() for j in others}
    total = sum(weights.values())
    return {str(j): torch.tensor([weight / total]) for j, weight in weights.items()}


def choice(parties, client, index, k=2):
    """Return what IFCA asks for: from the second round on, one of k."""
    return {"choice": torch.tensor([float(draw(parties, client, index).integers(k))])} if index else {}
