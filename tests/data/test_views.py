"""Who gets which images: disjoint, complete, even, seeded."""

from __future__ import annotations

import numpy as np
import pytest

from fmtlbench.config import resolve
from fmtlbench.data.views import client_data, equal_parts, parties
from fmtlbench.errors import UsageError


def views(train=23, test=7, seed=0, **overrides):
    """The client data of st_mt_1: five PASCAL clients and one NYUD client. A dataset here has only a length."""
    config = resolve("local", "st_mt_1", seed=seed, overrides=overrides)
    datasets = {(d, s): range(n) for d in ("pascal", "nyud") for s, n in (("train", train), ("test", test))}
    return config, client_data(config, datasets)


PERSONAL = {"scenario.evaluation": ["global", "personal"], "data.personal_fraction": 0.25}


@pytest.mark.parametrize(("count", "clients"), [(10, 3), (5, 5), (100, 7), (6, 1)])
def test_equal_parts_cover_everything_once_in_even_sizes(count, clients):
    parts = equal_parts(count, clients, np.random.default_rng(0))
    assert len(parts) == clients
    assert sorted(np.concatenate(parts).tolist()) == list(range(count))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(part) > 0).all() for part in parts)


def test_clients_of_a_domain_share_it():
    _, data = views()
    pascal = [d.train.indices.tolist() for d in data[:5]]
    assert sorted(i for part in pascal for i in part) == list(range(23))
    assert data[5].train.indices.tolist() == list(range(23))  # the only NYUD client has it all
    assert pascal[0] != list(range(len(pascal[0])))  # dealt at random, not cut in order
    assert all(d.tests["global"].indices.tolist() == list(range(7)) for d in data)
    assert set(data[0].tests) == {"global"}


@pytest.mark.parametrize("overrides", [{}, PERSONAL])
def test_the_seed_decides(overrides):
    def dealt(seed):
        return [d.train.indices.tolist() for d in views(seed=seed, **overrides)[1]]

    assert dealt(0) == dealt(0)
    assert dealt(0)[:5] != dealt(1)[:5]


def test_personal_images_are_a_seeded_share_that_nobody_trains_on():
    (_, without), (_, data) = views(), views(**PERSONAL)
    for before, d in zip(without, data):
        train, held = set(d.train.indices.tolist()), set(d.tests["personal"].indices.tolist())
        assert not train & held and train | held == set(before.train.indices.tolist())
        assert len(held) == round(0.25 * len(before.train))
        assert len(d.train) == len(train)
    trained = set().union(*(d.train.indices.tolist() for d in data[:5]))
    judged = set().union(*(d.tests["personal"].indices.tolist() for d in data[:5]))
    assert not trained & judged  # not by a neighbour either


def test_at_least_one_image_is_held_out():
    _, data = views(train=10, **{**PERSONAL, "data.personal_fraction": 0.01})
    assert [len(d.tests["personal"]) for d in data] == [1] * 6


def test_more_clients_than_images_is_refused():
    with pytest.raises(UsageError, match="st_mt_1: 5 pascal clients, but only 4 images to share"):
        views(train=4)
    with pytest.raises(UsageError, match="client 'pascal-semseg' has 1 images: too few"):
        views(train=5, **PERSONAL)


def test_parties_know_their_number_of_training_images():
    config, data = views(**PERSONAL)
    members = parties(config, data)
    assert [p.samples for p in members] == [len(d.train) for d in data]
    assert [(p.index, p.id) for p in members] == [(c.index, c.id) for c in config.scenario.parties()]
