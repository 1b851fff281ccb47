"""What MaT-FL keeps of its layers' votes, for the grouping figure; and soft groups at their edge."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from toys import aggregate, make_parties, make_round

from fmtlbench.algorithms.matfl import MaTFL, layer_votes
from fmtlbench.exchange import Round


@pytest.fixture
def federated_round():
    parties = make_parties([("depth",), ("edge",), ("depth",), ("edge", "depth")], datasets=("nyud",))
    return parties, make_round(parties, seed=3)


def test_votes_count_down_from_the_most_similar():
    cosine = np.array([[[1.0, 0.5, 0.9], [0.5, 1.0, -0.2], [0.9, -0.2, 1.0]], [[1.0, 0.8, 0.1]] * 3])
    votes = layer_votes(cosine, 2)
    assert votes[0].tolist() == [[2, 0, 1], [1, 2, 0], [1, 0, 2]]
    assert votes[1].tolist() == [[2, 1, 0], [2, 1, 0], [2, 1, 0]]
    assert layer_votes(cosine, 9)[0].tolist() == [[3, 1, 2], [2, 3, 1], [2, 1, 3]]  # no more friends than clients


def test_voting_keeps_every_layers_votes(federated_round):
    parties, rnd = federated_round
    method = MaTFL(MaTFL.Params(variant="voting", friends=2, vote_layers=2), parties)
    assert "votes" not in method.diagnostics()
    method.aggregate(Round(0, parties, encoder=rnd.encoder))
    kept = json.loads(json.dumps(method.diagnostics()))["votes"]
    assert kept["clients"] == [party.id for party in parties] and kept["layers"] == ["a.weight", "b.weight"]
    votes = np.array(kept["votes"])
    assert votes.shape == (2, 4, 4) and (votes.sum(2) == 3).all()  # two friends: 2 + 1 points
    assert (votes.argmax(2) == np.arange(4)).all()  # everybody resembles oneself most


def test_clusters_have_no_votes(federated_round):
    parties, rnd = federated_round
    method = MaTFL(MaTFL.Params(), parties)
    method.aggregate(Round(0, parties, encoder=rnd.encoder))
    assert set(method.diagnostics()) == {"groups"}


@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.5])
def test_a_client_on_the_mean_keeps_its_encoder(threshold):
    """The public code divides 0 by 0 there with threshold 0; with a larger one it takes the mean, which is itself."""
    parties = make_parties([("depth",)] * 3)
    rnd = make_round(parties)
    after = torch.zeros_like(rnd.encoder.after)
    after[0], after[1] = 1.0, -1.0
    after[:, 0] = 4.0  # the mean is not 0
    after[2] = after.mean(0)
    rows = type(rnd.encoder)(rnd.encoder.owners, rnd.encoder.before, after, rnd.encoder.tensors)
    new = aggregate("matfl", Round(0, parties, encoder=rows), variant="soft", threshold=threshold)["encoder"]
    torch.testing.assert_close(new[2], after[2])
    torch.testing.assert_close(new[0], after[0] if threshold <= 0 else (1.5 * after[0] + 0.5 * after[2]) / 2)
