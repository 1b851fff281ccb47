"""What clients of a toy round would have told the server (`Round.measured`), for methods whose server step needs it."""

from __future__ import annotations

import numpy as np
import torch

from fmtlbench.base.seeds import stream

CHANNELS = 6


def measured_for(name, parties, rnd):
    """Return what method `name` would have measured in a round, by client; drawn by ids, so it follows a renaming."""
    told = {"fedatlas": features, "fedfomo": followed, "ifca": choice}.get(name)
    return {i: told(parties, i, rnd.index) for i in present(rnd)} if told else {}


def present(rnd):
    """Who sent something in a round."""
    found = {owner.client for rows in (rnd.encoder, rnd.decoder) if rows is not None for owner in rows.owners}
    return sorted(found)


def draw(parties, client, *names):
    return stream(0, "measured", parties[client].id, *names)


def features(parties, client, index):
    """FedAtlas: a row per task."""
    rows = np.stack([draw(parties, client, index, task).normal(size=CHANNELS) for task in parties[client].tasks])
    return {"features": torch.nn.functional.normalize(torch.tensor(rows, dtype=torch.float32), dim=1)}


def followed(parties, client, index):
    """FedFomo: in the first round nobody was sent anything; then weights of the others."""
    others = [j for j in range(len(parties)) if j != client]
    if index == 0 or not others:
        return {}
    weights = {j: draw(parties, client, index, parties[j].id).random() for j in others}
    total = sum(weights.values())
    return {str(j): torch.tensor([weight / total]) for j, weight in weights.items()}


def choice(parties, client, index, k=2):
    """IFCA: from the second round on, one of k."""
    return {"choice": torch.tensor([float(draw(parties, client, index).integers(k))])} if index else {}
